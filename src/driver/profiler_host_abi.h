/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI's profiler host (cupti_profiler_host.h, which is C++ until 13.2) and the declarations of
 * cupti_profiler_target.h and cupti_target.h that all counter APIs share: our own, compared with the toolkit's
 * headers by tests/unit/test_profiler_host_abi.cpp. Every struct starts with its size, without the padding at its
 * end. */
#ifndef GPUFL_DRIVER_PROFILER_HOST_ABI_H
#define GPUFL_DRIVER_PROFILER_HOST_ABI_H

#include "driver/cupti_abi.h"

/* The value of struct_bytes: the size up to the end of the last member. */
#define PROFILER_ABI_BYTES(type, last) (offsetof(struct type, last) + sizeof(((struct type *)0)->last))

/* CUptiResult of the counter APIs, in addition to those of cupti_abi.h */
enum {
    PROFILER_ABI_INVALID_PARAMETER = 1, /* also an unknown metric */
    PROFILER_ABI_INVALID_DEVICE = 2,
    PROFILER_ABI_INVALID_CONTEXT = 3,
    PROFILER_ABI_INVALID_OPERATION = 7,
    PROFILER_ABI_OUT_OF_MEMORY = 8,
    PROFILER_ABI_NOT_COMPATIBLE = 14,
    PROFILER_ABI_INVALID_METRIC_NAME = 17,
    PROFILER_ABI_HARDWARE_BUSY = 26,
    PROFILER_ABI_NOT_SUPPORTED = 27,
    PROFILER_ABI_VIRTUALIZED_DEVICE = 33,
    PROFILER_ABI_OLD_PROFILER_API = 36,
    PROFILER_ABI_LEGACY_PROFILER = 38,
    PROFILER_ABI_VIRTUALIZED_PRIVILEGES = 40,
    PROFILER_ABI_CONFIDENTIAL_COMPUTING = 41,
    PROFILER_ABI_CMP_DEVICE = 42,
    PROFILER_ABI_MIG_DEVICE = 43,
    PROFILER_ABI_SLI_DEVICE = 44,
    PROFILER_ABI_WSL_DEVICE = 45,
    PROFILER_ABI_INVALID_CHIP_NAME = 46
};

/* CUpti_Profiler_Support_Level */
enum {
    PROFILER_ABI_SUPPORT_UNKNOWN = 0,
    PROFILER_ABI_SUPPORT_UNSUPPORTED = 1,
    PROFILER_ABI_SUPPORT_DISABLED = 2,
    PROFILER_ABI_SUPPORT_SUPPORTED = 3
};

/* ---- target side ---- */

struct profiler_abi_initialize { /* and de-initialize */
    size_t struct_bytes;
    void *priv;
};
enum { PROFILER_ABI_INITIALIZE_BYTES = PROFILER_ABI_BYTES(profiler_abi_initialize, priv) };

struct profiler_abi_device_supported {
    size_t struct_bytes;
    void *priv;
    int32_t device;
    uint32_t is_supported, architecture, sli, vgpu, confidential_compute, cmp, wsl; /* out: support levels */
    uint32_t api;                                                                   /* in */
};
enum { PROFILER_ABI_DEVICE_SUPPORTED_BYTES = PROFILER_ABI_BYTES(profiler_abi_device_supported, api) };

struct profiler_abi_availability {
    size_t struct_bytes;
    void *priv;
    void *context;
    size_t image_bytes; /* in and out */
    uint8_t *image;     /* NULL: returns the size */
};
enum { PROFILER_ABI_AVAILABILITY_BYTES = PROFILER_ABI_BYTES(profiler_abi_availability, image) };

struct profiler_abi_chip_name {
    size_t struct_bytes;
    void *priv;
    size_t device_index;
    const char *chip_name; /* out */
};
enum { PROFILER_ABI_CHIP_NAME_BYTES = PROFILER_ABI_BYTES(profiler_abi_chip_name, chip_name) };

/* ---- host side ---- */

struct profiler_abi_host_initialize {
    size_t struct_bytes;
    void *priv;
    uint32_t profiler_type;
    const char *chip_name;
    const uint8_t *availability;
    void *host; /* out */
};
enum { PROFILER_ABI_HOST_INITIALIZE_BYTES = PROFILER_ABI_BYTES(profiler_abi_host_initialize, host) };

struct profiler_abi_host_deinitialize {
    size_t struct_bytes;
    void *priv;
    void *host;
};
enum { PROFILER_ABI_HOST_DEINITIALIZE_BYTES = PROFILER_ABI_BYTES(profiler_abi_host_deinitialize, host) };

struct profiler_abi_host_chips {
    size_t struct_bytes;
    void *priv;
    size_t chip_count;             /* out */
    const char *const *chip_names; /* out */
};
enum { PROFILER_ABI_HOST_CHIPS_BYTES = PROFILER_ABI_BYTES(profiler_abi_host_chips, chip_names) };

