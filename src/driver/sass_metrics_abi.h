/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI's SASS metrics (cupti_sass_metrics.h): our own declarations, compared
 * with the toolkit's header by tests/unit/test_sass_metrics_abi.c. Every
 * parameter struct starts with its size, without the padding at its end. */
#ifndef GPUFL_DRIVER_SASS_METRICS_ABI_H
#define GPUFL_DRIVER_SASS_METRICS_ABI_H

#include "driver/profiler_host_abi.h"

enum { SASS_ABI_PARAMETER_SIZE_NOT_SUFFICIENT = 10 }; /* CUptiResult */
enum { SASS_ABI_GRANULARITY_GPU = 0 };                /* one value for the whole GPU, not one per multiprocessor */

struct sass_abi_metric {
    uint64_t id;
    const char *name, *description; /* CUPTI's */
};

struct sass_abi_metric_count {
    size_t struct_bytes;
    void *priv;
    const char *chip_name;
    size_t metric_count; /* out */
};
enum { SASS_ABI_METRIC_COUNT_BYTES = PROFILER_ABI_BYTES(sass_abi_metric_count, metric_count) };

struct sass_abi_metric_list {
    size_t struct_bytes;
    void *priv;
    const char *chip_name;
    size_t metric_count;
    struct sass_abi_metric *metrics; /* out */
};
enum { SASS_ABI_METRIC_LIST_BYTES = PROFILER_ABI_BYTES(sass_abi_metric_list, metrics) };

struct sass_abi_config {
    uint64_t metric_id;
    uint8_t granularity;
};

struct sass_abi_set_config {
    size_t struct_bytes;
    void *priv;
    size_t config_count;
    struct sass_abi_config *configs;
    uint32_t device_index;
};
enum { SASS_ABI_SET_CONFIG_BYTES = PROFILER_ABI_BYTES(sass_abi_set_config, device_index) };

struct sass_abi_enable {
    size_t struct_bytes;
    void *priv;
    void *context;
    uint8_t is_lazy;
};
enum { SASS_ABI_ENABLE_BYTES = PROFILER_ABI_BYTES(sass_abi_enable, is_lazy) };

struct sass_abi_disable {
    size_t struct_bytes;
    void *priv;
    void *context;
    size_t dropped_records; /* out */
};
enum { SASS_ABI_DISABLE_BYTES = PROFILER_ABI_BYTES(sass_abi_disable, dropped_records) };

struct sass_abi_data_properties {
    size_t struct_bytes;
    void *priv;
    void *context;
    size_t record_count, instance_count; /* out */
};
enum { SASS_ABI_DATA_PROPERTIES_BYTES = PROFILER_ABI_BYTES(sass_abi_data_properties, instance_count) };

struct sass_abi_value {
    uint64_t metric_id, value;
};

struct sass_abi_record {
    size_t struct_bytes;
    void *priv;
    uint32_t cubin_crc, function_index; /* out, and the next two */
    char *function_name;                /* malloc'ed by CUPTI, freed by the caller */
    uint32_t pc_offset;
    struct sass_abi_value *values; /* [instance_count], the caller's */
};

struct sass_abi_flush {
    size_t struct_bytes;
    void *priv;
    void *context;
    size_t record_count, instance_count;
    struct sass_abi_record *records;
};
/* The size macro of 13.0 ends before the pointer that the call fills in; a library that checks the struct's size
 * strictly needs all of it. */
enum {
    SASS_ABI_FLUSH_BYTES_SHORT = PROFILER_ABI_BYTES(sass_abi_flush, instance_count),
    SASS_ABI_FLUSH_BYTES_WHOLE = PROFILER_ABI_BYTES(sass_abi_flush, records)
};

#if UINTPTR_MAX == 0xffffffffffffffffu
_Static_assert(SASS_ABI_METRIC_COUNT_BYTES == 32, "cuptiSassMetricsGetNumOfMetrics");
_Static_assert(SASS_ABI_METRIC_LIST_BYTES == 40, "cuptiSassMetricsGetMetrics");
_Static_assert(SASS_ABI_SET_CONFIG_BYTES == 36, "cuptiSassMetricsSetConfig");
_Static_assert(SASS_ABI_ENABLE_BYTES == 25, "cuptiSassMetricsEnable");
_Static_assert(SASS_ABI_DISABLE_BYTES == 32, "cuptiSassMetricsDisable");
_Static_assert(SASS_ABI_DATA_PROPERTIES_BYTES == 40, "cuptiSassMetricsGetDataProperties");
_Static_assert(SASS_ABI_FLUSH_BYTES_SHORT == 40 && SASS_ABI_FLUSH_BYTES_WHOLE == 48, "cuptiSassMetricsFlushData");
_Static_assert(sizeof(struct sass_abi_metric) == 24, "metric details");
_Static_assert(sizeof(struct sass_abi_config) == 16, "metric configuration");
_Static_assert(sizeof(struct sass_abi_value) == 16, "instance value");
_Static_assert(sizeof(struct sass_abi_record) == 48, "patched instruction record");
#endif

/* X(member, symbol, struct of its parameter): all return a CUptiResult. cuptiSassMetricsUnsetConfig is deliberately
 * missing: with CUPTI 13.0 a device cannot be configured again after it (out of memory). */
#define SASS_ABI_FUNCTIONS(X)                                                       \
    X(metric_count, cuptiSassMetricsGetNumOfMetrics, sass_abi_metric_count)         \
    X(metric_list, cuptiSassMetricsGetMetrics, sass_abi_metric_list)                \
    X(set_config, cuptiSassMetricsSetConfig, sass_abi_set_config)                   \
    X(enable, cuptiSassMetricsEnable, sass_abi_enable)                              \
    X(disable, cuptiSassMetricsDisable, sass_abi_disable)                           \
    X(data_properties, cuptiSassMetricsGetDataProperties, sass_abi_data_properties) \
    X(flush, cuptiSassMetricsFlushData, sass_abi_flush)

#endif
