/* SPDX-License-Identifier: Apache-2.0 */
/* Counters that GPUFlight's wire format stores as separate members of perf_metric_event and kernel_perf_metric_event,
 * where -1 means "unavailable". */
#ifndef GPUFL_FORMAT_COUNTER_MEMBERS_H
#define GPUFL_FORMAT_COUNTER_MEMBERS_H

enum { COUNTER_MEMBERS_OF_SCOPES = 6, COUNTER_MEMBER_COUNT = 13 };
/* Scopes have the first COUNTER_MEMBERS_OF_SCOPES of them, kernels have all. */
extern const char *const counter_members[COUNTER_MEMBER_COUNT];

#endif
