/* SPDX-License-Identifier: Apache-2.0 */
/* Our declarations of the range profiler against CUPTI's header, where a CUDA
 * toolkit is on the include path. The checks happen at compile time; the test
 * says whether they did. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/range_profiler_abi.h"

#if defined(__has_include)
#if __has_include(<cupti_range_profiler.h>) && __has_include(<cuda.h>)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include <cuda.h>
#include <cupti_range_profiler.h>
#pragma GCC diagnostic pop
#define HAS_VENDOR_HEADERS 1
#endif
#endif

#ifdef HAS_VENDOR_HEADERS

#define BYTES(ours, theirs) _Static_assert((size_t)(ours) == theirs##_STRUCT_SIZE, #theirs)
#define AT(ours, member, theirs, their_member)                                                    \
    _Static_assert(offsetof(struct ours, member) == offsetof(theirs, their_member) &&             \
                       sizeof(((struct ours *)0)->member) == sizeof(((theirs *)0)->their_member), \
                   #theirs "." #their_member)
#define VALUE(ours, theirs) _Static_assert((unsigned)(ours) == (unsigned)(theirs), #theirs)

VALUE(RANGE_ABI_AUTO, CUPTI_AutoRange);
VALUE(RANGE_ABI_USER, CUPTI_UserRange);
VALUE(RANGE_ABI_REPLAY_APPLICATION, CUPTI_ApplicationReplay);
VALUE(RANGE_ABI_REPLAY_KERNEL, CUPTI_KernelReplay);
VALUE(RANGE_ABI_REPLAY_USER, CUPTI_UserReplay);

BYTES(RANGE_ABI_SET_CONFIG_BYTES, CUpti_RangeProfiler_SetConfig_Params);
AT(range_abi_set_config, struct_bytes, CUpti_RangeProfiler_SetConfig_Params, structSize);
AT(range_abi_set_config, priv, CUpti_RangeProfiler_SetConfig_Params, pPriv);
AT(range_abi_set_config, object, CUpti_RangeProfiler_SetConfig_Params, pRangeProfilerObject);
AT(range_abi_set_config, config_bytes, CUpti_RangeProfiler_SetConfig_Params, configSize);
AT(range_abi_set_config, config, CUpti_RangeProfiler_SetConfig_Params, pConfig);
AT(range_abi_set_config, image_bytes, CUpti_RangeProfiler_SetConfig_Params, counterDataImageSize);
AT(range_abi_set_config, image, CUpti_RangeProfiler_SetConfig_Params, pCounterDataImage);
AT(range_abi_set_config, range, CUpti_RangeProfiler_SetConfig_Params, range);
AT(range_abi_set_config, replay_mode, CUpti_RangeProfiler_SetConfig_Params, replayMode);
AT(range_abi_set_config, ranges_per_pass_max, CUpti_RangeProfiler_SetConfig_Params, maxRangesPerPass);
AT(range_abi_set_config, nesting_level_count, CUpti_RangeProfiler_SetConfig_Params, numNestingLevels);
AT(range_abi_set_config, nesting_level_min, CUpti_RangeProfiler_SetConfig_Params, minNestingLevel);
AT(range_abi_set_config, pass_index, CUpti_RangeProfiler_SetConfig_Params, passIndex);
AT(range_abi_set_config, nesting_level_target, CUpti_RangeProfiler_SetConfig_Params, targetNestingLevel);

BYTES(RANGE_ABI_ENABLE_BYTES, CUpti_RangeProfiler_Enable_Params);
AT(range_abi_enable, context, CUpti_RangeProfiler_Enable_Params, ctx);
AT(range_abi_enable, object, CUpti_RangeProfiler_Enable_Params, pRangeProfilerObject);

BYTES(RANGE_ABI_OBJECT_BYTES, CUpti_RangeProfiler_Disable_Params);
BYTES(RANGE_ABI_OBJECT_BYTES, CUpti_RangeProfiler_Start_Params);
BYTES(RANGE_ABI_OBJECT_BYTES, CUpti_RangeProfiler_PopRange_Params);
AT(range_abi_object, object, CUpti_RangeProfiler_Disable_Params, pRangeProfilerObject);
AT(range_abi_object, object, CUpti_RangeProfiler_Start_Params, pRangeProfilerObject);
AT(range_abi_object, object, CUpti_RangeProfiler_PopRange_Params, pRangeProfilerObject);

BYTES(RANGE_ABI_STOP_BYTES, CUpti_RangeProfiler_Stop_Params);
AT(range_abi_stop, object, CUpti_RangeProfiler_Stop_Params, pRangeProfilerObject);
AT(range_abi_stop, pass_index, CUpti_RangeProfiler_Stop_Params, passIndex);
AT(range_abi_stop, nesting_level_target, CUpti_RangeProfiler_Stop_Params, targetNestingLevel);
AT(range_abi_stop, is_all_submitted, CUpti_RangeProfiler_Stop_Params, isAllPassSubmitted);

BYTES(RANGE_ABI_PUSH_BYTES, CUpti_RangeProfiler_PushRange_Params);
AT(range_abi_push, object, CUpti_RangeProfiler_PushRange_Params, pRangeProfilerObject);
AT(range_abi_push, name, CUpti_RangeProfiler_PushRange_Params, pRangeName);

BYTES(RANGE_ABI_DECODE_BYTES, CUpti_RangeProfiler_DecodeData_Params);
AT(range_abi_decode, object, CUpti_RangeProfiler_DecodeData_Params, pRangeProfilerObject);
AT(range_abi_decode, dropped_count, CUpti_RangeProfiler_DecodeData_Params, numOfRangeDropped);

BYTES(RANGE_ABI_IMAGE_SIZE_BYTES, CUpti_RangeProfiler_GetCounterDataSize_Params);
AT(range_abi_image_size, object, CUpti_RangeProfiler_GetCounterDataSize_Params, pRangeProfilerObject);
AT(range_abi_image_size, metric_names, CUpti_RangeProfiler_GetCounterDataSize_Params, pMetricNames);
AT(range_abi_image_size, metric_count, CUpti_RangeProfiler_GetCounterDataSize_Params, numMetrics);
AT(range_abi_image_size, ranges_max, CUpti_RangeProfiler_GetCounterDataSize_Params, maxNumOfRanges);
AT(range_abi_image_size, tree_nodes_max, CUpti_RangeProfiler_GetCounterDataSize_Params, maxNumRangeTreeNodes);
AT(range_abi_image_size, image_bytes, CUpti_RangeProfiler_GetCounterDataSize_Params, counterDataSize);

BYTES(RANGE_ABI_IMAGE_INITIALIZE_BYTES, CUpti_RangeProfiler_CounterDataImage_Initialize_Params);
AT(range_abi_image_initialize, object, CUpti_RangeProfiler_CounterDataImage_Initialize_Params, pRangeProfilerObject);
AT(range_abi_image_initialize, image_bytes, CUpti_RangeProfiler_CounterDataImage_Initialize_Params, counterDataSize);
AT(range_abi_image_initialize, image, CUpti_RangeProfiler_CounterDataImage_Initialize_Params, pCounterData);

BYTES(RANGE_ABI_IMAGE_INFO_BYTES, CUpti_RangeProfiler_GetCounterDataInfo_Params);
AT(range_abi_image_info, image, CUpti_RangeProfiler_GetCounterDataInfo_Params, pCounterDataImage);
AT(range_abi_image_info, image_bytes, CUpti_RangeProfiler_GetCounterDataInfo_Params, counterDataImageSize);
AT(range_abi_image_info, range_count, CUpti_RangeProfiler_GetCounterDataInfo_Params, numTotalRanges);

BYTES(RANGE_ABI_RANGE_INFO_BYTES, CUpti_RangeProfiler_CounterData_GetRangeInfo_Params);
AT(range_abi_range_info, image, CUpti_RangeProfiler_CounterData_GetRangeInfo_Params, pCounterDataImage);
AT(range_abi_range_info, image_bytes, CUpti_RangeProfiler_CounterData_GetRangeInfo_Params, counterDataImageSize);
AT(range_abi_range_info, range_index, CUpti_RangeProfiler_CounterData_GetRangeInfo_Params, rangeIndex);
AT(range_abi_range_info, delimiter, CUpti_RangeProfiler_CounterData_GetRangeInfo_Params, rangeDelimiter);
AT(range_abi_range_info, range_name, CUpti_RangeProfiler_CounterData_GetRangeInfo_Params, rangeName);

#endif

static void declarations_match_the_vendors(void **state)
{
    (void)state;
#ifndef HAS_VENDOR_HEADERS
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(declarations_match_the_vendors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