struct profiler_abi_host_base_metrics {
    size_t struct_bytes;
    void *priv;
    void *host;
    uint32_t metric_type;
    const char **metric_names; /* out */
    size_t metric_count;       /* out */
};
enum { PROFILER_ABI_HOST_BASE_METRICS_BYTES = PROFILER_ABI_BYTES(profiler_abi_host_base_metrics, metric_count) };

struct profiler_abi_host_sub_metrics {
    size_t struct_bytes;
    void *priv;
    void *host;
    uint32_t metric_type;
    const char *metric_name;
    size_t sub_metric_count;  /* out */
    const char **sub_metrics; /* out */
};
enum { PROFILER_ABI_HOST_SUB_METRICS_BYTES = PROFILER_ABI_BYTES(profiler_abi_host_sub_metrics, sub_metrics) };

struct profiler_abi_host_properties {
    size_t struct_bytes;
    void *priv;
    void *host;
    const char *metric_name;
    const char *description, *hardware_unit, *dimension_unit; /* out */
    uint32_t metric_type;                                     /* out */
};
enum { PROFILER_ABI_HOST_PROPERTIES_BYTES = PROFILER_ABI_BYTES(profiler_abi_host_properties, metric_type) };

struct profiler_abi_host_evaluate {
    size_t struct_bytes;
    void *priv;
    void *host;
    const uint8_t *counter_data;
    size_t counter_data_bytes;
    size_t range_index;
    const char **metric_names;
    size_t metric_count;
    double *values; /* out */
};
enum { PROFILER_ABI_HOST_EVALUATE_BYTES = PROFILER_ABI_BYTES(profiler_abi_host_evaluate, values) };

struct profiler_abi_host_add_metrics {
    size_t struct_bytes;
    void *priv;
    void *host;
    const char **metric_names;
    size_t metric_count;
};
enum { PROFILER_ABI_HOST_ADD_METRICS_BYTES = PROFILER_ABI_BYTES(profiler_abi_host_add_metrics, metric_count) };

struct profiler_abi_host_image_size {
    size_t struct_bytes;
    void *priv;
    void *host;
    size_t image_bytes; /* out */
};
enum { PROFILER_ABI_HOST_IMAGE_SIZE_BYTES = PROFILER_ABI_BYTES(profiler_abi_host_image_size, image_bytes) };

struct profiler_abi_host_image {
    size_t struct_bytes;
    void *priv;
    void *host;
    size_t image_bytes;
    uint8_t *image;
};
enum { PROFILER_ABI_HOST_IMAGE_BYTES = PROFILER_ABI_BYTES(profiler_abi_host_image, image) };

struct profiler_abi_host_passes {
    size_t struct_bytes;
    void *priv;
    size_t image_bytes;
    uint8_t *image;
    size_t pass_count; /* out */
};
enum { PROFILER_ABI_HOST_PASSES_BYTES = PROFILER_ABI_BYTES(profiler_abi_host_passes, pass_count) };

struct profiler_abi_host_per_pass {
    size_t struct_bytes;
    void *priv;
    uint32_t profiler_type;
    const char *chip_name;
    uint8_t *availability;
    size_t metric_count; /* out */
};
enum { PROFILER_ABI_HOST_PER_PASS_BYTES = PROFILER_ABI_BYTES(profiler_abi_host_per_pass, metric_count) };

/* CUDA 13.2 and newer */
struct profiler_abi_host_single_pass_sets {
    size_t struct_bytes;
    void *priv;
    const char *chip_name;
    size_t set_count;       /* out, of a first call */
    const char **set_names; /* NULL: returns the count; otherwise that many pointers, filled in by CUPTI */
};
enum { PROFILER_ABI_HOST_SINGLE_PASS_SETS_BYTES = PROFILER_ABI_BYTES(profiler_abi_host_single_pass_sets, set_names) };

/* CUDA 13.2 and newer */
struct profiler_abi_host_single_pass_metrics {
    size_t struct_bytes;
    void *priv;
    const char *chip_name;
    const char *set_name;
    size_t metric_count; /* out of a first call, in of a second */
    size_t text_bytes;   /* likewise */
    size_t *offsets;     /* NULL: returns both counts; otherwise the offset of each name in text */
    uint8_t *text;
};
enum { PROFILER_ABI_HOST_SINGLE_PASS_METRICS_BYTES = PROFILER_ABI_BYTES(profiler_abi_host_single_pass_metrics, text) };

