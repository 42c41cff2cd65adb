/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/pm_sampling.h"

#include "driver/cuda.h"
#include "driver/cupti_table.h"
#include "driver/pm_sampling_abi.h"
#include "driver/metric_sets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Limits for sizes reported by the driver, which are allocated here. */
enum { availability_bytes_max = 64 << 20, image_bytes_max = 256 << 20 };

struct pm_sampling_table {
#define PM_MEMBER(member, symbol, parameters) int(*member) parameters;
    PM_SAMPLING_ABI_FUNCTIONS(PM_MEMBER)
#undef PM_MEMBER
};

struct pm_sampling {
    struct pm_sampling_table call;
    struct cupti *cupti; /* borrowed */
    struct pm_sampling_options options;
    struct pm_sampling_facts facts;
    struct profiler_host *host;
    struct metric_choice metrics; /* the metrics of the options that the chip supports */
    struct metric_plan plan;      /* CUPTI reads its image while it samples */
    void *object;                 /* CUPTI's; NULL: not enabled */
    uint8_t *image;
    size_t decoded_count;
    bool is_acquired, is_started;
};

static gpufl_status bind_functions(struct pm_sampling *sampling, struct problem *problem)
{
#define PM_BIND(member, symbol, parameters)                                                                      \
    sampling->call.member = __extension__(int(*) parameters) library_symbol(&sampling->cupti->library, #symbol); \
    if (!sampling->call.member)                                                                                  \
        return profiler_lacks(sampling->cupti, #symbol, problem);
    PM_SAMPLING_ABI_FUNCTIONS(PM_BIND)
#undef PM_BIND
    return GPUFL_OK;
}

/* Converts the result of a call to a status; the text names the call. */
static gpufl_status checked(const struct pm_sampling *sampling, const char *function, int result,
                            struct problem *problem)
{
    if (result == CUPTI_ABI_SUCCESS)
        return GPUFL_OK;
    return profiler_problem(sampling->cupti, function, cupti_note(sampling->cupti, function, result), problem);
}

static gpufl_status read_availability(struct pm_sampling *sampling, uint8_t **image, size_t *bytes,
                                      struct problem *problem)
{
    static const char function[] = "cuptiPmSamplingGetCounterAvailability";
    struct pm_abi_availability params = {.struct_bytes = PM_ABI_AVAILABILITY_BYTES,
                                         .device_index = sampling->options.device_id};
    gpufl_status status = checked(sampling, function, sampling->call.get_availability(&params), problem);
    if (status != GPUFL_OK)
        return status;
    if (!params.image_bytes || params.image_bytes > availability_bytes_max)
        return problem_set(problem, GPUFL_E_UNSUPPORTED, "%s: invalid image size of %zu bytes", function,
                           params.image_bytes);
    size_t size = params.image_bytes;
    params.image = malloc(size);
    if (!params.image)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for %zu bytes of counter availability", size);
    status = checked(sampling, function, sampling->call.get_availability(&params), problem);
    if (status != GPUFL_OK) {
        free(params.image);
        return status;
    }
    *image = params.image;
    *bytes = size;
    return GPUFL_OK;
}

static gpufl_status refuse_passes(const struct pm_sampling *sampling, size_t passes, struct problem *problem)
{
    char names[320];
    size_t used = 0, shown = 0;
    names[0] = '\0';
    for (; shown < sampling->options.metric_count; shown++) {
        const char *name = sampling->options.metrics[shown];
        size_t length = strlen(name);
        if (used + length + 3 > sizeof names)
            break;
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", shown ? ", " : "", name);
    }
    size_t hidden = sampling->options.metric_count - shown;
    char more[32] = "";
    if (hidden)
        snprintf(more, sizeof more, " and %zu more", hidden);
    return problem_set(problem, GPUFL_E_LIMIT,
                       "PM sampling takes what one pass can count; on %s these metrics need %zu passes: %s%s. "
                       "Request fewer metrics",
                       sampling->facts.chip, passes, names, more);
}

static gpufl_status fit_metrics(struct pm_sampling *sampling, struct metric_plan *plan, struct problem *problem)
{
    const struct pm_sampling_options *options = &sampling->options;
    struct metric_choice *metrics = &sampling->metrics;
    snprintf(metrics->name, sizeof metrics->name, "PM sampling");
    for (metrics->count = 0; metrics->count < options->metric_count; metrics->count++) {
        size_t i = metrics->count;
        snprintf(metrics->metrics[i], METRIC_NAME_BYTES, "%s", options->metrics[i]);
        metrics->list[i] = metrics->metrics[i];
        metrics->is_named[i] = !options->is_named || options->is_named[i];
        metrics->origin[i] = (uint8_t)i;
        sampling->facts.left_out |= UINT64_C(1) << i;
    }
    struct problem left_out;
    gpufl_status status = metric_choice_plan(metrics, sampling->host, plan, &left_out, problem);
    for (size_t i = 0; status == GPUFL_OK && i < metrics->count; i++)
        sampling->facts.left_out &= ~(UINT64_C(1) << metrics->origin[i]);
    return status;
}

static gpufl_status plan_metrics(struct pm_sampling *sampling, struct metric_plan *plan, struct problem *problem)
{
    const struct pm_sampling_options *options = &sampling->options;
    uint8_t *availability = NULL;
    size_t availability_bytes = 0;
    gpufl_status status = profiler_target_chip(sampling->cupti, options->device_id, sampling->facts.chip, problem);
    if (status == GPUFL_OK)
        status = read_availability(sampling, &availability, &availability_bytes, problem);
    if (status == GPUFL_OK)
        status = profiler_host_open(&sampling->host, sampling->cupti, sampling->facts.chip, PROFILER_PM_SAMPLING,
                                    availability, availability_bytes, problem);
    free(availability);
    if (status == GPUFL_OK)
        status = fit_metrics(sampling, plan, problem);
    if (status == GPUFL_OK && plan->passes != 1) {
        status = refuse_passes(sampling, plan->passes, problem);
        metric_plan_free(plan);
    }
    return status;
}

/* The triggers and buffer modes that the device supports, by its compute capability. */
static gpufl_status choose_trigger(struct pm_sampling *sampling, uint64_t *interval, struct problem *problem)
{
    const struct pm_sampling_options *options = &sampling->options;
    struct device_limits limits = {0};
    struct cuda *cuda;
    if (cuda_load(&cuda, false, NULL) != GPUFL_OK || cuda_device_limits(cuda, options->device_id, &limits) != GPUFL_OK)
        return problem_set(problem, GPUFL_E_NO_DRIVER, "CUDA reports no compute capability for device %u",
                           options->device_id);
    uint32_t capability = limits.compute_major * 10 + limits.compute_minor;
    sampling->facts.has_time_trigger = capability >= 86;
    sampling->facts.keeps_latest = options->keeps_latest && capability >= 80;
    *interval = (uint64_t)options->interval_ns;
    if (!sampling->facts.has_time_trigger)
        *interval = *interval * limits.core_clock_khz / 1000000;
    if (!*interval)
        return problem_set(problem, GPUFL_E_UNSUPPORTED, "the clock of device %u is unknown, and it has no timer",
                           options->device_id);
    return GPUFL_OK;
}

static gpufl_status enable_device(struct pm_sampling *sampling, const struct metric_plan *plan, struct problem *problem)
{
    uint64_t interval = 0;
    gpufl_status status = choose_trigger(sampling, &interval, problem);
    if (status != GPUFL_OK)
        return status;
    struct pm_abi_enable enable = {.struct_bytes = PM_ABI_ENABLE_BYTES, .device_index = sampling->options.device_id};
    status = checked(sampling, "cuptiPmSamplingEnable", sampling->call.enable(&enable), problem);
    if (status != GPUFL_OK)
        return status;
    sampling->object = enable.object;
    struct pm_abi_set_config config = {
        .struct_bytes = PM_ABI_SET_CONFIG_BYTES,
        .object = sampling->object,
        .config_bytes = plan->image_bytes,
        .config = plan->image,
        .hardware_buffer_bytes = sampling->options.hardware_buffer_bytes,
        .sampling_interval = interval,
        .trigger_mode = sampling->facts.has_time_trigger ? PM_ABI_TRIGGER_TIME : PM_ABI_TRIGGER_SYSCLK,
        .append_mode = sampling->facts.keeps_latest ? PM_ABI_KEEP_LATEST : PM_ABI_KEEP_OLDEST,
    };
    return checked(sampling, "cuptiPmSamplingSetConfig", sampling->call.set_config(&config), problem);
}

static gpufl_status image_reset(struct pm_sampling *sampling, struct problem *problem)
{
    struct pm_abi_image_initialize params = {.struct_bytes = PM_ABI_IMAGE_INITIALIZE_BYTES,
                                             .object = sampling->object,
                                             .image_bytes = sampling->facts.image_bytes,
                                             .image = sampling->image};
    sampling->decoded_count = 0;
    return checked(sampling, "cuptiPmSamplingCounterDataImageInitialize", sampling->call.initialize_image(&params),
                   problem);
}

static gpufl_status image_make(struct pm_sampling *sampling, struct problem *problem)
{
    struct pm_abi_image_size params = {.struct_bytes = PM_ABI_IMAGE_SIZE_BYTES,
                                       .object = sampling->object,
                                       /* CUPTI's declaration lacks a const */
                                       .metrics = (const char **)(uintptr_t)sampling->metrics.list,
                                       .metric_count = sampling->metrics.count,
                                       .max_samples = sampling->options.sample_capacity};
    gpufl_status status =
        checked(sampling, "cuptiPmSamplingGetCounterDataSize", sampling->call.get_image_size(&params), problem);
    if (status != GPUFL_OK)
        return status;
    if (!params.image_bytes || params.image_bytes > image_bytes_max)
        return problem_set(problem, GPUFL_E_LIMIT, "%u samples of %zu metrics need %zu bytes; the limit is %d",
                           sampling->options.sample_capacity, sampling->options.metric_count, params.image_bytes,
                           image_bytes_max);
    sampling->image = malloc(params.image_bytes);
    if (!sampling->image)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for %zu bytes of samples", params.image_bytes);
    sampling->facts.image_bytes = params.image_bytes;
    return image_reset(sampling, problem);
}

gpufl_status pm_sampling_open(struct pm_sampling **out, struct cupti *cupti, const struct pm_sampling_options *options,
                              struct problem *problem)
{
    if (options->interval_ns < PM_INTERVAL_NS_MIN || options->interval_ns > PM_INTERVAL_NS_MAX)
        return problem_set(problem, GPUFL_E_INVALID, "a sampling interval of %lld ns is not between %d and %d",
                           (long long)options->interval_ns, PM_INTERVAL_NS_MIN, PM_INTERVAL_NS_MAX);
    if (!options->metric_count || options->metric_count > METRICS_MAX || !options->sample_capacity)
        return problem_set(problem, GPUFL_E_INVALID, "PM sampling requires one to %d metrics and room for one sample",
                           METRICS_MAX);
    struct pm_sampling *sampling = calloc(1, sizeof *sampling);
    if (!sampling)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory");
    sampling->cupti = cupti;
    sampling->options = *options;
    struct metric_plan plan = {0};
    gpufl_status status = bind_functions(sampling, problem);
    if (status != GPUFL_OK)
        goto failed;
    status = profiler_target_acquire(cupti, problem);
    if (status != GPUFL_OK)
        goto failed;
    sampling->is_acquired = true;
    status = profiler_target_check(cupti, options->device_id, PROFILER_API_PM_SAMPLING, problem);
    if (status != GPUFL_OK)
        goto failed;
    status = plan_metrics(sampling, &plan, problem);
    if (status != GPUFL_OK)
        goto failed;
    sampling->plan = plan;
    status = enable_device(sampling, &plan, problem);
    if (status != GPUFL_OK)
        goto failed;
    status = image_make(sampling, problem);
    if (status != GPUFL_OK)
        goto failed;
    *out = sampling;
    return GPUFL_OK;
failed:
    pm_sampling_close(sampling);
    return status;
}

const struct pm_sampling_facts *pm_sampling_facts(const struct pm_sampling *sampling)
{
    return &sampling->facts;
}

gpufl_status pm_sampling_start(struct pm_sampling *sampling, struct problem *problem)
{
    struct pm_abi_object params = {.struct_bytes = PM_ABI_OBJECT_BYTES, .object = sampling->object};
    gpufl_status status = checked(sampling, "cuptiPmSamplingStart", sampling->call.start(&params), problem);
    sampling->is_started |= status == GPUFL_OK;
    return status;
}

gpufl_status pm_sampling_decode(struct pm_sampling *sampling, struct pm_decode *decode, struct problem *problem)
{
    gpufl_status status = image_reset(sampling, problem);
    if (status != GPUFL_OK)
        return status;
    struct pm_abi_decode params = {.struct_bytes = PM_ABI_DECODE_BYTES,
                                   .object = sampling->object,
                                   .image = sampling->image,
                                   .image_bytes = sampling->facts.image_bytes};
    int result = sampling->call.decode(&params);
    /* A full hardware buffer is reported by the flag or by this result, depending on the release. */
    bool has_overflowed = params.overflow || result == PROFILER_ABI_OUT_OF_MEMORY;
    if (!has_overflowed) {
        status = checked(sampling, "cuptiPmSamplingDecodeData", result, problem);
        if (status != GPUFL_OK)
            return status;
    }
    struct pm_abi_image_info info = {
        .struct_bytes = PM_ABI_IMAGE_INFO_BYTES, .image = sampling->image, .image_bytes = sampling->facts.image_bytes};
    status = checked(sampling, "cuptiPmSamplingGetCounterDataInfo", sampling->call.get_image_info(&info), problem);
    if (status != GPUFL_OK)
        return status;
    size_t count = info.completed_samples;
    sampling->decoded_count = count < sampling->options.sample_capacity ? count : sampling->options.sample_capacity;
    decode->sample_count = sampling->decoded_count;
    decode->is_full = params.stop_reason == PM_ABI_STOP_IMAGE_FULL;
    decode->has_overflowed = has_overflowed;
    return GPUFL_OK;
}

gpufl_status pm_sampling_read(struct pm_sampling *sampling, size_t index, struct pm_sample_time *time, double *values,
                              struct problem *problem)
{
    if (index >= sampling->decoded_count)
        return problem_set(problem, GPUFL_E_INVALID, "sample %zu of %zu", index, sampling->decoded_count);
    struct pm_abi_sample_info params = {.struct_bytes = PM_ABI_SAMPLE_INFO_BYTES,
                                        .object = sampling->object,
                                        .image = sampling->image,
                                        .image_bytes = sampling->facts.image_bytes,
                                        .sample_index = index};
    gpufl_status status =
        checked(sampling, "cuptiPmSamplingCounterDataGetSampleInfo", sampling->call.get_sample_info(&params), problem);
    double own_values[METRICS_MAX];
    if (status == GPUFL_OK)
        status = profiler_host_evaluate(sampling->host, sampling->image, sampling->facts.image_bytes, index,
                                        sampling->metrics.list, sampling->metrics.count, own_values, problem);
    if (status != GPUFL_OK)
        return status;
    metric_choice_spread(&sampling->metrics, own_values, sampling->options.metric_count, values);
    time->start_ns = params.start_timestamp <= INT64_MAX ? (int64_t)params.start_timestamp : 0;
    time->end_ns = params.end_timestamp <= INT64_MAX ? (int64_t)params.end_timestamp : 0;
    return GPUFL_OK;
}

const uint8_t *pm_sampling_image(const struct pm_sampling *sampling, size_t *bytes)
{
    *bytes = sampling->facts.image_bytes;
    return sampling->image;
}

void pm_sampling_stop(struct pm_sampling *sampling)
{
    if (!sampling->is_started)
        return;
    struct pm_abi_object params = {.struct_bytes = PM_ABI_OBJECT_BYTES, .object = sampling->object};
    cupti_note(sampling->cupti, "cuptiPmSamplingStop", sampling->call.stop(&params));
    sampling->is_started = false;
}

void pm_sampling_close(struct pm_sampling *sampling)
{
    if (!sampling)
        return;
    pm_sampling_stop(sampling);
    if (sampling->object) {
        struct pm_abi_object params = {.struct_bytes = PM_ABI_OBJECT_BYTES, .object = sampling->object};
        cupti_note(sampling->cupti, "cuptiPmSamplingDisable", sampling->call.disable(&params));
    }
    profiler_host_close(sampling->host);
    if (sampling->is_acquired)
        profiler_target_release(sampling->cupti);
    pm_sampling_abandon(sampling);
}

void pm_sampling_abandon(struct pm_sampling *sampling)
{
    if (!sampling)
        return;
    metric_plan_free(&sampling->plan);
    free(sampling->image);
    free(sampling);
}
