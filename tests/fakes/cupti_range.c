/* SPDX-License-Identifier: Apache-2.0 */
/* Look-alike range profiler. As strict as the real one's documentation: a pass
 * index only with application replay, which then is good for that one pass; auto
 * ranges only with kernel replay; what was not decoded before the next
 * configuration is gone. Metric i of a set is collected in pass i / 4.
 *
 * While a stream of the context captures (H200, CUPTI 13.0, tests/device/graph_probe.cu): enabling succeeds and
 * invalidates the capture; decoding, and of a user range also starting, pushing, popping and stopping, answer 999 and
 * invalidate it; stopping auto ranges is harmless. */
#include "cupti_range.h"

#include "cupti_callbacks.h"
#include "cupti_fake.h"
#include "driver/range_profiler_abi.h"
#include "faults.h"
#include "gpu_timeline.h"
#include "profiler_image.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANGE_PROTOTYPE(member, symbol, parameter) FAKE_API int symbol(struct parameter *);
RANGE_ABI_FUNCTIONS(RANGE_PROTOTYPE)
#undef RANGE_PROTOTYPE

enum { METRICS_PER_PASS = 4, OBJECTS_MAX = 16 };

struct range_object {
    uint32_t context_id; /* 0: free */
    struct fake_context *context;
    bool is_configured, is_started, is_pushed, is_spent;
    uint32_t range, replay, ranges_max;
    struct config_image config;
    struct counter_data_image *image; /* the client's */
    uint32_t pass_index;
    uint64_t pending_passes; /* bits: submitted, not decoded */
    uint32_t pending_kernels;
    char name[PROFILER_IMAGE_NAME_BYTES];
};
static struct range_object objects[OBJECTS_MAX];
static pthread_mutex_t objects_lock = PTHREAD_MUTEX_INITIALIZER;

void range_work(const struct fake_work *work)
{
    pthread_mutex_lock(&objects_lock);
    for (size_t i = 0; i < OBJECTS_MAX; i++) {
        struct range_object *object = &objects[i];
        if (work->kind == FAKE_WORK_KERNEL && object->context_id == work->context_id && object->is_started &&
            object->range == RANGE_ABI_AUTO)
            object->pending_kernels++;
    }
    pthread_mutex_unlock(&objects_lock);
}

/* Takes the lock when it succeeds. object NULL: there is none to check. */
static int call_begin(const char *function, size_t struct_bytes, size_t expected, const struct range_object *object)
{
    int result = fault_result_sized(function, struct_bytes, expected);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    pthread_mutex_lock(&objects_lock);
    if (object && (object < objects || object >= objects + OBJECTS_MAX || !object->context_id))
        result = CUPTI_INVALID_PARAMETER;
    if (result != CUPTI_ABI_SUCCESS)
        pthread_mutex_unlock(&objects_lock);
    return result;
}

/* The same, of a call that a capture does not survive. */
static int call_begin_uncaptured(const char *function, size_t struct_bytes, size_t expected,
                                 const struct range_object *object, bool is_for_user_ranges)
{
    int result = call_begin(function, struct_bytes, expected, object);
    if (result == CUPTI_ABI_SUCCESS && (!is_for_user_ranges || object->range == RANGE_ABI_USER) &&
        context_spoils_capture(object->context)) {
        result = CUPTI_ABI_UNKNOWN;
        pthread_mutex_unlock(&objects_lock);
    }
    return result;
}

static int call_end(int result)
{
    pthread_mutex_unlock(&objects_lock);
    return result;
}

int cuptiRangeProfilerEnable(struct range_abi_enable *parameter)
{
    int result = call_begin("cuptiRangeProfilerEnable", parameter->struct_bytes, RANGE_ABI_ENABLE_BYTES, NULL);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    const struct fake_context *context = parameter->context;
    struct range_object *object = NULL;
    if (!context)
        return call_end(CUPTI_INVALID_PARAMETER);
    for (size_t i = 0; i < OBJECTS_MAX; i++) {
        if (objects[i].context_id == context->id)
            return call_end(CUPTI_INVALID_OPERATION);
        if (!objects[i].context_id)
            object = &objects[i];
    }
    if (!object)
        return call_end(PROFILER_ABI_OUT_OF_MEMORY);
    *object = (struct range_object){.context_id = context->id, .context = parameter->context};
    (void)context_spoils_capture(object->context);
    parameter->object = object;
    return call_end(cupti_attach());
}

int cuptiRangeProfilerDisable(struct range_abi_object *parameter)
{
    struct range_object *object = parameter->object;
    int result = call_begin("cuptiRangeProfilerDisable", parameter->struct_bytes, RANGE_ABI_OBJECT_BYTES, object);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    object->context_id = 0;
    return call_end(CUPTI_ABI_SUCCESS);
}

