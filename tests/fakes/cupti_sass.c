/* SPDX-License-Identifier: Apache-2.0 */
/* Look-alike SASS metrics. Every fake kernel has the same eight instructions:
 *   0x00 0x10 0x60  plain                0x20  global load, 16 sectors a warp where 4 would do
 *   0x30  branch, divergent in the first half of the warps, half of the threads predicated off
 *   0x40  shared access, 2-way conflict  0x50  local access, 4 sectors
 *   0x70  never executed
 * As on an H200 with CUPTI 13.0, a record is one instruction and one metric that
 * applies to it; kernels launched while kernel activity is on count zero, and it
 * cannot be enabled while a context counts; without PC sampling only the first
 * function is counted, and nothing after the first flush.
 *
 * While a stream of the context captures, asking for the counts, flushing and disabling answer 999 and invalidate the
 * capture, and so does enabling unless it is lazy (H200, CUPTI 13.0, tests/device/graph_probe.cu). A graph that is
 * launched while its context counts and a tracer listens never returns from its launch: so seen with gpufl's tracing and
 * torch.cuda.graph on an H200 (every thread in a futex wait); without a tracer it does. */
#include "cupti_sass.h"

#include "cupti_fake.h"
#include "cupti_pc_sampling.h"
#include "cupti_records.h"
#include "faults.h"
#include "gpu_timeline.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INVALID_CONTEXT = 3, INVALID_METRIC_ID = 16, INSTRUCTIONS = 8, FUNCTIONS = 256, CONTEXTS = 64 };

#define METRICS(X)                                \
    X(branch_targets_threads_divergent)           \
    X(branch_targets_threads_uniform)             \
    X(inst_executed)                              \
    X(inst_executed_op_global)                    \
    X(l1tex_pipe_lsu_wavefronts_mem_shared)       \
    X(l1tex_pipe_lsu_wavefronts_mem_shared_ideal) \
    X(sectors_mem_global)                         \
    X(sectors_mem_global_ideal)                   \
    X(sectors_mem_local)                          \
    X(thread_inst_executed)                       \
    X(thread_inst_executed_pred_on)
enum metric {
#define METRIC_ENUM(name) METRIC_##name,
    METRICS(METRIC_ENUM) METRIC_COUNT
#undef METRIC_ENUM
};
static const char *const metric_names[METRIC_COUNT] = {
#define METRIC_NAME(name) "smsp__sass_" #name,
    METRICS(METRIC_NAME)
#undef METRIC_NAME
};

