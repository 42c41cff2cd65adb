/* SPDX-License-Identifier: Apache-2.0 */
/* From PC samples of an interval to rows. A sample names its function, not its
 * launch: the executions of that function inside the interval are looked up, and
 * the samples are split between their scopes as the time of the executions is,
 * which each row says (confidence_bp). What has the same function, scope and
 * launch is added up for a second, so that the log grows with what is different
 * and not with time. A function whose execution is not known yet (it still runs)
 * waits for it, bounded. Time of executions whose scope is not known makes a row
 * of its own, which is of no scope.
 * Collector thread only. */
#ifndef GPUFL_CAPTURE_PC_ATTRIBUTION_H
#define GPUFL_CAPTURE_PC_ATTRIBUTION_H

#include "capture/kernel_history.h"
#include "capture/names.h"

enum { PC_FUNCTIONS_MAX = 32 * 1024 };

struct pc_attribution; /* opaque */

struct pc_attribution_options {
    struct recorder *recorder; /* borrowed, as are the next two */
    struct names *names;
    struct kernel_history *history;
};

struct pc_interval {
    int64_t start_ns, end_ns; /* the samples were taken between */
    uint32_t context_id, device_id, window_id;
};
struct pc_count { /* samples of one instruction with one stall reason */
    uint64_t pc_offset;
    uint32_t function; /* of pc_attribution_define */
    uint32_t stall_index, samples, correlation_id;
};

NODISCARD gpufl_status pc_attribution_make(struct pc_attribution **out, const struct pc_attribution_options *options);
void pc_attribution_free(struct pc_attribution *attribution);
/* `function`: the caller's number for it, 1 to PC_FUNCTIONS_MAX, before its samples. */
void pc_attribution_define(struct pc_attribution *attribution, uint32_t function, uint64_t cubin_crc,
                           const char *symbol);
/* What a stall index means on a device; before its samples, again and again if need be. */
void pc_attribution_stall(struct pc_attribution *attribution, uint32_t device_id, uint32_t stall_index,
                          const char *name);
void pc_attribution_add(struct pc_attribution *attribution, const struct pc_interval *interval,
                        const struct pc_count *counts, uint32_t count);
/* Writes what is older than a second before now_ns; INT64_MAX: everything. */
void pc_attribution_write(struct pc_attribution *attribution, int64_t now_ns);
uint64_t pc_attribution_unattributed(const struct pc_attribution *attribution); /* samples written without a scope */
size_t pc_attribution_bytes(const struct pc_attribution *attribution);

#endif
