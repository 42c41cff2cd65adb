/* SPDX-License-Identifier: Apache-2.0 */
/* Our own declarations of CUPTI's PM sampling (cupti_pmsampling.h). Every struct starts with its size, which ends
 * with its last member, without tail padding. */
#ifndef GPUFL_DRIVER_PM_SAMPLING_ABI_H
#define GPUFL_DRIVER_PM_SAMPLING_ABI_H

#include "driver/profiler_host_abi.h"

enum { PM_ABI_TRIGGER_SYSCLK = 0, PM_ABI_TRIGGER_TIME = 1 };
enum { PM_ABI_KEEP_OLDEST = 0, PM_ABI_KEEP_LATEST = 1 };
enum { PM_ABI_STOP_OTHER = 0, PM_ABI_STOP_IMAGE_FULL = 1, PM_ABI_STOP_END_OF_RECORDS = 2 };

struct pm_abi_set_config {
    size_t struct_bytes;
    void *priv;
    void *object;
    size_t config_bytes;
    const uint8_t *config;
    size_t hardware_buffer_bytes;
    uint64_t sampling_interval; /* nanoseconds, or cycles of the system clock */
    uint32_t trigger_mode;
    uint32_t append_mode;
};

struct pm_abi_enable {
    size_t struct_bytes;
    void *priv;
    size_t device_index;
    void *object; /* out */
};

struct pm_abi_object { /* disable, start, stop */
    size_t struct_bytes;
    void *priv;
    void *object;
};

struct pm_abi_decode {
    size_t struct_bytes;
    void *priv;
    void *object;
    uint8_t *image;
    size_t image_bytes;
    uint32_t stop_reason; /* out, and the next */
    uint8_t overflow;
};

struct pm_abi_availability {
    size_t struct_bytes;
    void *priv;
    size_t device_index;
    size_t image_bytes; /* out while image is NULL */
    uint8_t *image;
};

struct pm_abi_image_size {
    size_t struct_bytes;
    void *priv;
    void *object;
    const char **metrics;
    size_t metric_count;
    uint32_t max_samples;
    size_t image_bytes; /* out */
};

struct pm_abi_image_initialize {
    size_t struct_bytes;
    void *priv;
    void *object;
    size_t image_bytes;
    uint8_t *image;
};

struct pm_abi_image_info {
    size_t struct_bytes;
    void *priv;
    const uint8_t *image;
    size_t image_bytes;
    size_t total_samples, populated_samples, completed_samples; /* out */
};

struct pm_abi_sample_info {
    size_t struct_bytes;
    void *priv;
    void *object;
    const uint8_t *image;
    size_t image_bytes;
    size_t sample_index;
    uint64_t start_timestamp, end_timestamp; /* out */
};

enum {
    PM_ABI_SET_CONFIG_BYTES = PROFILER_ABI_BYTES(pm_abi_set_config, append_mode),
    PM_ABI_ENABLE_BYTES = PROFILER_ABI_BYTES(pm_abi_enable, object),
    PM_ABI_OBJECT_BYTES = PROFILER_ABI_BYTES(pm_abi_object, object),
    PM_ABI_DECODE_BYTES = PROFILER_ABI_BYTES(pm_abi_decode, overflow),
    PM_ABI_AVAILABILITY_BYTES = PROFILER_ABI_BYTES(pm_abi_availability, image),
    PM_ABI_IMAGE_SIZE_BYTES = PROFILER_ABI_BYTES(pm_abi_image_size, image_bytes),
    PM_ABI_IMAGE_INITIALIZE_BYTES = PROFILER_ABI_BYTES(pm_abi_image_initialize, image),
    PM_ABI_IMAGE_INFO_BYTES = PROFILER_ABI_BYTES(pm_abi_image_info, completed_samples),
    PM_ABI_SAMPLE_INFO_BYTES = PROFILER_ABI_BYTES(pm_abi_sample_info, end_timestamp)
};
_Static_assert(PM_ABI_SET_CONFIG_BYTES == 64, "SetConfig");
_Static_assert(PM_ABI_ENABLE_BYTES == 32, "Enable");
_Static_assert(PM_ABI_OBJECT_BYTES == 24, "Start, Stop, Disable");
_Static_assert(PM_ABI_DECODE_BYTES == 45, "DecodeData");
_Static_assert(PM_ABI_AVAILABILITY_BYTES == 40, "GetCounterAvailability");
_Static_assert(PM_ABI_IMAGE_SIZE_BYTES == 56, "GetCounterDataSize");
_Static_assert(PM_ABI_IMAGE_INITIALIZE_BYTES == 40, "CounterDataImageInitialize");
_Static_assert(PM_ABI_IMAGE_INFO_BYTES == 56, "GetCounterDataInfo");
_Static_assert(PM_ABI_SAMPLE_INFO_BYTES == 64, "CounterDataGetSampleInfo");

/* X(member, symbol, parameters): all return a CUptiResult. */
#define PM_SAMPLING_ABI_FUNCTIONS(X)                                                                          \
    X(get_availability, cuptiPmSamplingGetCounterAvailability, (struct pm_abi_availability * params))         \
    X(enable, cuptiPmSamplingEnable, (struct pm_abi_enable * params))                                         \
    X(set_config, cuptiPmSamplingSetConfig, (struct pm_abi_set_config * params))                              \
    X(get_image_size, cuptiPmSamplingGetCounterDataSize, (struct pm_abi_image_size * params))                 \
    X(initialize_image, cuptiPmSamplingCounterDataImageInitialize, (struct pm_abi_image_initialize * params)) \
    X(start, cuptiPmSamplingStart, (struct pm_abi_object * params))                                           \
    X(decode, cuptiPmSamplingDecodeData, (struct pm_abi_decode * params))                                     \
    X(get_image_info, cuptiPmSamplingGetCounterDataInfo, (struct pm_abi_image_info * params))                 \
    X(get_sample_info, cuptiPmSamplingCounterDataGetSampleInfo, (struct pm_abi_sample_info * params))         \
    X(stop, cuptiPmSamplingStop, (struct pm_abi_object * params))                                             \
    X(disable, cuptiPmSamplingDisable, (struct pm_abi_object * params))

#endif
