/* SPDX-License-Identifier: Apache-2.0 */
/* Look-alike profiler host and what the counter APIs share on the device's
 * side. Metrics are whatever has "__" and a suffix and does not say "bogus". A
 * range needs a pass for every four metrics; PM sampling takes sixteen in one. */
#include "cupti_callbacks.h"
#include "cupti_fake.h"
#include "driver/profiler_host_abi.h"
#include "faults.h"
#include "profiler_image.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROFILER_PROTOTYPE(member, symbol, parameter) FAKE_API int symbol(struct parameter *);
PROFILER_TARGET_ABI_FUNCTIONS(PROFILER_PROTOTYPE)
PROFILER_HOST_ABI_FUNCTIONS(PROFILER_PROTOTYPE)
#undef PROFILER_PROTOTYPE

enum { METRICS_PER_PASS = 4, METRICS_PER_SAMPLE = 16, TYPE_COUNT = 3 };

static const char *const chips[] = {"TU102", "GA100", "GH100", "AD102", "GB100"};
static const char *const bases[TYPE_COUNT][3] = {{"dram__bytes_read", "sm__warps_active", "sm__cycles_active"},
                                                 {"lts__average_t_sector_hit_rate", "l1tex__t_sector_hit_rate", NULL},
                                                 {"sm__throughput", "gpu__dram_throughput", NULL}};
static const char *const suffixes[] = {".avg", ".avg.pct_of_peak_sustained_active",
                                       ".avg.pct_of_peak_sustained_elapsed", ".sum", ".pct"};
enum { CHIP_COUNT = sizeof chips / sizeof chips[0], SUFFIX_COUNT = sizeof suffixes / sizeof suffixes[0] };

static pthread_mutex_t use_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned use_count;

double fake_metric_value(const char *metric, uint32_t range_index)
{
    uint32_t hash = 2166136261u;
    for (; *metric; metric++)
        hash = (hash ^ (unsigned char)*metric) * 16777619u;
    return hash % 1000 / 10.0 + range_index;
}

/* ---- the device's side ---- */

int cuptiProfilerInitialize(struct profiler_abi_initialize *parameter)
{
    int result = fault_result_sized("cuptiProfilerInitialize", parameter->struct_bytes, PROFILER_ABI_INITIALIZE_BYTES);
    if (result == CUPTI_ABI_SUCCESS)
        result = cupti_attach();
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    pthread_mutex_lock(&use_lock);
    use_count++;
    pthread_mutex_unlock(&use_lock);
    return CUPTI_ABI_SUCCESS;
}

int cuptiProfilerDeInitialize(struct profiler_abi_initialize *parameter)
{
    int result =
        fault_result_sized("cuptiProfilerDeInitialize", parameter->struct_bytes, PROFILER_ABI_INITIALIZE_BYTES);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    pthread_mutex_lock(&use_lock);
    if (use_count)
        use_count--;
    else
        result = CUPTI_ABI_NOT_INITIALIZED;
    pthread_mutex_unlock(&use_lock);
    return result;
}

static int use_result(void)
{
    pthread_mutex_lock(&use_lock);
    int result = use_count ? CUPTI_ABI_SUCCESS : CUPTI_ABI_NOT_INITIALIZED;
    pthread_mutex_unlock(&use_lock);
    return result;
}

int cuptiProfilerDeviceSupported(struct profiler_abi_device_supported *parameter)
{
    int result = fault_result_sized("cuptiProfilerDeviceSupported", parameter->struct_bytes,
                                    PROFILER_ABI_DEVICE_SUPPORTED_BYTES);
    if (result == CUPTI_ABI_SUCCESS)
        result = use_result();
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    char unsupported[32];
    fault_text("unsupported", unsupported, sizeof unsupported);
    const struct {
        const char *name;
        uint32_t *level;
    } reasons[] = {{"architecture", &parameter->architecture},
                   {"sli", &parameter->sli},
                   {"vgpu", &parameter->vgpu},
                   {"confidential_compute", &parameter->confidential_compute},
                   {"cmp", &parameter->cmp},
                   {"wsl", &parameter->wsl}};
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        *reasons[i].level =
            strcmp(unsupported, reasons[i].name) ? PROFILER_ABI_SUPPORT_SUPPORTED : PROFILER_ABI_SUPPORT_UNSUPPORTED;
    parameter->is_supported = unsupported[0] ? PROFILER_ABI_SUPPORT_UNSUPPORTED : PROFILER_ABI_SUPPORT_SUPPORTED;
    return CUPTI_ABI_SUCCESS;
}

