/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/sass_metrics.h"

#include "driver/cupti_table.h"
#include "driver/profiler_host.h"
#include "driver/profiler_target.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* CUPTI reports a few dozen; more than this is implausible. */
enum { metric_limit = 4096, configured_max = 16 };

void sass_metric_list_free(struct sass_metric_list *list)
{
    free(list->metrics);
    *list = (struct sass_metric_list){NULL, 0};
}

gpufl_status sass_metrics_bind(struct sass_metrics *metrics, struct cupti *cupti, struct problem *problem)
{
    struct sass_metrics bound = {.cupti = cupti};
#define SASS_BIND(member, symbol, parameter)                                                            \
    bound.member = __extension__(int (*)(struct parameter *)) library_symbol(&cupti->library, #symbol); \
    if (!bound.member)                                                                                  \
        return profiler_lacks(cupti, #symbol, problem);
    SASS_ABI_FUNCTIONS(SASS_BIND)
#undef SASS_BIND
    *metrics = bound;
    return GPUFL_OK;
}

static size_t text_bytes(const char *text)
{
    return text ? strlen(text) + 1 : 1;
}

static const char *text_put(char **at, const char *text)
{
    const char *copy = *at;
    size_t size = text_bytes(text);
    memcpy(*at, text ? text : "", size);
    *at += size;
    return copy;
}

/* CUPTI owns its strings: they are copied, since their lifetime is not specified. */
static gpufl_status list_copy(struct sass_metric_list *list, const struct sass_abi_metric *from, size_t count,
                              struct problem *problem)
{
    size_t bytes = count * sizeof *list->metrics;
    for (size_t i = 0; i < count; i++)
        bytes += text_bytes(from[i].name) + text_bytes(from[i].description);
    struct sass_metric *metrics = malloc(bytes);
    if (!metrics)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory for the names of %zu metrics", count);
    char *text = (char *)(metrics + count);
    for (size_t i = 0; i < count; i++) {
        metrics[i].id = from[i].id;
        metrics[i].name = text_put(&text, from[i].name);
        metrics[i].description = text_put(&text, from[i].description);
    }
    *list = (struct sass_metric_list){metrics, count};
    return GPUFL_OK;
}

/* Without a driver CUPTI returns "not initialized" until its profiler host was used. */
static int count_ask(const struct sass_metrics *metrics, struct sass_abi_metric_count *params)
{
    int result = metrics->metric_count(params);
    struct name_list chips = {NULL, 0};
    if (result != CUPTI_ABI_NOT_INITIALIZED || profiler_host_chips(metrics->cupti, &chips, NULL) != GPUFL_OK)
        return result;
    name_list_free(&chips);
    return metrics->metric_count(params);
}

gpufl_status sass_metrics_list(const struct sass_metrics *metrics, const char *chip, struct sass_metric_list *list,
                               struct problem *problem)
{
    struct sass_abi_metric_count count = {.struct_bytes = SASS_ABI_METRIC_COUNT_BYTES, .chip_name = chip};
    int result = count_ask(metrics, &count);
    if (result == PROFILER_ABI_INVALID_PARAMETER || result == PROFILER_ABI_INVALID_CHIP_NAME)
        return problem_set(problem, GPUFL_E_INVALID, "CUPTI has no SASS metrics for chip \"%s\"", chip);
    if (result != CUPTI_ABI_SUCCESS)
        return profiler_problem(metrics->cupti, "cuptiSassMetricsGetNumOfMetrics", result, problem);
    if (!count.metric_count || count.metric_count > metric_limit)
        return problem_set(problem, GPUFL_E_UNSUPPORTED, "CUPTI says that chip %s has %zu SASS metrics", chip,
                           count.metric_count);
    struct sass_abi_metric *found = calloc(count.metric_count, sizeof *found);
    if (!found)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory for %zu metrics", count.metric_count);
    struct sass_abi_metric_list params = {.struct_bytes = SASS_ABI_METRIC_LIST_BYTES,
                                          .chip_name = chip,
                                          .metric_count = count.metric_count,
                                          .metrics = found};
    result = metrics->metric_list(&params);
    gpufl_status status = result == CUPTI_ABI_SUCCESS
                              ? list_copy(list, found, count.metric_count, problem)
                              : profiler_problem(metrics->cupti, "cuptiSassMetricsGetMetrics", result, problem);
    free(found);
    return status;
}

/* What CUPTI was configured to count, by device. It is never unset: with CUPTI 13.0, cuptiSassMetricsSetConfig after
 * cuptiSassMetricsUnsetConfig fails with "out of memory" and nothing can be counted any more. */
static struct configured {
    const struct cupti *cupti; /* NULL: free */
    uint32_t device;
    size_t count;
    struct sass_abi_config configs[SASS_METRICS_MAX];
} configured[configured_max];
static pthread_mutex_t configured_lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_same_choice(const struct configured *left, const struct configured *right)
{
    size_t i = 0;
    while (i < left->count && i < right->count && left->configs[i].metric_id == right->configs[i].metric_id)
        i++;
    return i == left->count && i == right->count;
}

static gpufl_status configure_once(const struct sass_metrics *metrics, struct configured *wanted,
                                   struct problem *problem)
{
    size_t i = 0;
    while (i < configured_max && configured[i].cupti &&
           (configured[i].cupti != wanted->cupti || configured[i].device != wanted->device))
        i++;
    if (i == configured_max)
        return problem_set(problem, GPUFL_E_LIMIT, "instructions are counted on at most %d GPUs", configured_max);
    if (configured[i].cupti)
        return is_same_choice(&configured[i], wanted)
                   ? GPUFL_OK
                   : problem_set(problem, GPUFL_E_BUSY,
                                 "the SASS metrics of GPU %u were chosen earlier in this process and cannot be "
                                 "changed; start the program again with the other choice",
                                 wanted->device);
    struct sass_abi_set_config params = {.struct_bytes = SASS_ABI_SET_CONFIG_BYTES,
                                         .config_count = wanted->count,
                                         .configs = wanted->configs,
                                         .device_index = wanted->device};
    int result = metrics->set_config(&params);
    if (result != CUPTI_ABI_SUCCESS)
        return profiler_problem(metrics->cupti, "cuptiSassMetricsSetConfig", result, problem);
    configured[i] = *wanted;
    return GPUFL_OK;
}

gpufl_status sass_metrics_configure(const struct sass_metrics *metrics, uint32_t device,
                                    const struct sass_metric_list *list, const struct sass_choice *choice,
                                    struct problem *problem)
{
    struct configured wanted = {.cupti = metrics->cupti, .device = device, .count = choice->count};
    for (size_t i = 0; i < choice->count; i++)
        wanted.configs[i] = (struct sass_abi_config){list->metrics[choice->chosen[i]].id, SASS_ABI_GRANULARITY_GPU};
    pthread_mutex_lock(&configured_lock);
    gpufl_status status = configure_once(metrics, &wanted, problem);
    pthread_mutex_unlock(&configured_lock);
    return status;
}

void sass_metrics_abandon(void)
{
    pthread_mutex_init(&configured_lock, NULL); /* a thread of the parent may have held it */
}

gpufl_status sass_metrics_enable(const struct sass_metrics *metrics, void *context, bool is_lazy,
                                 struct problem *problem)
{
    struct sass_abi_enable params = {.struct_bytes = SASS_ABI_ENABLE_BYTES, .context = context, .is_lazy = is_lazy};
    int result = metrics->enable(&params);
    return result == CUPTI_ABI_SUCCESS ? GPUFL_OK
                                       : profiler_problem(metrics->cupti, "cuptiSassMetricsEnable", result, problem);
}

gpufl_status sass_metrics_disable(const struct sass_metrics *metrics, void *context, uint64_t *dropped,
                                  struct problem *problem)
{
    struct sass_abi_disable params = {.struct_bytes = SASS_ABI_DISABLE_BYTES, .context = context};
    int result = metrics->disable(&params);
    if (result != CUPTI_ABI_SUCCESS)
        return profiler_problem(metrics->cupti, "cuptiSassMetricsDisable", result, problem);
    *dropped = params.dropped_records;
    return GPUFL_OK;
}

/* One allocation for the records and their values. */
static struct sass_abi_record *records_make(size_t record_count, size_t instance_count)
{
    struct sass_abi_record *records =
        calloc(record_count, sizeof *records + instance_count * sizeof(struct sass_abi_value));
    if (!records)
        return NULL;
    struct sass_abi_value *values = (struct sass_abi_value *)(records + record_count);
    for (size_t i = 0; i < record_count; i++) {
        records[i].struct_bytes = sizeof *records;
        records[i].values = values + i * instance_count;
    }
    return records;
}

static void records_hand_over(struct sass_abi_record *records, size_t record_count, size_t instance_count,
                              const struct sass_flush *flush)
{
    const struct sass_abi_value *values = (const struct sass_abi_value *)(records + record_count);
    for (size_t i = 0; i < record_count; i++) {
        const struct sass_abi_record *record = &records[i];
        struct sass_count count = {.symbol = record->function_name ? record->function_name : "",
                                   .cubin_crc = record->cubin_crc,
                                   .function_index = record->function_index,
                                   .pc_offset = record->pc_offset};
        for (size_t j = 0; j < instance_count; j++) {
            count.metric_id = values[i * instance_count + j].metric_id;
            count.value = values[i * instance_count + j].value;
            flush->on_count(flush->user, &count);
        }
        free(record->function_name);
    }
}

gpufl_status sass_metrics_flush(const struct sass_metrics *metrics, void *context, struct sass_flush *flush,
                                struct problem *problem)
{
    struct sass_abi_data_properties properties = {.struct_bytes = SASS_ABI_DATA_PROPERTIES_BYTES, .context = context};
    flush->values = 0;
    int result = metrics->data_properties(&properties);
    if (result != CUPTI_ABI_SUCCESS)
        return profiler_problem(metrics->cupti, "cuptiSassMetricsGetDataProperties", result, problem);
    size_t record_count = properties.record_count, instance_count = properties.instance_count;
    if (!record_count || !instance_count)
        return GPUFL_OK;
    size_t bytes;
    if (__builtin_mul_overflow(instance_count, sizeof(struct sass_abi_value), &bytes) ||
        __builtin_add_overflow(bytes, sizeof(struct sass_abi_record), &bytes) ||
        __builtin_mul_overflow(bytes, record_count, &bytes))
        bytes = SIZE_MAX;
    if (__builtin_mul_overflow((uint64_t)record_count, (uint64_t)instance_count, &flush->values))
        flush->values = UINT64_MAX;
    if (bytes > flush->bytes_max)
        return problem_set(problem, GPUFL_E_LIMIT,
                           "%zu instruction counts of %zu instances exceed the limit of %zu MiB", record_count,
                           instance_count, flush->bytes_max >> 20);
    struct sass_abi_record *records = records_make(record_count, instance_count);
    if (!records)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory for %zu instruction counts", record_count);
    struct sass_abi_flush params = {.struct_bytes = SASS_ABI_FLUSH_BYTES_SHORT,
                                    .context = context,
                                    .record_count = record_count,
                                    .instance_count = instance_count,
                                    .records = records};
    result = metrics->flush(&params);
    if (result == SASS_ABI_PARAMETER_SIZE_NOT_SUFFICIENT) {
        params.struct_bytes = SASS_ABI_FLUSH_BYTES_WHOLE;
        result = metrics->flush(&params);
    }
    if (result == CUPTI_ABI_SUCCESS)
        records_hand_over(records, record_count, instance_count, flush);
    free(records);
    return result == CUPTI_ABI_SUCCESS ? GPUFL_OK
                                       : profiler_problem(metrics->cupti, "cuptiSassMetricsFlushData", result, problem);
}
