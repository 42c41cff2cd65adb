/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI's profiler host: lists chips and metrics, plans the passes of a set of metrics, makes the images that
 * configure a collection, and computes values from collected counters. Needs libcupti and libnvperf_host, but no GPU
 * and no driver. A host belongs to one chip and one kind of profiler and is not thread-safe. */
#ifndef GPUFL_DRIVER_PROFILER_HOST_H
#define GPUFL_DRIVER_PROFILER_HOST_H

#include "driver/cupti.h"

enum profiler_kind { PROFILER_RANGE = 0, PROFILER_PM_SAMPLING = 1 };
enum metric_type { METRIC_COUNTER = 0, METRIC_RATIO = 1, METRIC_THROUGHPUT = 2 };

struct name_list { /* one allocation; names[i] point into it */
    const char **names;
    size_t count;
};
void name_list_free(struct name_list *list);

struct metric_properties {
    char *description, *hardware_unit, *unit; /* owned; "" when CUPTI has none */
    enum metric_type type;
};
void metric_properties_free(struct metric_properties *properties);

struct metric_plan {
    uint8_t *image; /* config image for the target side; owned */
    size_t image_bytes;
    size_t passes;
};
void metric_plan_free(struct metric_plan *plan);

struct profiler_host; /* opaque */

/* fn is called when the host's library has created its first object, and again when it computed its first value.
 * What the library registered by then is destroyed at exit before anything registered earlier: a user of the host
 * that must run before that has to register with atexit again. Call it once, before the first host. */
void profiler_host_on_use(void (*fn)(void));

/* In CUPTI's order. */
NODISCARD gpufl_status profiler_host_chips(struct cupti *cupti, struct name_list *chips, struct problem *problem);
/* GPUFL_E_INVALID names the nearest chip; GPUFL_E_NOT_FOUND: libnvperf_host is missing, and where it was searched.
 * availability: image from the device (may be NULL: everything the chip can have). */
NODISCARD gpufl_status profiler_host_open(struct profiler_host **out, struct cupti *cupti, const char *chip,
                                          enum profiler_kind kind, const uint8_t *availability,
                                          size_t availability_bytes, struct problem *problem);
void profiler_host_close(struct profiler_host *host);
NODISCARD gpufl_status profiler_host_base_metrics(struct profiler_host *host, enum metric_type type,
                                                  struct name_list *metrics, struct problem *problem);
NODISCARD gpufl_status profiler_host_sub_metrics(struct profiler_host *host, const char *metric, enum metric_type type,
                                                 struct name_list *metrics, struct problem *problem);
NODISCARD gpufl_status profiler_host_properties(struct profiler_host *host, const char *metric,
                                                struct metric_properties *properties, struct problem *problem);
/* Whether a plan may include it. GPUFL_E_INVALID has the reason why not. Plans the metric, so call it before making
 * the plan that values are evaluated with. */
NODISCARD gpufl_status profiler_host_check(struct profiler_host *host, const char *metric, struct problem *problem);
/* Config image and passes of exactly these metrics; GPUFL_E_INVALID names the invalid metric and the nearest one. */
NODISCARD gpufl_status profiler_host_plan(struct profiler_host *host, const char *const *metrics, size_t metric_count,
                                          struct metric_plan *plan, struct problem *problem);
/* For an unchanged image of a plan: CUPTI does not check it. GPUFL_E_DAMAGED: it is clearly not an image. */
NODISCARD gpufl_status profiler_host_passes(struct profiler_host *host, const uint8_t *image, size_t image_bytes,
                                            size_t *passes, struct problem *problem);
NODISCARD gpufl_status profiler_host_metrics_per_pass(struct profiler_host *host, size_t *count,
                                                      struct problem *problem);
/* Values of one range or sample; NaN for a value that is not in the counters. */
NODISCARD gpufl_status profiler_host_evaluate(struct profiler_host *host, const uint8_t *counter_data,
                                              size_t counter_data_bytes, size_t range_index, const char *const *metrics,
                                              size_t metric_count, double *values, struct problem *problem);
/* CUPTI's own single-pass sets of metrics for PM sampling (CUDA 13.2 and newer, else GPUFL_E_UNSUPPORTED). */
NODISCARD gpufl_status profiler_host_single_pass_sets(struct cupti *cupti, const char *chip, struct name_list *sets,
                                                      struct problem *problem);
NODISCARD gpufl_status profiler_host_single_pass_metrics(struct cupti *cupti, const char *chip, const char *set,
                                                         struct name_list *metrics, struct problem *problem);

#endif