int cuptiProfilerGetCounterAvailability(struct profiler_abi_availability *parameter)
{
    enum { IMAGE_BYTES = 64 };
    int result = fault_result_sized("cuptiProfilerGetCounterAvailability", parameter->struct_bytes,
                                    PROFILER_ABI_AVAILABILITY_BYTES);
    if (result == CUPTI_ABI_SUCCESS)
        result = use_result();
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    if (parameter->image) {
        if (parameter->image_bytes < IMAGE_BYTES)
            return CUPTI_INVALID_PARAMETER;
        memset(parameter->image, 0xca, IMAGE_BYTES);
    }
    parameter->image_bytes = IMAGE_BYTES;
    return CUPTI_ABI_SUCCESS;
}

int cuptiDeviceGetChipName(struct profiler_abi_chip_name *parameter)
{
    int result = fault_result_sized("cuptiDeviceGetChipName", parameter->struct_bytes, PROFILER_ABI_CHIP_NAME_BYTES);
    if (use_result() != CUPTI_ABI_SUCCESS)
        abort(); /* as the real one does, by a wild pointer */
    if (result == CUPTI_ABI_SUCCESS)
        parameter->chip_name = "GH100";
    return result;
}

/* ---- the host's side ---- */

struct host_object {
    struct config_image config;
    bool is_broken; /* as the real one: after a refused metric nothing can be added */
};
static bool is_next_broken; /* as the real one: nor to the object that is made next */

static bool chip_is_known(const char *chip)
{
    for (size_t i = 0; i < CHIP_COUNT; i++)
        if (!strcmp(chip, chips[i]))
            return true;
    return false;
}

static bool base_is_known(const char *metric)
{
    char missing[64];
    fault_text("missing_metric", missing, sizeof missing);
    return strstr(metric, "__") && !strstr(metric, "bogus") && (!missing[0] || !strstr(metric, missing));
}

int cuptiProfilerHostInitialize(struct profiler_abi_host_initialize *parameter)
{
    int result =
        fault_result_sized("cuptiProfilerHostInitialize", parameter->struct_bytes, PROFILER_ABI_HOST_INITIALIZE_BYTES);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    if (!chip_is_known(parameter->chip_name))
        return PROFILER_ABI_INVALID_CHIP_NAME;
    struct host_object *object = calloc(1, sizeof *object);
    if (object)
        object->is_broken = is_next_broken;
    is_next_broken = false;
    if (!object)
        return PROFILER_ABI_OUT_OF_MEMORY;
    object->config.magic = CONFIG_IMAGE_MAGIC;
    memcpy(object->config.identifier, "LOPC", sizeof object->config.identifier);
    object->config.profiler_type = parameter->profiler_type;
    parameter->host = object;
    return CUPTI_ABI_SUCCESS;
}

int cuptiProfilerHostDeinitialize(struct profiler_abi_host_deinitialize *parameter)
{
    int result = fault_result_sized("cuptiProfilerHostDeinitialize", parameter->struct_bytes,
                                    PROFILER_ABI_HOST_DEINITIALIZE_BYTES);
    if (result == CUPTI_ABI_SUCCESS)
        free(parameter->host);
    return result;
}

int cuptiProfilerHostGetSupportedChips(struct profiler_abi_host_chips *parameter)
{
    int result = fault_result_sized("cuptiProfilerHostGetSupportedChips", parameter->struct_bytes,
                                    PROFILER_ABI_HOST_CHIPS_BYTES);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    parameter->chip_names = chips;
    parameter->chip_count = CHIP_COUNT;
    return CUPTI_ABI_SUCCESS;
}

int cuptiProfilerHostGetBaseMetrics(struct profiler_abi_host_base_metrics *parameter)
{
    int result = fault_result_sized("cuptiProfilerHostGetBaseMetrics", parameter->struct_bytes,
                                    PROFILER_ABI_HOST_BASE_METRICS_BYTES);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    if (parameter->metric_type >= TYPE_COUNT)
        return CUPTI_INVALID_PARAMETER;
    parameter->metric_names = (const char **)(uintptr_t)bases[parameter->metric_type];
    for (parameter->metric_count = 0; parameter->metric_count < 3; parameter->metric_count++)
        if (!bases[parameter->metric_type][parameter->metric_count])
            break;
    return CUPTI_ABI_SUCCESS;
}

