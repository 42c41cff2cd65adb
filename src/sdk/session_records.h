/* SPDX-License-Identifier: Apache-2.0 */
/* The records that frame a session: job_start, capture_capabilities, shutdown. */
#ifndef GPUFL_SDK_SESSION_RECORDS_H
#define GPUFL_SDK_SESSION_RECORDS_H

#include "capture/collector.h"
#include "capture/system_sampler.h"
#include "sdk/options.h"

/* A new UUID (version 7: sorts by time) as 36 characters and NUL. */
void session_id_make(char out[37]);
void write_job_start(struct recorder *recorder, const struct options *options, struct system_sampler *sampler,
                     const char *session_dir, int64_t now_ns);
/* What was asked for, what was granted, and why not. */
void write_capabilities(struct recorder *recorder, const struct options *options, gpufl_engine selected,
                        const struct trace_grant *grant, struct deep *deep, const char *gpu_problem);
void write_shutdown(struct recorder *recorder, int64_t now_ns);

#endif
