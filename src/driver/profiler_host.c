/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/profiler_host.h"

#include "base/environment.h"
#include "driver/cupti_table.h"
#include "driver/profiler_host_table.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { CONFIG_IMAGE_BYTES_MAX = 64 << 20, PLAN_METRICS_MAX = 4096 };

gpufl_status host_problem(const struct cupti *cupti, const char *function, int result, struct problem *problem)
{
    if (result == CUPTI_ABI_NOT_INITIALIZED) {
        char directory[sizeof cupti->library.path];
        if (!profiler_library_load(cupti, "libnvperf_host.so", directory, sizeof directory))
            return problem_set(problem, GPUFL_E_NOT_FOUND,
                               "libnvperf_host.so is missing from %s, where libcupti is; install all of the CUPTI "
                               "package",
                               directory);
    }
    gpufl_status status = result == PROFILER_ABI_OUT_OF_MEMORY ? GPUFL_E_NO_MEMORY : GPUFL_E_UNSUPPORTED;
    return problem_set(problem, status, "%s failed: %s (%d)", function, cupti_result_text(cupti, result), result);
}

gpufl_status host_table_bind(struct host_table *table, struct cupti *cupti, struct problem *problem)
{
#define HOST_BIND(member, symbol, parameter) \
    table->member = __extension__(int (*)(struct parameter *)) library_symbol(&cupti->library, #symbol);
    PROFILER_HOST_ABI_FUNCTIONS(HOST_BIND)
#undef HOST_BIND
    if (!table->initialize || !table->deinitialize || !table->chips || !table->base_metrics || !table->sub_metrics ||
        !table->properties || !table->evaluate || !table->add_metrics || !table->image_size || !table->image ||
        !table->passes)
        return profiler_lacks(cupti, "profiler host (CUDA 12.6 and newer)", problem);
    char directory[sizeof cupti->library.path];
    /* A failure is not an error yet: CUPTI may find it on the loader's path; otherwise its first call fails. */
    (void)profiler_library_load(cupti, "libnvperf_host.so", directory, sizeof directory);
    return GPUFL_OK;
}

gpufl_status profiler_host_chips(struct cupti *cupti, struct name_list *chips, struct problem *problem)
{
    struct host_table call;
    gpufl_status status = host_table_bind(&call, cupti, problem);
    if (status != GPUFL_OK)
        return status;
    struct profiler_abi_host_chips parameter = {.struct_bytes = PROFILER_ABI_HOST_CHIPS_BYTES};
    int result = call.chips(&parameter);
    if (result != CUPTI_ABI_SUCCESS)
        return host_problem(cupti, "cuptiProfilerHostGetSupportedChips", result, problem);
    return name_list_copy(chips, parameter.chip_names, parameter.chip_count, problem);
}

gpufl_status host_refuse_chip(struct cupti *cupti, const char *chip, struct problem *problem)
{
    struct name_list chips = {0};
    gpufl_status status = profiler_host_chips(cupti, &chips, problem);
    if (status != GPUFL_OK)
        return status;
    const char *near = nearest_word(chip, chips.names);
    status = near ? problem_set(problem, GPUFL_E_INVALID, "CUPTI knows no chip '%s'; did you mean '%s'?", chip, near)
                  : problem_set(problem, GPUFL_E_INVALID,
                                "CUPTI knows no chip '%s'; `gpufl metrics chips` lists the %zu known chips", chip,
                                chips.count);
    name_list_free(&chips);
    return status;
}

static void object_end(struct profiler_host *host)
{
    struct profiler_abi_host_deinitialize parameter = {.struct_bytes = PROFILER_ABI_HOST_DEINITIALIZE_BYTES,
                                                       .host = host->object};
    if (host->object)
        (void)host->call.deinitialize(&parameter);
    host->object = NULL;
    host->has_metrics = false;
}

static gpufl_status object_begin(struct profiler_host *host, struct problem *problem)
{
    struct profiler_abi_host_initialize parameter = {.struct_bytes = PROFILER_ABI_HOST_INITIALIZE_BYTES,
                                                     .profiler_type = host->kind,
                                                     .chip_name = host->chip,
                                                     .availability = host->availability};
    int result = host->call.initialize(&parameter);
    if (result == PROFILER_ABI_INVALID_CHIP_NAME)
        return host_refuse_chip(host->cupti, host->chip, problem);
    if (result != CUPTI_ABI_SUCCESS)
        return host_problem(host->cupti, "cuptiProfilerHostInitialize", result, problem);
    host->object = parameter.host;
    return GPUFL_OK;
}

static void (*_Atomic on_use)(void);

void profiler_host_on_use(void (*fn)(void))
{
    atomic_store(&on_use, fn);
}

static void notify_use(atomic_flag *was_called)
{
    void (*fn)(void) = atomic_load(&on_use);
    if (fn && !atomic_flag_test_and_set(was_called))
        fn();
}

gpufl_status profiler_host_open(struct profiler_host **out, struct cupti *cupti, const char *chip,
                                enum profiler_kind kind, const uint8_t *availability, size_t availability_bytes,
                                struct problem *problem)
{
    size_t chip_size = strnlen(chip, PROFILER_CHIP_NAME_BYTES);
    if (!chip_size || chip_size == PROFILER_CHIP_NAME_BYTES)
        return problem_set(problem, GPUFL_E_INVALID, "a chip's name has 1 to %d letters, like GH100",
                           PROFILER_CHIP_NAME_BYTES - 1);
    struct profiler_host *host = calloc(1, sizeof *host);
    if (!host)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory");
    host->cupti = cupti;
    host->kind = kind;
    memcpy(host->chip, chip, chip_size);
    gpufl_status status = host_table_bind(&host->call, cupti, problem);
    if (status == GPUFL_OK && availability_bytes) {
        host->availability = malloc(availability_bytes);
        if (host->availability)
            memcpy(host->availability, availability, availability_bytes);
        else
            status = problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory");
    }
    if (status == GPUFL_OK)
        status = object_begin(host, problem);
    if (status != GPUFL_OK) {
        profiler_host_close(host);
        return status;
    }
    static atomic_flag was_called = ATOMIC_FLAG_INIT;
    notify_use(&was_called);
    *out = host;
    return GPUFL_OK;
}

void profiler_host_close(struct profiler_host *host)
{
    if (!host)
        return;
    object_end(host);
    free(host->availability);
    free(host);
}

/* A plan needs a CUPTI object without metrics; everything else needs one that works. */
static gpufl_status object_renew(struct profiler_host *host, bool wants_empty, struct problem *problem)
{
    if (host->object && !(wants_empty && host->has_metrics))
        return GPUFL_OK;
    object_end(host);
    return object_begin(host, problem);
}

gpufl_status profiler_host_base_metrics(struct profiler_host *host, enum metric_type type, struct name_list *metrics,
                                        struct problem *problem)
{
    gpufl_status status = object_renew(host, false, problem);
    if (status != GPUFL_OK)
        return status;
    struct profiler_abi_host_base_metrics parameter = {
        .struct_bytes = PROFILER_ABI_HOST_BASE_METRICS_BYTES, .host = host->object, .metric_type = type};
    int result = host->call.base_metrics(&parameter);
    if (result != CUPTI_ABI_SUCCESS)
        return host_problem(host->cupti, "cuptiProfilerHostGetBaseMetrics", result, problem);
    return name_list_copy(metrics, parameter.metric_names, parameter.metric_count, problem);
}

gpufl_status host_sub_metrics(struct profiler_host *host, const char *metric, enum metric_type type,
                              struct name_list *metrics, struct problem *problem)
{
    gpufl_status status = object_renew(host, false, problem);
    if (status != GPUFL_OK)
        return status;
    struct profiler_abi_host_sub_metrics parameter = {.struct_bytes = PROFILER_ABI_HOST_SUB_METRICS_BYTES,
                                                      .host = host->object,
                                                      .metric_type = type,
                                                      .metric_name = metric};
    int result = host->call.sub_metrics(&parameter);
    if (result == PROFILER_ABI_INVALID_METRIC_NAME)
        return problem_set(problem, GPUFL_E_INVALID, "metric '%s' does not have that type", metric);
    if (result != CUPTI_ABI_SUCCESS)
        return host_problem(host->cupti, "cuptiProfilerHostGetSubMetrics", result, problem);
    return name_list_copy(metrics, parameter.sub_metrics, parameter.sub_metric_count, problem);
}

gpufl_status profiler_host_sub_metrics(struct profiler_host *host, const char *metric, enum metric_type type,
                                       struct name_list *metrics, struct problem *problem)
{
    gpufl_status status = host_sub_metrics(host, metric, type, metrics, problem);
    struct problem cause = {""};
    if (status == GPUFL_E_INVALID && metric_check(host, metric, true, &cause) != GPUFL_OK)
        return problem_set(problem, GPUFL_E_INVALID, "%s", cause.text);
    return status;
}

gpufl_status profiler_host_properties(struct profiler_host *host, const char *metric,
                                      struct metric_properties *properties, struct problem *problem)
{
    gpufl_status status = object_renew(host, false, problem);
    if (status != GPUFL_OK)
        return status;
    struct profiler_abi_host_properties parameter = {
        .struct_bytes = PROFILER_ABI_HOST_PROPERTIES_BYTES, .host = host->object, .metric_name = metric};
    int result = host->call.properties(&parameter);
    if (result == PROFILER_ABI_INVALID_METRIC_NAME || result == PROFILER_ABI_INVALID_PARAMETER) {
        status = metric_check(host, metric, true, problem);
        if (status != GPUFL_OK)
            return status;
    }
    if (result != CUPTI_ABI_SUCCESS)
        return host_problem(host->cupti, "cuptiProfilerHostGetMetricProperties", result, problem);
    if (parameter.metric_type > METRIC_THROUGHPUT)
        return problem_set(problem, GPUFL_E_UNSUPPORTED, "%s has a type (%u) that only a newer gpufl supports", metric,
                           parameter.metric_type);
    struct metric_properties copy = {strdup(parameter.description ? parameter.description : ""),
                                     strdup(parameter.hardware_unit ? parameter.hardware_unit : ""),
                                     strdup(parameter.dimension_unit ? parameter.dimension_unit : ""),
                                     (enum metric_type)parameter.metric_type};
    if (!copy.description || !copy.hardware_unit || !copy.unit) {
        metric_properties_free(&copy);
        return problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory");
    }
    *properties = copy;
    return GPUFL_OK;
}

static gpufl_status plan_add(struct profiler_host *host, const char *const *metrics, size_t metric_count,
                             struct problem *problem)
{
    struct profiler_abi_host_add_metrics parameter = {.struct_bytes = PROFILER_ABI_HOST_ADD_METRICS_BYTES,
                                                      .host = host->object,
                                                      .metric_names = (const char **)(uintptr_t)metrics,
                                                      .metric_count = metric_count};
    host->has_metrics = true; /* also after a failure: the object then refuses everything */
    int result = host->call.add_metrics(&parameter);
    if (result == CUPTI_ABI_SUCCESS)
        return GPUFL_OK;
    /* CUPTI does not report which one it refuses. */
    bool is_about_names = result == PROFILER_ABI_INVALID_METRIC_NAME || result == PROFILER_ABI_INVALID_PARAMETER;
    for (size_t i = 0; is_about_names && i < metric_count; i++) {
        gpufl_status status = metric_check(host, metrics[i], false, problem);
        if (status != GPUFL_OK)
            return status;
    }
    return host_problem(host->cupti, "cuptiProfilerHostConfigAddMetrics", result, problem);
}

static gpufl_status image_passes(struct profiler_host *host, const uint8_t *image, size_t image_bytes, size_t *passes,
                                 struct problem *problem)
{
    /* CUPTI only reads the image, although its declaration is not const. */
    struct profiler_abi_host_passes parameter = {.struct_bytes = PROFILER_ABI_HOST_PASSES_BYTES,
                                                 .image_bytes = image_bytes,
                                                 .image = (uint8_t *)(uintptr_t)image};
    int result = host->call.passes(&parameter);
    if (result != CUPTI_ABI_SUCCESS)
        return host_problem(host->cupti, "cuptiProfilerHostGetNumOfPasses", result, problem);
    *passes = parameter.pass_count;
    return GPUFL_OK;
}

static gpufl_status plan_image(struct profiler_host *host, struct metric_plan *plan, struct problem *problem)
{
    struct profiler_abi_host_image_size size = {.struct_bytes = PROFILER_ABI_HOST_IMAGE_SIZE_BYTES,
                                                .host = host->object};
    int result = host->call.image_size(&size);
    if (result != CUPTI_ABI_SUCCESS)
        return host_problem(host->cupti, "cuptiProfilerHostGetConfigImageSize", result, problem);
    if (!size.image_bytes || size.image_bytes > CONFIG_IMAGE_BYTES_MAX)
        return problem_set(problem, GPUFL_E_LIMIT, "CUPTI reports a configuration size of %zu bytes", size.image_bytes);
    plan->image = malloc(size.image_bytes);
    if (!plan->image)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory");
    plan->image_bytes = size.image_bytes;
    struct profiler_abi_host_image image = {.struct_bytes = PROFILER_ABI_HOST_IMAGE_BYTES,
                                            .host = host->object,
                                            .image_bytes = plan->image_bytes,
                                            .image = plan->image};
    result = host->call.image(&image);
    if (result != CUPTI_ABI_SUCCESS)
        return host_problem(host->cupti, "cuptiProfilerHostGetConfigImage", result, problem);
    return image_passes(host, plan->image, plan->image_bytes, &plan->passes, problem);
}

gpufl_status profiler_host_plan(struct profiler_host *host, const char *const *metrics, size_t metric_count,
                                struct metric_plan *plan, struct problem *problem)
{
    if (!metric_count || metric_count > PLAN_METRICS_MAX)
        return problem_set(problem, GPUFL_E_INVALID, "a plan has 1 to %d metrics, not %zu", PLAN_METRICS_MAX,
                           metric_count);
    gpufl_status status = object_renew(host, true, problem);
    if (status == GPUFL_OK)
        status = plan_add(host, metrics, metric_count, problem);
    /* After a refusal CUPTI's next object refuses everything, too; the one after that works. */
    if (status == GPUFL_E_UNSUPPORTED && object_renew(host, true, problem) == GPUFL_OK)
        status = plan_add(host, metrics, metric_count, problem);
    struct metric_plan made = {0};
    if (status == GPUFL_OK)
        status = plan_image(host, &made, problem);
    if (status == GPUFL_OK)
        *plan = made;
    else
        metric_plan_free(&made);
    return status;
}

gpufl_status profiler_host_passes(struct profiler_host *host, const uint8_t *image, size_t image_bytes, size_t *passes,
                                  struct problem *problem)
{
    /* CUPTI checks nothing and crashes on other bytes. */
    static const char identifier[] = "LOPC";
    enum { IDENTIFIER_AT = 4, IMAGE_BYTES_MIN = 64 };
    if (image_bytes < IMAGE_BYTES_MIN || memcmp(image + IDENTIFIER_AT, identifier, strlen(identifier)))
        return problem_set(problem, GPUFL_E_DAMAGED, "these %zu bytes are not a config image", image_bytes);
    return image_passes(host, image, image_bytes, passes, problem);
}

gpufl_status profiler_host_metrics_per_pass(struct profiler_host *host, size_t *count, struct problem *problem)
{
    if (!host->call.per_pass)
        return profiler_lacks(host->cupti, "cuptiProfilerHostGetMaxNumHardwareMetricsPerPass", problem);
    struct profiler_abi_host_per_pass parameter = {.struct_bytes = PROFILER_ABI_HOST_PER_PASS_BYTES,
                                                   .profiler_type = host->kind,
                                                   .chip_name = host->chip,
                                                   .availability = host->availability};
    int result = host->call.per_pass(&parameter);
    if (result != CUPTI_ABI_SUCCESS)
        return host_problem(host->cupti, "cuptiProfilerHostGetMaxNumHardwareMetricsPerPass", result, problem);
    *count = parameter.metric_count;
    return GPUFL_OK;
}

/* A metric that cannot be evaluated fails all metrics evaluated with it: evaluates each alone, with NAN for those
 * that fail. False: there are no others, or none has a value. */
static bool evaluate_each(const struct profiler_host *host, const struct profiler_abi_host_evaluate *all)
{
    bool is_any = false;
    for (size_t i = 0; all->metric_count > 1 && i < all->metric_count; i++) {
        struct profiler_abi_host_evaluate one = *all;
        one.metric_names = all->metric_names + i;
        one.metric_count = 1;
        one.values = all->values + i;
        if (host->call.evaluate(&one) == CUPTI_ABI_SUCCESS)
            is_any = true;
        else
            all->values[i] = NAN;
    }
    return is_any;
}

gpufl_status profiler_host_evaluate(struct profiler_host *host, const uint8_t *counter_data, size_t counter_data_bytes,
                                    size_t range_index, const char *const *metrics, size_t metric_count, double *values,
                                    struct problem *problem)
{
    gpufl_status status = object_renew(host, false, problem);
    if (status != GPUFL_OK)
        return status;
    for (size_t i = 0; i < metric_count; i++)
        values[i] = NAN;
    struct profiler_abi_host_evaluate parameter = {.struct_bytes = PROFILER_ABI_HOST_EVALUATE_BYTES,
                                                   .host = host->object,
                                                   .counter_data = counter_data,
                                                   .counter_data_bytes = counter_data_bytes,
                                                   .range_index = range_index,
                                                   .metric_names = (const char **)(uintptr_t)metrics,
                                                   .metric_count = metric_count,
                                                   .values = values};
    int result = host->call.evaluate(&parameter);
    if (result != CUPTI_ABI_SUCCESS && result != PROFILER_ABI_INVALID_METRIC_NAME && evaluate_each(host, &parameter))
        result = CUPTI_ABI_SUCCESS;
    if (result != CUPTI_ABI_SUCCESS) {
        /* CUPTI's object can stop evaluating what it evaluated before; a new one works. */
        object_end(host);
        status = object_renew(host, false, problem);
        if (status != GPUFL_OK)
            return status;
        parameter.host = host->object;
        result = host->call.evaluate(&parameter);
    }
    if (result == PROFILER_ABI_INVALID_METRIC_NAME) {
        for (size_t i = 0; i < metric_count && status == GPUFL_OK; i++)
            status = metric_check(host, metrics[i], false, problem);
        if (status != GPUFL_OK)
            return status;
    }
    if (result != CUPTI_ABI_SUCCESS)
        return host_problem(host->cupti, "cuptiProfilerHostEvaluateToGpuValues", result, problem);
    static atomic_flag was_called = ATOMIC_FLAG_INIT;
    notify_use(&was_called);
    return GPUFL_OK;
}