int cuptiProfilerHostGetSubMetrics(struct profiler_abi_host_sub_metrics *parameter)
{
    int result = fault_result_sized("cuptiProfilerHostGetSubMetrics", parameter->struct_bytes,
                                    PROFILER_ABI_HOST_SUB_METRICS_BYTES);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    if (!base_is_known(parameter->metric_name))
        return PROFILER_ABI_INVALID_METRIC_NAME;
    parameter->sub_metrics = (const char **)(uintptr_t)suffixes;
    parameter->sub_metric_count = SUFFIX_COUNT;
    return CUPTI_ABI_SUCCESS;
}

int cuptiProfilerHostGetMetricProperties(struct profiler_abi_host_properties *parameter)
{
    int result = fault_result_sized("cuptiProfilerHostGetMetricProperties", parameter->struct_bytes,
                                    PROFILER_ABI_HOST_PROPERTIES_BYTES);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    if (!base_is_known(parameter->metric_name))
        return PROFILER_ABI_INVALID_METRIC_NAME;
    parameter->description = "a metric of the look-alike GPU";
    parameter->hardware_unit = "sm";
    parameter->dimension_unit = strstr(parameter->metric_name, "bytes") ? "byte" : "percent";
    parameter->metric_type = strstr(parameter->metric_name, "throughput") ? 2
                             : strstr(parameter->metric_name, "rate")     ? 1
                                                                          : 0;
    return CUPTI_ABI_SUCCESS;
}

int cuptiProfilerHostConfigAddMetrics(struct profiler_abi_host_add_metrics *parameter)
{
    int result = fault_result_sized("cuptiProfilerHostConfigAddMetrics", parameter->struct_bytes,
                                    PROFILER_ABI_HOST_ADD_METRICS_BYTES);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    struct host_object *object = parameter->host;
    struct config_image *config = &object->config;
    if (object->is_broken)
        return CUPTI_ABI_UNKNOWN;
    char uncountable[64];
    fault_text("uncountable_metric", uncountable, sizeof uncountable);
    for (size_t i = 0; i < parameter->metric_count; i++) {
        const char *metric = parameter->metric_names[i];
        if (uncountable[0] && strstr(metric, uncountable)) {
            object->is_broken = is_next_broken = true;
            return CUPTI_ABI_UNKNOWN;
        }
        if (!base_is_known(metric) || !strchr(metric, '.') || strlen(metric) >= PROFILER_IMAGE_METRIC_BYTES ||
            config->metric_count == PROFILER_IMAGE_METRICS_MAX) {
            object->is_broken = true;
            return CUPTI_INVALID_PARAMETER;
        }
        snprintf(config->metrics[config->metric_count++], PROFILER_IMAGE_METRIC_BYTES, "%s", metric);
    }
    uint32_t per_pass = config->profiler_type ? METRICS_PER_SAMPLE : METRICS_PER_PASS;
    config->pass_count = (config->metric_count + per_pass - 1) / per_pass;
    return CUPTI_ABI_SUCCESS;
}

int cuptiProfilerHostGetConfigImageSize(struct profiler_abi_host_image_size *parameter)
{
    int result = fault_result_sized("cuptiProfilerHostGetConfigImageSize", parameter->struct_bytes,
                                    PROFILER_ABI_HOST_IMAGE_SIZE_BYTES);
    if (result == CUPTI_ABI_SUCCESS)
        parameter->image_bytes = sizeof(struct config_image);
    return result;
}

int cuptiProfilerHostGetConfigImage(struct profiler_abi_host_image *parameter)
{
    int result =
        fault_result_sized("cuptiProfilerHostGetConfigImage", parameter->struct_bytes, PROFILER_ABI_HOST_IMAGE_BYTES);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    if (parameter->image_bytes < sizeof(struct config_image))
        return CUPTI_INVALID_PARAMETER;
    memcpy(parameter->image, &((struct host_object *)parameter->host)->config, sizeof(struct config_image));
    return CUPTI_ABI_SUCCESS;
}

