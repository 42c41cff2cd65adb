/* SPDX-License-Identifier: Apache-2.0 */
/* AMD's part of the process's session: its settings from the options, the mapping from rocprofiler's agents to
 * telemetry's GPUs, and warnings about its limits. */
#ifndef GPUFL_SDK_AMD_SESSION_H
#define GPUFL_SDK_AMD_SESSION_H

#include "capture/amd_trace.h"
#include "capture/system_sampler.h"
#include "sdk/options.h"

/* options and sampler are borrowed for the life of the session. */
struct amd_settings amd_settings_of(const struct options *options, struct system_sampler *sampler);
/* Whether the session only covers AMD GPUs, as far as known at its start. */
bool amd_is_alone(const struct options *options);
/* Warns about requested features that AMD GPUs do not support or provide differently. */
void amd_warn(gpufl_engine engine, const struct amd_grant *grant);
/* Records ROCTX ranges as scopes, like NVTX ranges; in nvtx.c. */
void roctx_range(enum rocprofiler_range range, const char *text, uint64_t range_id);

#endif