struct function { /* patched, in one context */
    const struct fake_kernel *kernel;
    uint64_t warps, threads, warps_divergent; /* of the launches that were counted */
};
struct context {
    const struct fake_context *handle;
    bool is_enabled, is_lazy, was_flushed;
    struct function functions[FUNCTIONS];
    size_t function_count;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_measured[DEVICE_LIMIT][METRIC_COUNT], is_configured[DEVICE_LIMIT];
static struct context contexts[CONTEXTS];
static const struct fake_kernel *loaded[FUNCTIONS]; /* launched before, so surely loaded */
static size_t loaded_count;

uint64_t sass_metric_id(const char *name)
{
    uint64_t hash = 14695981039346656037u;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 1099511628211u;
    return hash;
}

/* Whether the instruction has a count of the metric; what it is after these launches. */
static bool metric_applies(enum metric metric, int instruction)
{
    switch (metric) {
    case METRIC_inst_executed:
    case METRIC_thread_inst_executed:
    case METRIC_thread_inst_executed_pred_on:
        return true;
    case METRIC_inst_executed_op_global:
    case METRIC_sectors_mem_global:
    case METRIC_sectors_mem_global_ideal:
        return instruction == 2;
    case METRIC_branch_targets_threads_divergent:
    case METRIC_branch_targets_threads_uniform:
        return instruction == 3;
    case METRIC_l1tex_pipe_lsu_wavefronts_mem_shared:
    case METRIC_l1tex_pipe_lsu_wavefronts_mem_shared_ideal:
        return instruction == 4;
    case METRIC_sectors_mem_local:
        return instruction == 5;
    case METRIC_COUNT:
        break;
    }
    return false;
}

static uint64_t metric_value(enum metric metric, int instruction, const struct function *function)
{
    if (instruction == INSTRUCTIONS - 1)
        return 0;
    switch (metric) {
    case METRIC_thread_inst_executed:
        return function->threads;
    case METRIC_thread_inst_executed_pred_on:
        return instruction == 3 ? function->threads / 2 : function->threads;
    case METRIC_sectors_mem_global:
        return function->warps * 16;
    case METRIC_sectors_mem_global_ideal:
    case METRIC_sectors_mem_local:
        return function->warps * 4;
    case METRIC_branch_targets_threads_divergent:
        return function->warps_divergent;
    case METRIC_branch_targets_threads_uniform:
        return function->warps - function->warps_divergent;
    case METRIC_l1tex_pipe_lsu_wavefronts_mem_shared:
        return function->warps * 2;
    default:
        return function->warps;
    }
}

/* Needs the lock, as everything below that takes a context. */
static struct context *context_find(const void *handle)
{
    for (int i = 0; i < CONTEXTS; i++)
        if (contexts[i].is_enabled && contexts[i].handle == handle)
            return &contexts[i];
    return NULL;
}

static struct function *function_patch(struct context *context, const struct fake_kernel *kernel)
{
    for (size_t i = 0; i < context->function_count; i++)
        if (context->functions[i].kernel == kernel)
            return &context->functions[i];
    if (context->function_count == FUNCTIONS)
        return NULL;
    struct function *function = &context->functions[context->function_count++];
    *function = (struct function){.kernel = kernel};
    return function;
}

static struct function *function_launched(struct context *context, const struct fake_kernel *kernel)
{
    if (context->is_lazy)
        return function_patch(context, kernel);
    for (size_t i = 0; i < context->function_count; i++)
        if (context->functions[i].kernel == kernel)
            return &context->functions[i];
    return NULL; /* not loaded when counting was enabled */
}

static void kernel_remember(const struct fake_kernel *kernel)
{
    for (size_t i = 0; i < loaded_count; i++)
        if (loaded[i] == kernel)
            return;
    if (loaded_count < FUNCTIONS)
        loaded[loaded_count++] = kernel;
}

bool sass_is_counting(void)
{
    bool is_counting = false;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < CONTEXTS; i++)
        is_counting |= contexts[i].is_enabled;
    pthread_mutex_unlock(&lock);
    return is_counting;
}

bool sass_counts(uint32_t context_id)
{
    bool is_counting = false;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < CONTEXTS; i++)
        is_counting |= contexts[i].is_enabled && contexts[i].handle->id == context_id;
    pthread_mutex_unlock(&lock);
    return is_counting;
}

void sass_work(const struct fake_work *work)
{
    if (work->kind != FAKE_WORK_KERNEL)
        return;
    uint64_t blocks = (uint64_t)work->grid[0] * work->grid[1] * work->grid[2];
    uint64_t threads = (uint64_t)work->block[0] * work->block[1] * work->block[2];
    uint64_t warps = (threads + 31) / 32;
    bool is_zero = kind_is_enabled(CUPTI_ABI_KIND_CONCURRENT_KERNEL) || kind_is_enabled(CUPTI_ABI_KIND_KERNEL);
    bool is_whole = pc_sampling_is_enabled();
    pthread_mutex_lock(&lock);
    kernel_remember(work->kernel);
    for (int i = 0; i < CONTEXTS; i++) {
        struct context *context = &contexts[i];
        if (!context->is_enabled || context->handle->id != work->context_id)
            continue;
        if (!is_whole &&
            (context->was_flushed || (context->function_count != 0 && context->functions[0].kernel != work->kernel)))
            continue;
        struct function *function = function_launched(context, work->kernel);
        if (function != NULL && !is_zero) {
            function->warps += blocks * warps;
            function->threads += blocks * threads;
            function->warps_divergent += blocks * (warps / 2);
        }
    }
    pthread_mutex_unlock(&lock);
}

static bool chip_has(const char *chip, enum metric metric)
{
    return strcmp(chip, "TU102") != 0 || strstr(metric_names[metric], "_ideal") == NULL;
}

