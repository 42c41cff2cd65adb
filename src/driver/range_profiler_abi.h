/* SPDX-License-Identifier: Apache-2.0 */
/* Our own declarations of CUPTI's range profiler (cupti_range_profiler.h, 12.6 and newer), compared with the
 * toolkit's header by tests/unit/test_range_profiler_abi.c. Every struct starts with its size, without the padding
 * at its end. */
#ifndef GPUFL_DRIVER_RANGE_PROFILER_ABI_H
#define GPUFL_DRIVER_RANGE_PROFILER_ABI_H

#include "driver/profiler_host_abi.h"

/* CUpti_ProfilerRange */
enum { RANGE_ABI_AUTO = 1, RANGE_ABI_USER = 2 };
/* CUpti_ProfilerReplayMode */
enum { RANGE_ABI_REPLAY_APPLICATION = 1, RANGE_ABI_REPLAY_KERNEL = 2, RANGE_ABI_REPLAY_USER = 3 };

struct range_abi_set_config {
    size_t struct_bytes;
    void *priv;
    void *object;
    size_t config_bytes;
    const uint8_t *config;
    size_t image_bytes;
    uint8_t *image;
    uint32_t range;
    uint32_t replay_mode;
    size_t ranges_per_pass_max;
    uint16_t nesting_level_count, nesting_level_min;
    size_t pass_index;
    uint16_t nesting_level_target;
};
enum { RANGE_ABI_SET_CONFIG_BYTES = PROFILER_ABI_BYTES(range_abi_set_config, nesting_level_target) };

struct range_abi_enable {
    size_t struct_bytes;
    void *priv;
    void *context;
    void *object; /* out */
};
enum { RANGE_ABI_ENABLE_BYTES = PROFILER_ABI_BYTES(range_abi_enable, object) };

struct range_abi_object { /* disable, start, pop */
    size_t struct_bytes;
    void *priv;
    void *object;
};
enum { RANGE_ABI_OBJECT_BYTES = PROFILER_ABI_BYTES(range_abi_object, object) };

struct range_abi_stop {
    size_t struct_bytes;
    void *priv;
    void *object;
    size_t pass_index, nesting_level_target; /* out: of the next pass */
    uint8_t is_all_submitted;                /* out */
};
enum { RANGE_ABI_STOP_BYTES = PROFILER_ABI_BYTES(range_abi_stop, is_all_submitted) };

struct range_abi_push {
    size_t struct_bytes;
    void *priv;
    void *object;
    const char *name;
};
enum { RANGE_ABI_PUSH_BYTES = PROFILER_ABI_BYTES(range_abi_push, name) };

struct range_abi_decode {
    size_t struct_bytes;
    void *priv;
    void *object;
    size_t dropped_count; /* out */
};
enum { RANGE_ABI_DECODE_BYTES = PROFILER_ABI_BYTES(range_abi_decode, dropped_count) };

struct range_abi_image_size {
    size_t struct_bytes;
    void *priv;
    void *object;
    const char **metric_names;
    size_t metric_count;
    size_t ranges_max;
    uint32_t tree_nodes_max; /* >= ranges_max */
    size_t image_bytes;      /* out */
};
enum { RANGE_ABI_IMAGE_SIZE_BYTES = PROFILER_ABI_BYTES(range_abi_image_size, image_bytes) };

struct range_abi_image_initialize {
    size_t struct_bytes;
    void *priv;
    void *object;
    size_t image_bytes;
    uint8_t *image;
};
enum { RANGE_ABI_IMAGE_INITIALIZE_BYTES = PROFILER_ABI_BYTES(range_abi_image_initialize, image) };

struct range_abi_image_info {
    size_t struct_bytes;
    void *priv;
    const uint8_t *image;
    size_t image_bytes;
    size_t range_count; /* out */
};
enum { RANGE_ABI_IMAGE_INFO_BYTES = PROFILER_ABI_BYTES(range_abi_image_info, range_count) };

struct range_abi_range_info {
    size_t struct_bytes;
    void *priv;
    const uint8_t *image;
    size_t image_bytes;
    size_t range_index;
    const char *delimiter;
    const char *range_name; /* out; CUPTI's */
};
enum { RANGE_ABI_RANGE_INFO_BYTES = PROFILER_ABI_BYTES(range_abi_range_info, range_name) };

#if UINTPTR_MAX == 0xffffffffffffffffu
_Static_assert(RANGE_ABI_SET_CONFIG_BYTES == 90, "cuptiRangeProfilerSetConfig");
_Static_assert(RANGE_ABI_ENABLE_BYTES == 32, "cuptiRangeProfilerEnable");
_Static_assert(RANGE_ABI_OBJECT_BYTES == 24, "cuptiRangeProfilerStart");
_Static_assert(RANGE_ABI_STOP_BYTES == 41, "cuptiRangeProfilerStop");
_Static_assert(RANGE_ABI_PUSH_BYTES == 32, "cuptiRangeProfilerPushRange");
_Static_assert(RANGE_ABI_DECODE_BYTES == 32, "cuptiRangeProfilerDecodeData");
_Static_assert(RANGE_ABI_IMAGE_SIZE_BYTES == 64, "cuptiRangeProfilerGetCounterDataSize");
_Static_assert(RANGE_ABI_IMAGE_INITIALIZE_BYTES == 40, "cuptiRangeProfilerCounterDataImageInitialize");
_Static_assert(RANGE_ABI_IMAGE_INFO_BYTES == 40, "cuptiRangeProfilerGetCounterDataInfo");
_Static_assert(RANGE_ABI_RANGE_INFO_BYTES == 56, "cuptiRangeProfilerCounterDataGetRangeInfo");
#endif

/* X(member, symbol, struct of its parameter) */
#define RANGE_ABI_FUNCTIONS(X)                                                                    \
    X(enable, cuptiRangeProfilerEnable, range_abi_enable)                                         \
    X(disable, cuptiRangeProfilerDisable, range_abi_object)                                       \
    X(set_config, cuptiRangeProfilerSetConfig, range_abi_set_config)                              \
    X(start, cuptiRangeProfilerStart, range_abi_object)                                           \
    X(stop, cuptiRangeProfilerStop, range_abi_stop)                                               \
    X(push, cuptiRangeProfilerPushRange, range_abi_push)                                          \
    X(pop, cuptiRangeProfilerPopRange, range_abi_object)                                          \
    X(decode, cuptiRangeProfilerDecodeData, range_abi_decode)                                     \
    X(image_size, cuptiRangeProfilerGetCounterDataSize, range_abi_image_size)                     \
    X(image_initialize, cuptiRangeProfilerCounterDataImageInitialize, range_abi_image_initialize) \
    X(image_info, cuptiRangeProfilerGetCounterDataInfo, range_abi_image_info)                     \
    X(range_info, cuptiRangeProfilerCounterDataGetRangeInfo, range_abi_range_info)

#endif
