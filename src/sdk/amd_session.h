/* SPDX-License-Identifier: Apache-2.0 */
/* AMD's part of the process's session: what the options ask of it, which of
 * telemetry's GPUs rocprofiler speaks of, and what is said about its limits. */
#ifndef GPUFL_SDK_AMD_SESSION_H
#define GPUFL_SDK_AMD_SESSION_H

#include "capture/amd_trace.h"
#include "capture/system_sampler.h"
#include "sdk/options.h"

/* options and sampler are borrowed for the life of the session. */
struct amd_settings amd_settings_of(const struct options *options, struct system_sampler *sampler);
/* Whether the session is of AMD's GPUs only, as far as can be seen at its start. */
bool amd_is_alone(const struct options *options);
/* Warns of what was asked for and is not, or is otherwise, on AMD GPUs. */
void amd_warn(gpufl_engine engine, const struct amd_grant *grant);
/* ROCTX's ranges as scopes, as NVTX's; in nvtx.c. */
void roctx_range(enum rocprofiler_range range, const char *text, uint64_t range_id);

#endif
