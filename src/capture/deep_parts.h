/* SPDX-License-Identifier: Apache-2.0 */
/* struct deep, shared by deep.c (contexts, launches, the end) and deep_parts.c (creation of an engine's parts). */
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
    _Atomic bool is_tracing; /* kernels are traced although ranges were requested: range counters are unavailable */
    _Atomic bool has_context;
    uint64_t graph_kernels; /* of graphs, as reported so far; the collector's */
};

/* Each requests its grant. If a part cannot be made the grant is refused, and its member stays NULL. */
void deep_keep_code(struct deep *deep);
void deep_make_sampler(struct deep *deep);
void deep_make_windows(struct deep *deep); /* after the sampler */
void deep_make_ranges(struct deep *deep);
void deep_make_pm(struct deep *deep);

#endif