static size_t chip_metrics(const char *chip)
{
    static const char *const chips[] = {"GH100", "TU102", "GB100"};
    size_t count = 0;
    for (size_t i = 0; i < sizeof chips / sizeof chips[0]; i++)
        for (int metric = 0; strcmp(chip, chips[i]) == 0 && metric < METRIC_COUNT; metric++)
            count += chip_has(chip, metric);
    return count;
}

int cuptiSassMetricsGetNumOfMetrics(struct sass_abi_metric_count *params)
{
    int result =
        fault_result_sized("cuptiSassMetricsGetNumOfMetrics", params->struct_bytes, SASS_ABI_METRIC_COUNT_BYTES);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    params->metric_count = chip_metrics(params->chip_name);
    return params->metric_count != 0 ? CUPTI_ABI_SUCCESS : CUPTI_INVALID_PARAMETER;
}

int cuptiSassMetricsGetMetrics(struct sass_abi_metric_list *params)
{
    int result = fault_result_sized("cuptiSassMetricsGetMetrics", params->struct_bytes, SASS_ABI_METRIC_LIST_BYTES);
    if (result == CUPTI_ABI_SUCCESS && params->metric_count != chip_metrics(params->chip_name))
        result = CUPTI_INVALID_PARAMETER;
    struct sass_abi_metric *out = params->metrics;
    for (int metric = 0; result == CUPTI_ABI_SUCCESS && metric < METRIC_COUNT; metric++)
        if (chip_has(params->chip_name, metric))
            *out++ = (struct sass_abi_metric){sass_metric_id(metric_names[metric]), metric_names[metric],
                                              "a count of the look-alike"};
    return result;
}

static enum metric metric_find(uint64_t id)
{
    int metric = 0;
    while (metric < METRIC_COUNT && sass_metric_id(metric_names[metric]) != id)
        metric++;
    return metric;
}

int cuptiSassMetricsSetConfig(struct sass_abi_set_config *params)
{
    int result = fault_result_sized("cuptiSassMetricsSetConfig", params->struct_bytes, SASS_ABI_SET_CONFIG_BYTES);
    if (result == CUPTI_ABI_SUCCESS && (params->device_index >= DEVICE_LIMIT || params->config_count == 0))
        result = CUPTI_INVALID_PARAMETER;
    for (size_t i = 0; result == CUPTI_ABI_SUCCESS && i < params->config_count; i++)
        if (metric_find(params->configs[i].metric_id) == METRIC_COUNT)
            result = INVALID_METRIC_ID;
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    uint32_t device = params->device_index;
    if (is_configured[device])
        result = CUPTI_INVALID_OPERATION;
    else
        is_configured[device] = true;
    for (size_t i = 0; result == CUPTI_ABI_SUCCESS && i < params->config_count; i++)
        is_measured[device][metric_find(params->configs[i].metric_id)] = true;
    pthread_mutex_unlock(&lock);
    return result;
}

/* Needs the lock. */
static int capture_check(const void *handle)
{
    return context_spoils_capture((struct fake_context *)(uintptr_t)handle) ? CUPTI_ABI_UNKNOWN : CUPTI_ABI_SUCCESS;
}

