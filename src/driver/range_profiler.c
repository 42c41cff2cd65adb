/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/range_profiler.h"

#include "driver/cupti_table.h"
#include "driver/profiler_target.h"
#include "driver/range_profiler_abi.h"

#include <stdio.h>
#include <stdlib.h>

enum { image_bytes_max = 1 << 30 }; /* a larger size is an error */

struct range_profiler {
    struct cupti *cupti;
    void *object;
    struct {
#define RANGE_MEMBER(member, symbol, parameter) int (*member)(struct parameter *);
        RANGE_ABI_FUNCTIONS(RANGE_MEMBER)
#undef RANGE_MEMBER
    } call;
};

static gpufl_status functions_bind(struct range_profiler *profiler, struct problem *problem)
{
#define RANGE_BIND(member, symbol, parameter)                                                          \
    profiler->call.member =                                                                            \
        __extension__(int (*)(struct parameter *)) library_symbol(&profiler->cupti->library, #symbol); \
    if (!profiler->call.member)                                                                        \
        return profiler_lacks(profiler->cupti, #symbol, problem);
    RANGE_ABI_FUNCTIONS(RANGE_BIND)
#undef RANGE_BIND
    return GPUFL_OK;
}

static gpufl_status answer(const struct range_profiler *profiler, const char *function, int result,
                           struct problem *problem)
{
    return result == CUPTI_ABI_SUCCESS ? GPUFL_OK : profiler_problem(profiler->cupti, function, result, problem);
}

gpufl_status range_profiler_open(struct range_profiler **out, struct cupti *cupti, void *context,
                                 struct problem *problem)
{
    struct range_profiler *profiler = calloc(1, sizeof *profiler);
    if (!profiler)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory");
    profiler->cupti = cupti;
    struct range_abi_enable enable = {.struct_bytes = RANGE_ABI_ENABLE_BYTES, .context = context};
    gpufl_status status = functions_bind(profiler, problem);
    if (status == GPUFL_OK)
        status = answer(profiler, "cuptiRangeProfilerEnable", profiler->call.enable(&enable), problem);
    if (status != GPUFL_OK) {
        free(profiler);
        return status;
    }
    profiler->object = enable.object;
    *out = profiler;
    return GPUFL_OK;
}

static struct range_abi_object object_of(const struct range_profiler *profiler)
{
    return (struct range_abi_object){.struct_bytes = RANGE_ABI_OBJECT_BYTES, .object = profiler->object};
}

void range_profiler_close(struct range_profiler *profiler)
{
    if (!profiler)
        return;
    struct range_abi_object object = object_of(profiler);
    (void)cupti_note(profiler->cupti, "cuptiRangeProfilerDisable", profiler->call.disable(&object));
    free(profiler);
}

gpufl_status range_profiler_image_bytes(struct range_profiler *profiler, const char *const *metrics,
                                        size_t metric_count, size_t ranges_max, size_t *bytes, struct problem *problem)
{
    struct range_abi_image_size size = {.struct_bytes = RANGE_ABI_IMAGE_SIZE_BYTES,
                                        .object = profiler->object,
                                        .metric_names = (const char **)(uintptr_t)metrics,
                                        .metric_count = metric_count,
                                        .ranges_max = ranges_max,
                                        .tree_nodes_max = (uint32_t)ranges_max};
    gpufl_status status =
        answer(profiler, "cuptiRangeProfilerGetCounterDataSize", profiler->call.image_size(&size), problem);
    if (status != GPUFL_OK)
        return status;
    if (!size.image_bytes || size.image_bytes > image_bytes_max)
        return problem_set(problem, GPUFL_E_UNSUPPORTED, "CUPTI wants %zu bytes for the counters of %zu ranges",
                           size.image_bytes, ranges_max);
    *bytes = size.image_bytes;
    return GPUFL_OK;
}

gpufl_status range_profiler_image_reset(struct range_profiler *profiler, uint8_t *image, size_t image_bytes,
                                        struct problem *problem)
{
    struct range_abi_image_initialize initialize = {.struct_bytes = RANGE_ABI_IMAGE_INITIALIZE_BYTES,
                                                    .object = profiler->object,
                                                    .image_bytes = image_bytes,
                                                    .image = image};
    return answer(profiler, "cuptiRangeProfilerCounterDataImageInitialize",
                  profiler->call.image_initialize(&initialize), problem);
}

/* A pass index other than 0 is documented for application replay only; that mode behaves like user replay otherwise. */
static uint32_t replay_of(const struct range_config *config)
{
    if (config->kind == RANGE_KERNELS)
        return RANGE_ABI_REPLAY_KERNEL;
    return config->place.pass_index ? RANGE_ABI_REPLAY_APPLICATION : RANGE_ABI_REPLAY_USER;
}

gpufl_status range_profiler_configure(struct range_profiler *profiler, const struct range_config *config,
                                      struct problem *problem)
{
    struct range_abi_set_config set = {.struct_bytes = RANGE_ABI_SET_CONFIG_BYTES,
                                       .object = profiler->object,
                                       .config_bytes = config->plan->image_bytes,
                                       .config = config->plan->image,
                                       .image_bytes = config->image_bytes,
                                       .image = config->image,
                                       .range = config->kind == RANGE_KERNELS ? RANGE_ABI_AUTO : RANGE_ABI_USER,
                                       .replay_mode = replay_of(config),
                                       .ranges_per_pass_max = config->ranges_max,
                                       .nesting_level_count = 1,
                                       .nesting_level_min = 1,
                                       .pass_index = config->place.pass_index,
                                       .nesting_level_target = (uint16_t)config->place.nesting_level};
    return answer(profiler, "cuptiRangeProfilerSetConfig", profiler->call.set_config(&set), problem);
}

gpufl_status range_profiler_start(struct range_profiler *profiler, struct problem *problem)
{
    struct range_abi_object object = object_of(profiler);
    return answer(profiler, "cuptiRangeProfilerStart", profiler->call.start(&object), problem);
}

gpufl_status range_profiler_push(struct range_profiler *profiler, const char *name, struct problem *problem)
{
    struct range_abi_push push = {.struct_bytes = RANGE_ABI_PUSH_BYTES, .object = profiler->object, .name = name};
    return answer(profiler, "cuptiRangeProfilerPushRange", profiler->call.push(&push), problem);
}

gpufl_status range_profiler_pop(struct range_profiler *profiler, struct problem *problem)
{
    struct range_abi_object object = object_of(profiler);
    return answer(profiler, "cuptiRangeProfilerPopRange", profiler->call.pop(&object), problem);
}

gpufl_status range_profiler_stop(struct range_profiler *profiler, struct range_pass *pass, struct problem *problem)
{
    struct range_abi_stop stop = {.struct_bytes = RANGE_ABI_STOP_BYTES, .object = profiler->object};
    gpufl_status status = answer(profiler, "cuptiRangeProfilerStop", profiler->call.stop(&stop), problem);
    if (status == GPUFL_OK)
        *pass = (struct range_pass){{stop.pass_index, stop.nesting_level_target}, stop.is_all_submitted != 0};
    return status;
}

gpufl_status range_profiler_decode(struct range_profiler *profiler, size_t *dropped, struct problem *problem)
{
    struct range_abi_decode decode = {.struct_bytes = RANGE_ABI_DECODE_BYTES, .object = profiler->object};
    gpufl_status status = answer(profiler, "cuptiRangeProfilerDecodeData", profiler->call.decode(&decode), problem);
    if (status == GPUFL_OK)
        *dropped = decode.dropped_count;
    return status;
}

gpufl_status range_image_count(struct cupti *cupti, const uint8_t *image, size_t image_bytes, size_t *count,
                               struct problem *problem)
{
    static const char function[] = "cuptiRangeProfilerGetCounterDataInfo";
    int (*call)(struct range_abi_image_info *) =
        __extension__(int (*)(struct range_abi_image_info *)) library_symbol(&cupti->library, function);
    if (!call)
        return profiler_lacks(cupti, function, problem);
    struct range_abi_image_info info = {
        .struct_bytes = RANGE_ABI_IMAGE_INFO_BYTES, .image = image, .image_bytes = image_bytes};
    int result = call(&info);
    if (result != CUPTI_ABI_SUCCESS)
        return profiler_problem(cupti, function, result, problem);
    *count = info.range_count;
    return GPUFL_OK;
}

gpufl_status range_image_name(struct cupti *cupti, const uint8_t *image, size_t image_bytes, size_t index, char *name,
                              size_t name_bytes, struct problem *problem)
{
    static const char function[] = "cuptiRangeProfilerCounterDataGetRangeInfo";
    int (*call)(struct range_abi_range_info *) =
        __extension__(int (*)(struct range_abi_range_info *)) library_symbol(&cupti->library, function);
    if (!call)
        return profiler_lacks(cupti, function, problem);
    struct range_abi_range_info info = {.struct_bytes = RANGE_ABI_RANGE_INFO_BYTES,
                                        .image = image,
                                        .image_bytes = image_bytes,
                                        .range_index = index,
                                        .delimiter = "/"};
    int result = call(&info);
    if (result != CUPTI_ABI_SUCCESS)
        return profiler_problem(cupti, function, result, problem);
    snprintf(name, name_bytes, "%s", info.range_name ? info.range_name : "");
    return GPUFL_OK;
}
