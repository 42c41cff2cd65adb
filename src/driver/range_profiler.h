/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI's range profiler on one context: exact counters per kernel (auto range, kernel replay) or per named range
 * (user range; the caller repeats the range until all passes are collected). The caller serializes all calls of one
 * profiler, and ensures that no kernel is being launched into the context while it starts, stops, decodes or closes.
 * Needs an acquired profiler (profiler_target.h) while it is open. */
#ifndef GPUFL_DRIVER_RANGE_PROFILER_H
#define GPUFL_DRIVER_RANGE_PROFILER_H

#include "driver/profiler_host.h"

struct range_profiler; /* opaque */

NODISCARD gpufl_status range_profiler_open(struct range_profiler **out, struct cupti *cupti, void *context,
                                           struct problem *problem);
/* Ends profiling of the context; counters that were not decoded are lost. NULL is a no-op. */
void range_profiler_close(struct range_profiler *profiler);

/* Size of the caller's memory (aligned to 8) for the counters of `ranges_max` ranges. */
NODISCARD gpufl_status range_profiler_image_bytes(struct range_profiler *profiler, const char *const *metrics,
                                                  size_t metric_count, size_t ranges_max, size_t *bytes,
                                                  struct problem *problem);
/* Initializes the memory as an image without ranges. */
NODISCARD gpufl_status range_profiler_image_reset(struct range_profiler *profiler, uint8_t *image, size_t image_bytes,
                                                  struct problem *problem);

/* The next pass; {0, 1} is the first. */
struct range_place {
    size_t pass_index, nesting_level;
};
enum range_kind { RANGE_KERNELS, RANGE_NAMED };
struct range_config {
    enum range_kind kind;
    const struct metric_plan *plan;
    uint8_t *image; /* borrowed until the next configure or close; must have been reset once */
    size_t image_bytes, ranges_max;
    /* RANGE_NAMED: any place other than the first continues where an earlier stop with the same image ended. CUPTI
     * supports that for one pass at a time: configure again before the next. */
    struct range_place place;
};
NODISCARD gpufl_status range_profiler_configure(struct range_profiler *profiler, const struct range_config *config,
                                                struct problem *problem);
NODISCARD gpufl_status range_profiler_start(struct range_profiler *profiler, struct problem *problem);
NODISCARD gpufl_status range_profiler_push(struct range_profiler *profiler, const char *name, struct problem *problem);
NODISCARD gpufl_status range_profiler_pop(struct range_profiler *profiler, struct problem *problem);
struct range_pass {
    struct range_place next;
    bool is_last; /* all passes have been submitted */
};
NODISCARD gpufl_status range_profiler_stop(struct range_profiler *profiler, struct range_pass *pass,
                                           struct problem *problem);
/* Moves the data collected since the last decode to the configured image. Waits for the context's work. */
NODISCARD gpufl_status range_profiler_decode(struct range_profiler *profiler, size_t *dropped, struct problem *problem);

/* Works on a decoded image; any thread, no context needed. */
NODISCARD gpufl_status range_image_count(struct cupti *cupti, const uint8_t *image, size_t image_bytes, size_t *count,
                                         struct problem *problem);
NODISCARD gpufl_status range_image_name(struct cupti *cupti, const uint8_t *image, size_t image_bytes, size_t index,
                                        char *name, size_t name_bytes, struct problem *problem);

#endif
