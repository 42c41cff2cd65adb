/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of struct deep, for deep.c (contexts, launches, the end) and
 * deep_parts.c, which makes the parts that an engine has. */
#ifndef GPUFL_CAPTURE_DEEP_PARTS_H
#define GPUFL_CAPTURE_DEEP_PARTS_H

#include "capture/code_store.h"
#include "capture/deep.h"
#include "capture/deep_windows.h"
#include "capture/pm_sampler.h"
#include "capture/range_counters.h"

struct deep {
    struct deep_options options;
    struct cupti_listener listener;
    struct pc_sampler *sampler;
    struct sass_counters *counters;
    struct deep_windows *windows; /* SassMetrics and Deep */
    struct range_counters *ranges;
    struct pm_sampler *pm;
    bool keeps_code;
    struct deep_grants grants;
    _Atomic bool is_tracing; /* kernels, although ranges were asked for: they are not to be had */
    _Atomic bool has_context;
    uint64_t graph_kernels; /* that were told of, of graphs; the collector's */
};

/* Each asks for its grant; one that cannot be made is refused there, and its member stays NULL. */
void deep_keep_code(struct deep *deep);
void deep_make_sampler(struct deep *deep);
void deep_make_windows(struct deep *deep); /* after the sampler */
void deep_make_ranges(struct deep *deep);
void deep_make_pm(struct deep *deep);

#endif
