/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that the look-alike counter APIs hand to each other through the
 * product: the profiler host makes a config image, range profiler and PM
 * sampler read the metrics from it and fill a counter-data image, and the host
 * evaluates that. Both are plain memory of the product's; 8-byte aligned. */
#ifndef FAKES_PROFILER_IMAGE_H
#define FAKES_PROFILER_IMAGE_H

#include <stddef.h>
#include <stdint.h>

enum {
    PROFILER_IMAGE_METRICS_MAX = 64,
    PROFILER_IMAGE_METRIC_BYTES = 128,
    PROFILER_IMAGE_NAME_BYTES = 64,
    CONFIG_IMAGE_MAGIC = 0x47464343,       /* "CCFG" */
    COUNTER_DATA_IMAGE_MAGIC = 0x44504f4c, /* "LOPD", as real ones */
};

struct config_image {
    uint32_t magic;
    char identifier[4]; /* "LOPC", as real ones */
    uint32_t metric_count, pass_count, profiler_type;
    char metrics[PROFILER_IMAGE_METRICS_MAX][PROFILER_IMAGE_METRIC_BYTES];
};

struct counter_data_range { /* or sample */
    char name[PROFILER_IMAGE_NAME_BYTES];
    uint64_t start_ns, end_ns;
    double values[PROFILER_IMAGE_METRICS_MAX]; /* by the image's metrics; NAN: not collected */
};

struct counter_data_image {
    uint32_t magic, metric_count;
    uint32_t count, capacity; /* of ranges */
    char metrics[PROFILER_IMAGE_METRICS_MAX][PROFILER_IMAGE_METRIC_BYTES];
    struct counter_data_range ranges[];
};

static inline size_t counter_data_image_bytes(uint32_t capacity)
{
    return sizeof(struct counter_data_image) + capacity * sizeof(struct counter_data_range);
}

/* What the look-alike GPU measures: from the metric's name, plus the range's number, so that tests can expect it. */
double fake_metric_value(const char *metric, uint32_t range_index);

#endif
