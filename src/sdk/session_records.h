/* SPDX-License-Identifier: Apache-2.0 */
/* The records that a session of the SDK writes at its start: job_start and capture_capabilities. */
#ifndef GPUFL_SDK_SESSION_RECORDS_H
#define GPUFL_SDK_SESSION_RECORDS_H

#include "capture/collector.h"
#include "capture/system_sampler.h"
#include "sdk/options.h"

/* described: by system_sampler_describe. */
void write_job_start(struct recorder *recorder, const struct options *options, const struct system_sampler *sampler,
                     const struct bytes *described, const struct log_writer *writer);
/* What was requested, what was granted, and why not. */
void write_capabilities(struct recorder *recorder, const struct options *options, gpufl_engine selected,
                        const struct trace_grant *grant, struct deep *deep, const char *gpu_problem);

#endif