int cuptiSassMetricsEnable(struct sass_abi_enable *params)
{
    int result = fault_result_sized("cuptiSassMetricsEnable", params->struct_bytes, SASS_ABI_ENABLE_BYTES);
    if (result == CUPTI_ABI_SUCCESS && params->context == NULL)
        result = INVALID_CONTEXT;
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    const struct fake_context *handle = params->context;
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < CONTEXTS && contexts[i].is_enabled)
        i++;
    if (context_find(handle) != NULL || i == CONTEXTS || handle->device >= DEVICE_LIMIT ||
        !is_configured[handle->device]) {
        result = CUPTI_INVALID_OPERATION;
    } else if (params->is_lazy != 0 || (result = capture_check(handle)) == CUPTI_ABI_SUCCESS) {
        contexts[i] = (struct context){.handle = handle, .is_enabled = true, .is_lazy = params->is_lazy != 0};
        for (size_t k = 0; params->is_lazy == 0 && k < loaded_count; k++)
            (void)function_patch(&contexts[i], loaded[k]);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

void sass_graph_launch(uint32_t context_id)
{
    while (sass_counts(context_id))
        (void)usleep(1000);
}

/* Fills the records, or only counts them when there are none to fill. */
static size_t records_fill(const struct context *context, struct sass_abi_record *records)
{
    size_t count = 0;
    for (size_t i = 0; i < context->function_count; i++)
        for (int instruction = 0; instruction < INSTRUCTIONS; instruction++)
            for (int metric = 0; metric < METRIC_COUNT; metric++) {
                const struct function *function = &context->functions[i];
                if (!is_measured[context->handle->device][metric] || !metric_applies(metric, instruction))
                    continue;
                if (records != NULL) {
                    struct sass_abi_record *record = &records[count];
                    record->cubin_crc = 0xc0b10000u + (uint32_t)(sass_metric_id(function->kernel->name) & 0xffff);
                    record->function_index = (uint32_t)i + 1;
                    record->function_name = strdup(function->kernel->name);
                    record->pc_offset = (uint32_t)instruction * 16;
                    record->values[0] = (struct sass_abi_value){sass_metric_id(metric_names[metric]),
                                                                metric_value(metric, instruction, function)};
                }
                count++;
            }
    return count;
}

int cuptiSassMetricsGetDataProperties(struct sass_abi_data_properties *params)
{
    int result =
        fault_result_sized("cuptiSassMetricsGetDataProperties", params->struct_bytes, SASS_ABI_DATA_PROPERTIES_BYTES);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    const struct context *context = context_find(params->context);
    if (context == NULL) {
        result = CUPTI_INVALID_OPERATION;
    } else if ((result = capture_check(params->context)) != CUPTI_ABI_SUCCESS) {
        params->record_count = params->instance_count = 0;
    } else if (sass_recording_is_wanted()) {
        sass_recording_size(&params->record_count, &params->instance_count);
    } else {
        params->record_count = records_fill(context, NULL);
        params->instance_count = 1;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

int cuptiSassMetricsFlushData(struct sass_abi_flush *params)
{
    /* "sass_flush_bytes=48": a library that wants the whole struct, not what its own header's macro says */
    size_t expected = (size_t)fault_number("sass_flush_bytes", SASS_ABI_FLUSH_BYTES_SHORT);
    int result = fault_result("cuptiSassMetricsFlushData");
    if (result == CUPTI_ABI_SUCCESS && params->struct_bytes < expected)
        result = SASS_ABI_PARAMETER_SIZE_NOT_SUFFICIENT;
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    struct context *context = context_find(params->context);
    if (context == NULL || params->record_count == 0) {
        result = CUPTI_INVALID_OPERATION;
    } else if ((result = capture_check(params->context)) != CUPTI_ABI_SUCCESS) {
        params->record_count = 0;
    } else if (sass_recording_is_wanted()) {
        sass_recording_take(params->records, params->record_count, params->instance_count);
    } else if (params->record_count != records_fill(context, NULL) || params->instance_count != 1) {
        result = CUPTI_INVALID_PARAMETER;
    } else {
        (void)records_fill(context, params->records);
        context->was_flushed = true;
        if (context->is_lazy)
            context->function_count = 0;
        for (size_t i = 0; i < context->function_count; i++)
            context->functions[i] = (struct function){.kernel = context->functions[i].kernel};
    }
    pthread_mutex_unlock(&lock);
    return result;
}

int cuptiSassMetricsDisable(struct sass_abi_disable *params)
{
    int result = fault_result_sized("cuptiSassMetricsDisable", params->struct_bytes, SASS_ABI_DISABLE_BYTES);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    struct context *context = context_find(params->context);
    if (context == NULL) {
        result = CUPTI_INVALID_OPERATION;
    } else if ((result = capture_check(params->context)) == CUPTI_ABI_SUCCESS) {
        params->dropped_records = sass_recording_is_wanted() ? 0 : records_fill(context, NULL);
        context->is_enabled = false;
    }
    pthread_mutex_unlock(&lock);
    return result;
}
