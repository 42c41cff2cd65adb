/* SPDX-License-Identifier: Apache-2.0
 *
 * gpufl: the metrics of NVIDIA GPUs, over CUPTI's profiler host. Which chips
 * and metrics there are, how many passes a choice of metrics takes, the image
 * that configures a collection, and values out of collected counters.
 *
 * Needs CUPTI (libcupti and libnvperf_host, CUDA 12.6 or newer) but no GPU and
 * no driver, and no gpufl session. A host may be used by one thread at a time;
 * different hosts and the functions without one are thread-safe. Every failure
 * has its reason in gpufl_last_error; GPUFL_E_INVALID names the nearest valid
 * chip, metric or suffix. What a call gives out, the caller frees with the
 * function named beside it; on failure nothing is given out. */
#ifndef GPUFL_PROFILER_HOST_H
#define GPUFL_PROFILER_HOST_H

#include <gpufl/gpufl.h>

#if defined(GPUFL_DISABLE) || defined(GPUFL_CLIENT)
#error "gpufl/profiler_host.h needs a program that is linked with libgpufl, without GPUFL_CLIENT and GPUFL_DISABLE"
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpufl_profiler_host gpufl_profiler_host;

typedef enum gpufl_profiler_kind {
    GPUFL_PROFILER_RANGE = 0,      /* exact counters per kernel or range, in as many passes as it takes */
    GPUFL_PROFILER_PM_SAMPLING = 1 /* counters of the whole GPU over time, in one pass */
} gpufl_profiler_kind;

typedef enum gpufl_metric_type {
    GPUFL_METRIC_COUNTER = 0,
    GPUFL_METRIC_RATIO = 1,
    GPUFL_METRIC_THROUGHPUT = 2
} gpufl_metric_type;

/* What a call gives out is written into a structure of the caller, up to the size that its first member states: start
 * from its INIT. New fields go at the end only. */
typedef struct gpufl_name_list {
    uint32_t struct_size; /* set by GPUFL_NAME_LIST_INIT */
    const char **names;
    size_t count;
    /* End of 1.0. */
} gpufl_name_list;
#define GPUFL_NAME_LIST_INIT             \
    {                                    \
        sizeof(gpufl_name_list), NULL, 0 \
    }
GPUFL_API void gpufl_name_list_free(gpufl_name_list *list);

typedef struct gpufl_metric_properties {
    uint32_t struct_size; /* set by GPUFL_METRIC_PROPERTIES_INIT */
    gpufl_metric_type type;
    char *description;
    char *hardware_unit; /* "sm", "lts", ... */
    char *unit;          /* "byte", "percent", ...; "" when it has none */
    /* End of 1.0. */
} gpufl_metric_properties;
#define GPUFL_METRIC_PROPERTIES_INIT                                            \
    {                                                                           \
        sizeof(gpufl_metric_properties), GPUFL_METRIC_COUNTER, NULL, NULL, NULL \
    }
GPUFL_API void gpufl_metric_properties_free(gpufl_metric_properties *properties);

/* What configures a collection on the device. */
typedef struct gpufl_config_image {
    uint32_t struct_size; /* set by GPUFL_CONFIG_IMAGE_INIT */
    uint8_t *bytes;
    size_t size;
    size_t passes;
    /* End of 1.0. */
} gpufl_config_image;
#define GPUFL_CONFIG_IMAGE_INIT                \
    {                                          \
        sizeof(gpufl_config_image), NULL, 0, 0 \
    }
GPUFL_API void gpufl_config_image_free(gpufl_config_image *image);

/* Every chip this CUPTI knows, like "GH100". */
GPUFL_API gpufl_status gpufl_profiler_host_chips(gpufl_name_list *chips);
/* The chip of a CUDA device; the program must have initialized CUDA, else GPUFL_E_NO_DRIVER. */
GPUFL_API gpufl_status gpufl_profiler_host_device_chip(uint32_t device, char *chip, size_t chip_size);

/* availability: the image that CUPTI gives for a device, to leave out counters that it lacks; NULL and 0: everything
 * the chip can have. */
GPUFL_API gpufl_status gpufl_profiler_host_open(gpufl_profiler_host **host, const char *chip, gpufl_profiler_kind kind,
                                                const uint8_t *availability, size_t availability_size);
GPUFL_API void gpufl_profiler_host_close(gpufl_profiler_host *host); /* NULL is a no-op */

/* Names without suffix, like "sm__throughput". */
GPUFL_API gpufl_status gpufl_profiler_host_base_metrics(gpufl_profiler_host *host, gpufl_metric_type type,
                                                        gpufl_name_list *metrics);
/* The suffixes of a metric, like ".avg.pct_of_peak_sustained_active". */
GPUFL_API gpufl_status gpufl_profiler_host_sub_metrics(gpufl_profiler_host *host, const char *metric,
                                                       gpufl_metric_type type, gpufl_name_list *suffixes);
/* With or without suffix. */
GPUFL_API gpufl_status gpufl_profiler_host_metric_properties(gpufl_profiler_host *host, const char *metric,
                                                             gpufl_metric_properties *properties);

/* For exactly these metrics, with suffixes; each call starts anew. */
GPUFL_API gpufl_status gpufl_profiler_host_config_image(gpufl_profiler_host *host, const char *const *metrics,
                                                        size_t metric_count, gpufl_config_image *image);
/* Of a config image, e.g. one kept in a file. It must be whole and unchanged: CUPTI does not check it, and may crash.
 * GPUFL_E_DAMAGED: it is plainly none. */
GPUFL_API gpufl_status gpufl_profiler_host_passes(gpufl_profiler_host *host, const uint8_t *image, size_t image_size,
                                                  size_t *passes);
/* The most hardware counters that one pass can take. */
GPUFL_API gpufl_status gpufl_profiler_host_metrics_per_pass(gpufl_profiler_host *host, size_t *count);

/* Values of one range or sample of decoded counter data, in the order of the metrics. NaN: not measured. */
GPUFL_API gpufl_status gpufl_profiler_host_evaluate(gpufl_profiler_host *host, const uint8_t *counter_data,
                                                    size_t counter_data_size, size_t range_index,
                                                    const char *const *metrics, size_t metric_count, double *values);

/* CUPTI's own sets of metrics that PM sampling takes in one pass. CUDA 13.2 and newer, else GPUFL_E_UNSUPPORTED. */
GPUFL_API gpufl_status gpufl_profiler_host_single_pass_sets(const char *chip, gpufl_name_list *sets);
GPUFL_API gpufl_status gpufl_profiler_host_single_pass_metrics(const char *chip, const char *set,
                                                               gpufl_name_list *metrics);

#ifdef __cplusplus
}
#endif

#endif