static bool config_is_good(const struct range_abi_set_config *parameter)
{
    const struct config_image *config = (const void *)parameter->config;
    const struct counter_data_image *image = (const void *)parameter->image;
    bool is_auto = parameter->range == RANGE_ABI_AUTO;
    return parameter->config_bytes >= sizeof *config && config->magic == CONFIG_IMAGE_MAGIC &&
           parameter->image_bytes >= sizeof *image && image->magic == COUNTER_DATA_IMAGE_MAGIC &&
           parameter->image_bytes >= counter_data_image_bytes(image->capacity) && parameter->ranges_per_pass_max &&
           parameter->nesting_level_count == 1 && parameter->nesting_level_min == 1 &&
           parameter->nesting_level_target == 1 && parameter->pass_index < config->pass_count &&
           (!parameter->pass_index || parameter->replay_mode == RANGE_ABI_REPLAY_APPLICATION) &&
           is_auto == (parameter->replay_mode == RANGE_ABI_REPLAY_KERNEL);
}

int cuptiRangeProfilerSetConfig(struct range_abi_set_config *parameter)
{
    struct range_object *object = parameter->object;
    int result = call_begin("cuptiRangeProfilerSetConfig", parameter->struct_bytes, RANGE_ABI_SET_CONFIG_BYTES, object);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    if (object->is_started)
        return call_end(CUPTI_INVALID_OPERATION);
    if (!config_is_good(parameter))
        return call_end(CUPTI_INVALID_PARAMETER);
    /* The real profiler continues with the missing passes, whatever it is given. */
    bool is_midway = object->is_configured && object->range == RANGE_ABI_USER && object->pass_index &&
                     object->pass_index < object->config.pass_count;
    *object = (struct range_object){.context_id = object->context_id,
                                    .context = object->context,
                                    .is_configured = true,
                                    .range = parameter->range,
                                    .replay = parameter->replay_mode,
                                    .ranges_max = (uint32_t)parameter->ranges_per_pass_max,
                                    .image = (struct counter_data_image *)(void *)parameter->image,
                                    .pass_index = is_midway ? object->pass_index : (uint32_t)parameter->pass_index};
    memcpy(&object->config, parameter->config, sizeof object->config);
    object->image->metric_count = object->config.metric_count;
    memcpy(object->image->metrics, object->config.metrics, sizeof object->image->metrics);
    return call_end(CUPTI_ABI_SUCCESS);
}

int cuptiRangeProfilerStart(struct range_abi_object *parameter)
{
    struct range_object *object = parameter->object;
    int result =
        call_begin_uncaptured("cuptiRangeProfilerStart", parameter->struct_bytes, RANGE_ABI_OBJECT_BYTES, object, true);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    if (!object->is_configured || object->is_started || object->is_spent ||
        object->pass_index >= object->config.pass_count)
        return call_end(CUPTI_INVALID_OPERATION);
    object->is_started = true;
    object->name[0] = '\0';
    return call_end(CUPTI_ABI_SUCCESS);
}

int cuptiRangeProfilerPushRange(struct range_abi_push *parameter)
{
    struct range_object *object = parameter->object;
    int result = call_begin_uncaptured("cuptiRangeProfilerPushRange", parameter->struct_bytes, RANGE_ABI_PUSH_BYTES,
                                       object, true);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    if (!object->is_started || object->is_pushed || object->range != RANGE_ABI_USER)
        return call_end(CUPTI_INVALID_OPERATION);
    if (!parameter->name || strlen(parameter->name) >= sizeof object->name)
        return call_end(CUPTI_INVALID_PARAMETER);
    object->is_pushed = true;
    snprintf(object->name, sizeof object->name, "%s", parameter->name);
    return call_end(CUPTI_ABI_SUCCESS);
}

int cuptiRangeProfilerPopRange(struct range_abi_object *parameter)
{
    struct range_object *object = parameter->object;
    int result = call_begin_uncaptured("cuptiRangeProfilerPopRange", parameter->struct_bytes, RANGE_ABI_OBJECT_BYTES,
                                       object, true);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    bool is_open = object->is_pushed;
    object->is_pushed = false;
    return call_end(is_open ? CUPTI_ABI_SUCCESS : CUPTI_INVALID_OPERATION);
}

int cuptiRangeProfilerStop(struct range_abi_stop *parameter)
{
    struct range_object *object = parameter->object;
    int result =
        call_begin_uncaptured("cuptiRangeProfilerStop", parameter->struct_bytes, RANGE_ABI_STOP_BYTES, object, true);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    if (!object->is_started || object->is_pushed)
        return call_end(CUPTI_INVALID_OPERATION);
    object->is_started = false;
    if (object->replay == RANGE_ABI_REPLAY_KERNEL)
        object->pass_index = object->config.pass_count;
    else
        object->pending_passes |= 1ull << object->pass_index++;
    object->is_spent = object->replay == RANGE_ABI_REPLAY_APPLICATION;
    parameter->pass_index = object->pass_index;
    parameter->nesting_level_target = 1;
    parameter->is_all_submitted = object->pass_index >= object->config.pass_count;
    return call_end(CUPTI_ABI_SUCCESS);
}