int cuptiProfilerHostGetNumOfPasses(struct profiler_abi_host_passes *parameter)
{
    int result =
        fault_result_sized("cuptiProfilerHostGetNumOfPasses", parameter->struct_bytes, PROFILER_ABI_HOST_PASSES_BYTES);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    const struct config_image *config = (const void *)parameter->image;
    if (parameter->image_bytes < sizeof *config || config->magic != CONFIG_IMAGE_MAGIC)
        return CUPTI_INVALID_PARAMETER;
    parameter->pass_count = config->pass_count;
    return CUPTI_ABI_SUCCESS;
}

int cuptiProfilerHostGetMaxNumHardwareMetricsPerPass(struct profiler_abi_host_per_pass *parameter)
{
    int result = fault_result_sized("cuptiProfilerHostGetMaxNumHardwareMetricsPerPass", parameter->struct_bytes,
                                    PROFILER_ABI_HOST_PER_PASS_BYTES);
    if (result == CUPTI_ABI_SUCCESS)
        parameter->metric_count = parameter->profiler_type ? METRICS_PER_SAMPLE : METRICS_PER_PASS;
    return result;
}

int cuptiProfilerHostEvaluateToGpuValues(struct profiler_abi_host_evaluate *parameter)
{
    int result = fault_result_sized("cuptiProfilerHostEvaluateToGpuValues", parameter->struct_bytes,
                                    PROFILER_ABI_HOST_EVALUATE_BYTES);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    const struct counter_data_image *image = (const void *)parameter->counter_data;
    if (parameter->counter_data_bytes < sizeof *image || image->magic != COUNTER_DATA_IMAGE_MAGIC ||
        parameter->counter_data_bytes < counter_data_image_bytes(image->count) ||
        parameter->range_index >= image->count)
        return CUPTI_INVALID_PARAMETER;
    char unevaluable[64];
    fault_text("unevaluable_metric", unevaluable, sizeof unevaluable);
    for (size_t i = 0; i < parameter->metric_count; i++) {
        if (unevaluable[0] && strstr(parameter->metric_names[i], unevaluable))
            return CUPTI_ABI_UNKNOWN;
        parameter->values[i] = NAN;
        for (uint32_t m = 0; m < image->metric_count && m < PROFILER_IMAGE_METRICS_MAX; m++)
            if (!strcmp(image->metrics[m], parameter->metric_names[i]))
                parameter->values[i] = image->ranges[parameter->range_index].values[m];
    }
    return CUPTI_ABI_SUCCESS;
}

/* Of CUDA 13.2; the look-alike has them to be tested. */
static const char single_pass_text[] = "sm__cycles_active.avg\0sm__warps_active.avg";

int cuptiProfilerHostGetSinglePassSets(struct profiler_abi_host_single_pass_sets *parameter)
{
    int result = fault_result_sized("cuptiProfilerHostGetSinglePassSets", parameter->struct_bytes,
                                    PROFILER_ABI_HOST_SINGLE_PASS_SETS_BYTES);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    if (!chip_is_known(parameter->chip_name))
        return PROFILER_ABI_INVALID_CHIP_NAME;
    if (parameter->set_names)
        parameter->set_names[0] = "TriageCompute";
    parameter->set_count = 1;
    return CUPTI_ABI_SUCCESS;
}

int cuptiProfilerHostGetMetricsInSinglePassSet(struct profiler_abi_host_single_pass_metrics *parameter)
{
    int result = fault_result_sized("cuptiProfilerHostGetMetricsInSinglePassSet", parameter->struct_bytes,
                                    PROFILER_ABI_HOST_SINGLE_PASS_METRICS_BYTES);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    if (strcmp(parameter->set_name, "TriageCompute"))
        return CUPTI_INVALID_PARAMETER;
    if (parameter->offsets && parameter->text) {
        if (parameter->metric_count < 2 || parameter->text_bytes < sizeof single_pass_text)
            return CUPTI_INVALID_PARAMETER;
        parameter->offsets[0] = 0;
        parameter->offsets[1] = strlen(single_pass_text) + 1;
        memcpy(parameter->text, single_pass_text, sizeof single_pass_text);
    }
    parameter->metric_count = 2;
    parameter->text_bytes = sizeof single_pass_text;
    return CUPTI_ABI_SUCCESS;
}
