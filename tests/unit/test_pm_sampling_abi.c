/* SPDX-License-Identifier: Apache-2.0 */
/* Our declarations of PM sampling against CUPTI's header, where a CUDA toolkit
 * of 13.0 or newer is on the include path. The checks happen at compile time; the
 * test says whether they did. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/pm_sampling_abi.h"

#if defined(__has_include)
#if __has_include(<cupti_pmsampling.h>) && __has_include(<cuda.h>)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include <cuda.h>
#include <cupti_pmsampling.h>
#pragma GCC diagnostic pop
#define HAS_VENDOR_HEADERS 1
#endif
#endif

#ifdef HAS_VENDOR_HEADERS

#define BYTES(ours, theirs) _Static_assert((ours) == theirs##_STRUCT_SIZE, #theirs)
#define AT(ours, member, theirs, their_member)                                                    \
    _Static_assert(offsetof(struct ours, member) == offsetof(theirs, their_member) &&             \
                       sizeof(((struct ours *)0)->member) == sizeof(((theirs *)0)->their_member), \
                   #theirs "." #their_member)
#define VALUE(ours, theirs) _Static_assert((unsigned)(ours) == (unsigned)(theirs), #theirs)

BYTES(PM_ABI_SET_CONFIG_BYTES, CUpti_PmSampling_SetConfig_Params);
AT(pm_abi_set_config, struct_bytes, CUpti_PmSampling_SetConfig_Params, structSize);
AT(pm_abi_set_config, priv, CUpti_PmSampling_SetConfig_Params, pPriv);
AT(pm_abi_set_config, object, CUpti_PmSampling_SetConfig_Params, pPmSamplingObject);
AT(pm_abi_set_config, config_bytes, CUpti_PmSampling_SetConfig_Params, configSize);
AT(pm_abi_set_config, config, CUpti_PmSampling_SetConfig_Params, pConfig);
AT(pm_abi_set_config, hardware_buffer_bytes, CUpti_PmSampling_SetConfig_Params, hardwareBufferSize);
AT(pm_abi_set_config, sampling_interval, CUpti_PmSampling_SetConfig_Params, samplingInterval);
AT(pm_abi_set_config, trigger_mode, CUpti_PmSampling_SetConfig_Params, triggerMode);
AT(pm_abi_set_config, append_mode, CUpti_PmSampling_SetConfig_Params, hwBufferAppendMode);

BYTES(PM_ABI_ENABLE_BYTES, CUpti_PmSampling_Enable_Params);
AT(pm_abi_enable, device_index, CUpti_PmSampling_Enable_Params, deviceIndex);
AT(pm_abi_enable, object, CUpti_PmSampling_Enable_Params, pPmSamplingObject);

BYTES(PM_ABI_OBJECT_BYTES, CUpti_PmSampling_Disable_Params);
BYTES(PM_ABI_OBJECT_BYTES, CUpti_PmSampling_Start_Params);
BYTES(PM_ABI_OBJECT_BYTES, CUpti_PmSampling_Stop_Params);
AT(pm_abi_object, object, CUpti_PmSampling_Disable_Params, pPmSamplingObject);
AT(pm_abi_object, object, CUpti_PmSampling_Start_Params, pPmSamplingObject);
AT(pm_abi_object, object, CUpti_PmSampling_Stop_Params, pPmSamplingObject);

BYTES(PM_ABI_DECODE_BYTES, CUpti_PmSampling_DecodeData_Params);
AT(pm_abi_decode, object, CUpti_PmSampling_DecodeData_Params, pPmSamplingObject);
AT(pm_abi_decode, image, CUpti_PmSampling_DecodeData_Params, pCounterDataImage);
AT(pm_abi_decode, image_bytes, CUpti_PmSampling_DecodeData_Params, counterDataImageSize);
AT(pm_abi_decode, stop_reason, CUpti_PmSampling_DecodeData_Params, decodeStopReason);
AT(pm_abi_decode, overflow, CUpti_PmSampling_DecodeData_Params, overflow);

BYTES(PM_ABI_AVAILABILITY_BYTES, CUpti_PmSampling_GetCounterAvailability_Params);
AT(pm_abi_availability, device_index, CUpti_PmSampling_GetCounterAvailability_Params, deviceIndex);
AT(pm_abi_availability, image_bytes, CUpti_PmSampling_GetCounterAvailability_Params, counterAvailabilityImageSize);
AT(pm_abi_availability, image, CUpti_PmSampling_GetCounterAvailability_Params, pCounterAvailabilityImage);

BYTES(PM_ABI_IMAGE_SIZE_BYTES, CUpti_PmSampling_GetCounterDataSize_Params);
AT(pm_abi_image_size, object, CUpti_PmSampling_GetCounterDataSize_Params, pPmSamplingObject);
AT(pm_abi_image_size, metrics, CUpti_PmSampling_GetCounterDataSize_Params, pMetricNames);
AT(pm_abi_image_size, metric_count, CUpti_PmSampling_GetCounterDataSize_Params, numMetrics);
AT(pm_abi_image_size, max_samples, CUpti_PmSampling_GetCounterDataSize_Params, maxSamples);
AT(pm_abi_image_size, image_bytes, CUpti_PmSampling_GetCounterDataSize_Params, counterDataSize);

BYTES(PM_ABI_IMAGE_INITIALIZE_BYTES, CUpti_PmSampling_CounterDataImage_Initialize_Params);
AT(pm_abi_image_initialize, object, CUpti_PmSampling_CounterDataImage_Initialize_Params, pPmSamplingObject);
AT(pm_abi_image_initialize, image_bytes, CUpti_PmSampling_CounterDataImage_Initialize_Params, counterDataSize);
AT(pm_abi_image_initialize, image, CUpti_PmSampling_CounterDataImage_Initialize_Params, pCounterData);

BYTES(PM_ABI_IMAGE_INFO_BYTES, CUpti_PmSampling_GetCounterDataInfo_Params);
AT(pm_abi_image_info, image, CUpti_PmSampling_GetCounterDataInfo_Params, pCounterDataImage);
AT(pm_abi_image_info, image_bytes, CUpti_PmSampling_GetCounterDataInfo_Params, counterDataImageSize);
AT(pm_abi_image_info, total_samples, CUpti_PmSampling_GetCounterDataInfo_Params, numTotalSamples);
AT(pm_abi_image_info, populated_samples, CUpti_PmSampling_GetCounterDataInfo_Params, numPopulatedSamples);
AT(pm_abi_image_info, completed_samples, CUpti_PmSampling_GetCounterDataInfo_Params, numCompletedSamples);

BYTES(PM_ABI_SAMPLE_INFO_BYTES, CUpti_PmSampling_CounterData_GetSampleInfo_Params);
AT(pm_abi_sample_info, object, CUpti_PmSampling_CounterData_GetSampleInfo_Params, pPmSamplingObject);
AT(pm_abi_sample_info, image, CUpti_PmSampling_CounterData_GetSampleInfo_Params, pCounterDataImage);
AT(pm_abi_sample_info, image_bytes, CUpti_PmSampling_CounterData_GetSampleInfo_Params, counterDataImageSize);
AT(pm_abi_sample_info, sample_index, CUpti_PmSampling_CounterData_GetSampleInfo_Params, sampleIndex);
AT(pm_abi_sample_info, start_timestamp, CUpti_PmSampling_CounterData_GetSampleInfo_Params, startTimestamp);
AT(pm_abi_sample_info, end_timestamp, CUpti_PmSampling_CounterData_GetSampleInfo_Params, endTimestamp);

VALUE(PM_ABI_TRIGGER_SYSCLK, CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL);
VALUE(PM_ABI_TRIGGER_TIME, CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL);
VALUE(PM_ABI_KEEP_OLDEST, CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST);
VALUE(PM_ABI_KEEP_LATEST, CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_LATEST);
VALUE(PM_ABI_STOP_OTHER, CUPTI_PM_SAMPLING_DECODE_STOP_REASON_OTHER);
VALUE(PM_ABI_STOP_IMAGE_FULL, CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL);
VALUE(PM_ABI_STOP_END_OF_RECORDS, CUPTI_PM_SAMPLING_DECODE_STOP_REASON_END_OF_RECORDS);

#endif

static void declarations_agree_with_the_toolkit(void **state)
{
    (void)state;
#ifndef HAS_VENDOR_HEADERS
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(declarations_agree_with_the_toolkit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