/* The image's range of that name, made when new; NULL when it is full. */
static struct counter_data_range *range_find(struct counter_data_image *image, const char *name)
{
    for (uint32_t i = 0; i < image->count; i++)
        if (!strcmp(image->ranges[i].name, name))
            return &image->ranges[i];
    if (image->count == image->capacity)
        return NULL;
    struct counter_data_range *range = &image->ranges[image->count++];
    snprintf(range->name, sizeof range->name, "%s", name);
    for (size_t i = 0; i < PROFILER_IMAGE_METRICS_MAX; i++)
        range->values[i] = NAN;
    return range;
}

/* False: dropped. */
static bool range_fill(struct range_object *object, const char *name, uint64_t passes)
{
    struct counter_data_range *range = range_find(object->image, name);
    for (uint32_t i = 0; range && i < object->config.metric_count; i++)
        if (passes >> (i / METRICS_PER_PASS) & 1)
            range->values[i] = fake_metric_value(object->config.metrics[i], (uint32_t)(range - object->image->ranges));
    return range;
}

int cuptiRangeProfilerDecodeData(struct range_abi_decode *parameter)
{
    struct range_object *object = parameter->object;
    int result = call_begin_uncaptured("cuptiRangeProfilerDecodeData", parameter->struct_bytes, RANGE_ABI_DECODE_BYTES,
                                       object, false);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    if (!object->is_configured || object->is_started)
        return call_end(CUPTI_INVALID_OPERATION);
    parameter->dropped_count = 0;
    if (object->range == RANGE_ABI_USER && object->pending_passes)
        parameter->dropped_count += !range_fill(object, object->name, object->pending_passes);
    for (uint32_t i = 0; i < object->pending_kernels; i++) {
        char name[16];
        snprintf(name, sizeof name, "%u", i);
        parameter->dropped_count += i >= object->ranges_max || !range_fill(object, name, ~0ull);
    }
    object->pending_passes = 0;
    object->pending_kernels = 0;
    return call_end(CUPTI_ABI_SUCCESS);
}

int cuptiRangeProfilerGetCounterDataSize(struct range_abi_image_size *parameter)
{
    int result = call_begin("cuptiRangeProfilerGetCounterDataSize", parameter->struct_bytes, RANGE_ABI_IMAGE_SIZE_BYTES,
                            parameter->object);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    if (!parameter->metric_count || !parameter->ranges_max || parameter->tree_nodes_max < parameter->ranges_max)
        return call_end(CUPTI_INVALID_PARAMETER);
    parameter->image_bytes = counter_data_image_bytes((uint32_t)parameter->ranges_max);
    return call_end(CUPTI_ABI_SUCCESS);
}

int cuptiRangeProfilerCounterDataImageInitialize(struct range_abi_image_initialize *parameter)
{
    int result = call_begin("cuptiRangeProfilerCounterDataImageInitialize", parameter->struct_bytes,
                            RANGE_ABI_IMAGE_INITIALIZE_BYTES, parameter->object);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    struct counter_data_image *image = (void *)parameter->image;
    if (!image || parameter->image_bytes < counter_data_image_bytes(1))
        return call_end(CUPTI_INVALID_PARAMETER);
    image->magic = COUNTER_DATA_IMAGE_MAGIC;
    image->metric_count = image->count = 0;
    image->capacity = (uint32_t)((parameter->image_bytes - sizeof *image) / sizeof(struct counter_data_range));
    return call_end(CUPTI_ABI_SUCCESS);
}

static int image_check(const char *function, size_t struct_bytes, size_t expected, const uint8_t *bytes,
                       size_t image_bytes)
{
    const struct counter_data_image *image = (const void *)bytes;
    int result = call_begin(function, struct_bytes, expected, NULL);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    return call_end(image && image_bytes >= sizeof *image && image->magic == COUNTER_DATA_IMAGE_MAGIC &&
                            image_bytes >= counter_data_image_bytes(image->count)
                        ? CUPTI_ABI_SUCCESS
                        : CUPTI_INVALID_PARAMETER);
}

int cuptiRangeProfilerGetCounterDataInfo(struct range_abi_image_info *parameter)
{
    int result = image_check("cuptiRangeProfilerGetCounterDataInfo", parameter->struct_bytes,
                             RANGE_ABI_IMAGE_INFO_BYTES, parameter->image, parameter->image_bytes);
    if (result == CUPTI_ABI_SUCCESS)
        parameter->range_count = ((const struct counter_data_image *)(const void *)parameter->image)->count;
    return result;
}

int cuptiRangeProfilerCounterDataGetRangeInfo(struct range_abi_range_info *parameter)
{
    int result = image_check("cuptiRangeProfilerCounterDataGetRangeInfo", parameter->struct_bytes,
                             RANGE_ABI_RANGE_INFO_BYTES, parameter->image, parameter->image_bytes);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    const struct counter_data_image *image = (const void *)parameter->image;
    if (parameter->range_index >= image->count || !parameter->delimiter)
        return CUPTI_INVALID_PARAMETER;
    parameter->range_name = image->ranges[parameter->range_index].name;
    return CUPTI_ABI_SUCCESS;
}