_Static_assert(PROFILER_ABI_INITIALIZE_BYTES == 16, "cuptiProfilerInitialize");
_Static_assert(PROFILER_ABI_DEVICE_SUPPORTED_BYTES == 52, "cuptiProfilerDeviceSupported");
_Static_assert(PROFILER_ABI_AVAILABILITY_BYTES == 40, "cuptiProfilerGetCounterAvailability");
_Static_assert(PROFILER_ABI_CHIP_NAME_BYTES == 32, "cuptiDeviceGetChipName");
_Static_assert(PROFILER_ABI_HOST_INITIALIZE_BYTES == 48, "cuptiProfilerHostInitialize");
_Static_assert(PROFILER_ABI_HOST_DEINITIALIZE_BYTES == 24, "cuptiProfilerHostDeinitialize");
_Static_assert(PROFILER_ABI_HOST_CHIPS_BYTES == 32, "cuptiProfilerHostGetSupportedChips");
_Static_assert(PROFILER_ABI_HOST_BASE_METRICS_BYTES == 48, "cuptiProfilerHostGetBaseMetrics");
_Static_assert(PROFILER_ABI_HOST_SUB_METRICS_BYTES == 56, "cuptiProfilerHostGetSubMetrics");
_Static_assert(PROFILER_ABI_HOST_PROPERTIES_BYTES == 60, "cuptiProfilerHostGetMetricProperties");
_Static_assert(PROFILER_ABI_HOST_EVALUATE_BYTES == 72, "cuptiProfilerHostEvaluateToGpuValues");
_Static_assert(PROFILER_ABI_HOST_ADD_METRICS_BYTES == 40, "cuptiProfilerHostConfigAddMetrics");
_Static_assert(PROFILER_ABI_HOST_IMAGE_SIZE_BYTES == 32, "cuptiProfilerHostGetConfigImageSize");
_Static_assert(PROFILER_ABI_HOST_IMAGE_BYTES == 40, "cuptiProfilerHostGetConfigImage");
_Static_assert(PROFILER_ABI_HOST_PASSES_BYTES == 40, "cuptiProfilerHostGetNumOfPasses");
_Static_assert(PROFILER_ABI_HOST_PER_PASS_BYTES == 48, "cuptiProfilerHostGetMaxNumHardwareMetricsPerPass");
_Static_assert(PROFILER_ABI_HOST_SINGLE_PASS_SETS_BYTES == 40, "cuptiProfilerHostGetSinglePassSets");
_Static_assert(PROFILER_ABI_HOST_SINGLE_PASS_METRICS_BYTES == 64, "cuptiProfilerHostGetMetricsInSinglePassSet");

/* X(member, symbol, struct of its parameter) */
#define PROFILER_TARGET_ABI_FUNCTIONS(X)                                             \
    X(initialize, cuptiProfilerInitialize, profiler_abi_initialize)                  \
    X(deinitialize, cuptiProfilerDeInitialize, profiler_abi_initialize)              \
    X(device_supported, cuptiProfilerDeviceSupported, profiler_abi_device_supported) \
    X(availability, cuptiProfilerGetCounterAvailability, profiler_abi_availability)  \
    X(chip_name, cuptiDeviceGetChipName, profiler_abi_chip_name)

#define PROFILER_HOST_ABI_FUNCTIONS(X)                                                          \
    X(initialize, cuptiProfilerHostInitialize, profiler_abi_host_initialize)                    \
    X(deinitialize, cuptiProfilerHostDeinitialize, profiler_abi_host_deinitialize)              \
    X(chips, cuptiProfilerHostGetSupportedChips, profiler_abi_host_chips)                       \
    X(base_metrics, cuptiProfilerHostGetBaseMetrics, profiler_abi_host_base_metrics)            \
    X(sub_metrics, cuptiProfilerHostGetSubMetrics, profiler_abi_host_sub_metrics)               \
    X(properties, cuptiProfilerHostGetMetricProperties, profiler_abi_host_properties)           \
    X(evaluate, cuptiProfilerHostEvaluateToGpuValues, profiler_abi_host_evaluate)               \
    X(add_metrics, cuptiProfilerHostConfigAddMetrics, profiler_abi_host_add_metrics)            \
    X(image_size, cuptiProfilerHostGetConfigImageSize, profiler_abi_host_image_size)            \
    X(image, cuptiProfilerHostGetConfigImage, profiler_abi_host_image)                          \
    X(passes, cuptiProfilerHostGetNumOfPasses, profiler_abi_host_passes)                        \
    X(per_pass, cuptiProfilerHostGetMaxNumHardwareMetricsPerPass, profiler_abi_host_per_pass)   \
    X(single_pass_sets, cuptiProfilerHostGetSinglePassSets, profiler_abi_host_single_pass_sets) \
    X(single_pass_metrics, cuptiProfilerHostGetMetricsInSinglePassSet, profiler_abi_host_single_pass_metrics)

#endif
