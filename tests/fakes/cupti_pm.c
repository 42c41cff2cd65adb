/* SPDX-License-Identifier: Apache-2.0 */
/* Look-alike PM sampling: between start and stop every device takes a sample per
 * interval of CLOCK_REALTIME, which is only made when it is decoded. As on the
 * real one: the first sample reaches back to before the start, a decode empties
 * the hardware buffer even when the image is full, and the stop reason of a
 * decode that got everything is "other". */
#include "cupti_callbacks.h"
#include "cupti_fake.h"
#include "driver/pm_sampling_abi.h"
#include "faults.h"
#include "h200.h"
#include "profiler_image.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define PM_PROTOTYPE(member, symbol, parameters) FAKE_API int symbol parameters;
PM_SAMPLING_ABI_FUNCTIONS(PM_PROTOTYPE)
#undef PM_PROTOTYPE

enum { AVAILABILITY_BYTES = 64, RAW_SAMPLE_BYTES = 592, SYSCLK_KHZ = 1980000, FIRST_LEAD_NS = 450000000 };
enum { SAMPLE_VALUES = 10 /* then they repeat */ };

struct sampler {
    bool is_enabled, is_configured, is_started;
    bool is_dead;                   /* its hardware buffer was full: no decode gives anything any more */
    bool was_image_full;            /* at the last decode */
    uint64_t interval_ns, capacity; /* samples that the hardware buffer holds */
    bool keeps_latest;
    uint64_t started_ns, stopped_ns, taken_until; /* number of the next sample to decode */
    struct config_image config;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sampler samplers[H200_LIMIT];

/* The fault that was asked for, else whether the caller declared the parameter as we do. */
static int call_begin(const char *function, size_t struct_bytes, size_t expected)
{
    int result = fault_result_sized(function, struct_bytes, expected);
    return result == CUPTI_ABI_SUCCESS && fault_gpu_is_lost() ? CUPTI_ABI_UNKNOWN : result;
}

static struct sampler *sampler_of(void *object)
{
    for (size_t i = 0; i < H200_LIMIT; i++)
        if (object == &samplers[i] && samplers[i].is_enabled)
            return &samplers[i];
    return NULL;
}

int cuptiPmSamplingGetCounterAvailability(struct pm_abi_availability *params)
{
    int result = call_begin("cuptiPmSamplingGetCounterAvailability", params->struct_bytes, PM_ABI_AVAILABILITY_BYTES);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    if (params->device_index >= (size_t)h200_count() || (params->image && params->image_bytes < AVAILABILITY_BYTES))
        return CUPTI_INVALID_PARAMETER;
    if (samplers[params->device_index].is_enabled)
        return 999; /* CUPTI_ERROR_UNKNOWN, as the real one says then */
    if (params->image)
        memset(params->image, 0xca, AVAILABILITY_BYTES);
    params->image_bytes = AVAILABILITY_BYTES;
    return CUPTI_ABI_SUCCESS;
}

int cuptiPmSamplingEnable(struct pm_abi_enable *params)
{
    int result = call_begin("cuptiPmSamplingEnable", params->struct_bytes, PM_ABI_ENABLE_BYTES);
    if (result == CUPTI_ABI_SUCCESS)
        result = cupti_attach();
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    if (params->device_index >= (size_t)h200_count())
        return CUPTI_INVALID_PARAMETER;
    pthread_mutex_lock(&lock);
    struct sampler *sampler = &samplers[params->device_index];
    if (sampler->is_enabled)
        result = CUPTI_INVALID_OPERATION;
    else {
        memset(sampler, 0, sizeof *sampler);
        sampler->is_enabled = true;
        params->object = sampler;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

int cuptiPmSamplingSetConfig(struct pm_abi_set_config *params)
{
    int result = call_begin("cuptiPmSamplingSetConfig", params->struct_bytes, PM_ABI_SET_CONFIG_BYTES);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    const struct config_image *config = (const void *)params->config;
    pthread_mutex_lock(&lock);
    struct sampler *sampler = sampler_of(params->object);
    if (!sampler || sampler->is_configured || !params->sampling_interval || params->config_bytes != sizeof *config ||
        config->magic != CONFIG_IMAGE_MAGIC)
        result = CUPTI_INVALID_PARAMETER; /* also another configuration: the real one crashed */
    else if (config->pass_count != 1)
        result = PROFILER_ABI_NOT_SUPPORTED;
    else {
        sampler->is_configured = true;
        sampler->config = *config;
        sampler->capacity = params->hardware_buffer_bytes / RAW_SAMPLE_BYTES;
        sampler->keeps_latest = params->append_mode == PM_ABI_KEEP_LATEST;
        sampler->interval_ns = params->trigger_mode == PM_ABI_TRIGGER_TIME
                                   ? params->sampling_interval
                                   : params->sampling_interval * 1000000 / SYSCLK_KHZ;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

int cuptiPmSamplingGetCounterDataSize(struct pm_abi_image_size *params)
{
    int result = call_begin("cuptiPmSamplingGetCounterDataSize", params->struct_bytes, PM_ABI_IMAGE_SIZE_BYTES);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    if (!params->metrics || !params->metric_count || !params->max_samples)
        return CUPTI_INVALID_PARAMETER;
    params->image_bytes = counter_data_image_bytes(params->max_samples);
    return CUPTI_ABI_SUCCESS;
}

int cuptiPmSamplingCounterDataImageInitialize(struct pm_abi_image_initialize *params)
{
    int result =
        call_begin("cuptiPmSamplingCounterDataImageInitialize", params->struct_bytes, PM_ABI_IMAGE_INITIALIZE_BYTES);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    struct counter_data_image *image = (void *)params->image;
    pthread_mutex_lock(&lock);
    const struct sampler *sampler = sampler_of(params->object);
    if (!sampler || !sampler->is_configured || params->image_bytes < counter_data_image_bytes(1))
        result = CUPTI_INVALID_PARAMETER;
    else {
        image->magic = COUNTER_DATA_IMAGE_MAGIC;
        image->metric_count = sampler->config.metric_count;
        image->count = 0;
        image->capacity = (uint32_t)((params->image_bytes - sizeof *image) / sizeof image->ranges[0]);
        memcpy(image->metrics, sampler->config.metrics, sizeof image->metrics);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static int switch_sampling(const char *function, const struct pm_abi_object *params, bool is_on)
{
    int result = call_begin(function, params->struct_bytes, PM_ABI_OBJECT_BYTES);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    struct sampler *sampler = sampler_of(params->object);
    if (!sampler || !sampler->is_configured || sampler->is_started == is_on)
        result = CUPTI_INVALID_OPERATION;
    else {
        sampler->is_started = is_on;
        *(is_on ? &sampler->started_ns : &sampler->stopped_ns) = clock_now_ns();
        if (is_on)
            sampler->taken_until = 0;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

int cuptiPmSamplingStart(struct pm_abi_object *params)
{
    return switch_sampling("cuptiPmSamplingStart", params, true);
}

int cuptiPmSamplingStop(struct pm_abi_object *params)
{
    return switch_sampling("cuptiPmSamplingStop", params, false);
}

int cuptiPmSamplingDisable(struct pm_abi_object *params)
{
    int result = call_begin("cuptiPmSamplingDisable", params->struct_bytes, PM_ABI_OBJECT_BYTES);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    struct sampler *sampler = sampler_of(params->object);
    if (sampler)
        sampler->is_enabled = false;
    else
        result = CUPTI_INVALID_PARAMETER;
    pthread_mutex_unlock(&lock);
    return result;
}

/* FAKE_FAULTS: pm_zero_every=N, the Nth sample has no time; pm_blind=METRIC, which never has a value. */
static void sample_fill(const struct sampler *sampler, uint64_t number, struct counter_data_range *range)
{
    char blind[PROFILER_IMAGE_METRIC_BYTES];
    fault_text("pm_blind", blind, sizeof blind);
    int64_t zero_every = fault_number("pm_zero_every", 0);
    memset(range, 0, sizeof *range);
    range->start_ns = sampler->started_ns + number * sampler->interval_ns;
    range->end_ns = range->start_ns + sampler->interval_ns;
    if (number == 0)
        range->start_ns -= FIRST_LEAD_NS;
    if (zero_every && (number + 1) % (uint64_t)zero_every == 0)
        range->start_ns = 0;
    for (uint32_t i = 0; i < sampler->config.metric_count; i++)
        range->values[i] = strcmp(blind, sampler->config.metrics[i])
                               ? fake_metric_value(sampler->config.metrics[i], (uint32_t)(number % SAMPLE_VALUES))
                               : NAN;
}

/* FAKE_FAULTS: pm_dead_when_full=1, a full hardware buffer is the end of the object, as on the real one in either mode;
 * pm_full_at=N, the Nth decode finds it full. */
static bool dies(struct sampler *sampler, uint64_t waiting)
{
    static int64_t decodes;
    bool is_full = ++decodes == fault_number("pm_full_at", 0);
    sampler->is_dead |= is_full || (waiting > sampler->capacity && fault_number("pm_dead_when_full", 0));
    return sampler->is_dead;
}

/* FAKE_FAULTS: pm_stale_us=N, the first sample after a full image begins N us too early. */
static int decode(struct sampler *sampler, struct counter_data_image *image, struct pm_abi_decode *params)
{
    uint64_t until_ns = sampler->is_started ? clock_now_ns() : sampler->stopped_ns;
    uint64_t due = until_ns > sampler->started_ns ? (until_ns - sampler->started_ns) / sampler->interval_ns : 0;
    uint64_t first = sampler->taken_until < due ? sampler->taken_until : due, end = due;
    if (dies(sampler, end - first)) {
        params->overflow = 1;
        return PROFILER_ABI_OUT_OF_MEMORY;
    }
    if (end - first > sampler->capacity) {
        if (sampler->keeps_latest)
            first = end - sampler->capacity;
        else
            end = first + sampler->capacity;
        params->overflow = !sampler->keeps_latest;
    }
    params->stop_reason = PM_ABI_STOP_OTHER;
    for (; first < end; first++) {
        if (image->count == image->capacity) {
            params->stop_reason = PM_ABI_STOP_IMAGE_FULL;
            break;
        }
        sample_fill(sampler, first, &image->ranges[image->count++]);
    }
    if (sampler->was_image_full && image->count)
        image->ranges[0].start_ns -= (uint64_t)fault_number("pm_stale_us", 0) * 1000;
    sampler->was_image_full = params->stop_reason == PM_ABI_STOP_IMAGE_FULL;
    sampler->taken_until = due;
    return CUPTI_ABI_SUCCESS;
}

/* FAKE_FAULTS: pm_decode_us=N, a decode takes N us for each sample, as the real one does while its GPU is busy. */
int cuptiPmSamplingDecodeData(struct pm_abi_decode *params)
{
    int result = call_begin("cuptiPmSamplingDecodeData", params->struct_bytes, PM_ABI_DECODE_BYTES);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    struct counter_data_image *image = (void *)params->image;
    pthread_mutex_lock(&lock);
    struct sampler *sampler = sampler_of(params->object);
    if (!sampler || !sampler->started_ns || image->magic != COUNTER_DATA_IMAGE_MAGIC)
        result = CUPTI_INVALID_OPERATION;
    else
        result = decode(sampler, image, params);
    pthread_mutex_unlock(&lock);
    if (result == CUPTI_ABI_SUCCESS)
        usleep((useconds_t)(image->count * fault_number("pm_decode_us", 0)));
    return result;
}

int cuptiPmSamplingGetCounterDataInfo(struct pm_abi_image_info *params)
{
    int result = call_begin("cuptiPmSamplingGetCounterDataInfo", params->struct_bytes, PM_ABI_IMAGE_INFO_BYTES);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    const struct counter_data_image *image = (const void *)params->image;
    if (image->magic != COUNTER_DATA_IMAGE_MAGIC)
        return CUPTI_INVALID_PARAMETER;
    params->total_samples = image->capacity;
    params->populated_samples = params->completed_samples = image->count;
    return CUPTI_ABI_SUCCESS;
}

int cuptiPmSamplingCounterDataGetSampleInfo(struct pm_abi_sample_info *params)
{
    int result = call_begin("cuptiPmSamplingCounterDataGetSampleInfo", params->struct_bytes, PM_ABI_SAMPLE_INFO_BYTES);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    const struct counter_data_image *image = (const void *)params->image;
    if (image->magic != COUNTER_DATA_IMAGE_MAGIC || params->sample_index >= image->count)
        return CUPTI_INVALID_PARAMETER;
    params->start_timestamp = image->ranges[params->sample_index].start_ns;
    params->end_timestamp = image->ranges[params->sample_index].end_ns;
    return CUPTI_ABI_SUCCESS;
}
