/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a start that call GPU libraries. Each runs on a separate thread, which is abandoned when a call
 * exceeds the limit: the session then starts without that library. The caller holds the session's mutex. */
#ifndef GPUFL_SDK_BOUNDED_START_H
#define GPUFL_SDK_BOUNDED_START_H

#include "capture/collector.h"
#include "capture/system_sampler.h"

/* is_injected: this thread is initializing CUDA, and NVML and CUPTI may need a lock that it holds (seen on an H200:
 * nvmlInit on another thread waits for it). They are then called on this thread, without a limit. */
/* Creates the sampler and describes the machine for job_start. gpu_problem: also names a call that did not return. */
NODISCARD gpufl_status bounded_start_sampler(struct system_sampler **out, const struct system_sampler_options *options,
                                             uint32_t limit_ms, bool is_injected, struct bytes *described,
                                             struct problem *gpu_problem);
/* Calls collector_trace. */
void bounded_start_trace(struct collector *collector, uint32_t limit_ms, bool is_injected, struct trace_grant *grant);

#endif
