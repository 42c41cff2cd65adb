/* SPDX-License-Identifier: Apache-2.0 */
/* Which engine a session runs, given what was requested and what the GPU libraries granted. */
#ifndef GPUFL_SDK_ENGINE_CHOICE_H
#define GPUFL_SDK_ENGINE_CHOICE_H

#include "capture/collector.h"
#include "sdk/options.h"

/* The current state; a part of `deep` (NULL: none) may still be refused when the first context on a GPU is created.
 * why (NULL: not asked for): set if a part was refused. */
gpufl_engine engine_granted(const struct options *options, const struct trace_grant *grant, struct deep *deep,
                            struct problem *why);
/* At the start: also completes the grant's reason and warns when kernels are not recorded. */
gpufl_engine engine_choose(const struct options *options, struct trace_grant *grant, struct deep *deep);
/* Tells the user that a lower engine runs. why: may be empty. */
void engine_warn(gpufl_engine wanted, gpufl_engine engine, const struct problem *why);

#endif
