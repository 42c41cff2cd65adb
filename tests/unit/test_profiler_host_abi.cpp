// SPDX-License-Identifier: Apache-2.0
// Our declarations of the profiler host against CUPTI's headers, where a CUDA toolkit of 13.0 or newer is on the include
// path; C++, because NVIDIA's header is. The checks happen at compile time; the test says whether they did.
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>

extern "C" {
#include <cmocka.h>
}

#define _Static_assert static_assert
#include "driver/profiler_host_abi.h"

#if defined(__has_include)
#if __has_include(<cupti_profiler_host.h>) && __has_include(<cuda.h>)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#include <cuda.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>
#pragma GCC diagnostic pop
#define HAS_VENDOR_HEADERS 1
#endif
#endif

#ifdef HAS_VENDOR_HEADERS

#define BYTES(ours, theirs) static_assert((ours) == (theirs##_STRUCT_SIZE), #theirs)
#define AT(ours, member, theirs, their_member)                                                   \
    static_assert(offsetof(struct ours, member) == offsetof(theirs, their_member) &&             \
                      sizeof(((struct ours *)0)->member) == sizeof(((theirs *)0)->their_member), \
                  #theirs "." #their_member)
#define VALUE(ours, theirs) static_assert((unsigned)(ours) == (unsigned)(theirs), #theirs)

BYTES(PROFILER_ABI_INITIALIZE_BYTES, CUpti_Profiler_Initialize_Params);
BYTES(PROFILER_ABI_INITIALIZE_BYTES, CUpti_Profiler_DeInitialize_Params);
AT(profiler_abi_initialize, struct_bytes, CUpti_Profiler_Initialize_Params, structSize);
AT(profiler_abi_initialize, priv, CUpti_Profiler_Initialize_Params, pPriv);

BYTES(PROFILER_ABI_DEVICE_SUPPORTED_BYTES, CUpti_Profiler_DeviceSupported_Params);
AT(profiler_abi_device_supported, device, CUpti_Profiler_DeviceSupported_Params, cuDevice);
AT(profiler_abi_device_supported, is_supported, CUpti_Profiler_DeviceSupported_Params, isSupported);
AT(profiler_abi_device_supported, architecture, CUpti_Profiler_DeviceSupported_Params, architecture);
AT(profiler_abi_device_supported, sli, CUpti_Profiler_DeviceSupported_Params, sli);
AT(profiler_abi_device_supported, vgpu, CUpti_Profiler_DeviceSupported_Params, vGpu);
AT(profiler_abi_device_supported, confidential_compute, CUpti_Profiler_DeviceSupported_Params, confidentialCompute);
AT(profiler_abi_device_supported, cmp, CUpti_Profiler_DeviceSupported_Params, cmp);
AT(profiler_abi_device_supported, wsl, CUpti_Profiler_DeviceSupported_Params, wsl);
AT(profiler_abi_device_supported, api, CUpti_Profiler_DeviceSupported_Params, api);

BYTES(PROFILER_ABI_AVAILABILITY_BYTES, CUpti_Profiler_GetCounterAvailability_Params);
AT(profiler_abi_availability, context, CUpti_Profiler_GetCounterAvailability_Params, ctx);
AT(profiler_abi_availability, image_bytes, CUpti_Profiler_GetCounterAvailability_Params, counterAvailabilityImageSize);
AT(profiler_abi_availability, image, CUpti_Profiler_GetCounterAvailability_Params, pCounterAvailabilityImage);

BYTES(PROFILER_ABI_CHIP_NAME_BYTES, CUpti_Device_GetChipName_Params);
AT(profiler_abi_chip_name, device_index, CUpti_Device_GetChipName_Params, deviceIndex);
AT(profiler_abi_chip_name, chip_name, CUpti_Device_GetChipName_Params, pChipName);

/* CUDA 13.2 added a member at the end; the shorter struct stays valid. */
AT(profiler_abi_host_initialize, profiler_type, CUpti_Profiler_Host_Initialize_Params, profilerType);
AT(profiler_abi_host_initialize, chip_name, CUpti_Profiler_Host_Initialize_Params, pChipName);
AT(profiler_abi_host_initialize, availability, CUpti_Profiler_Host_Initialize_Params, pCounterAvailabilityImage);
AT(profiler_abi_host_initialize, host, CUpti_Profiler_Host_Initialize_Params, pHostObject);

BYTES(PROFILER_ABI_HOST_DEINITIALIZE_BYTES, CUpti_Profiler_Host_Deinitialize_Params);
AT(profiler_abi_host_deinitialize, host, CUpti_Profiler_Host_Deinitialize_Params, pHostObject);

BYTES(PROFILER_ABI_HOST_CHIPS_BYTES, CUpti_Profiler_Host_GetSupportedChips_Params);
AT(profiler_abi_host_chips, chip_count, CUpti_Profiler_Host_GetSupportedChips_Params, numChips);
AT(profiler_abi_host_chips, chip_names, CUpti_Profiler_Host_GetSupportedChips_Params, ppChipNames);

BYTES(PROFILER_ABI_HOST_BASE_METRICS_BYTES, CUpti_Profiler_Host_GetBaseMetrics_Params);
AT(profiler_abi_host_base_metrics, host, CUpti_Profiler_Host_GetBaseMetrics_Params, pHostObject);
AT(profiler_abi_host_base_metrics, metric_type, CUpti_Profiler_Host_GetBaseMetrics_Params, metricType);
AT(profiler_abi_host_base_metrics, metric_names, CUpti_Profiler_Host_GetBaseMetrics_Params, ppMetricNames);
AT(profiler_abi_host_base_metrics, metric_count, CUpti_Profiler_Host_GetBaseMetrics_Params, numMetrics);

BYTES(PROFILER_ABI_HOST_SUB_METRICS_BYTES, CUpti_Profiler_Host_GetSubMetrics_Params);
AT(profiler_abi_host_sub_metrics, host, CUpti_Profiler_Host_GetSubMetrics_Params, pHostObject);
AT(profiler_abi_host_sub_metrics, metric_type, CUpti_Profiler_Host_GetSubMetrics_Params, metricType);
AT(profiler_abi_host_sub_metrics, metric_name, CUpti_Profiler_Host_GetSubMetrics_Params, pMetricName);
AT(profiler_abi_host_sub_metrics, sub_metric_count, CUpti_Profiler_Host_GetSubMetrics_Params, numOfSubmetrics);
AT(profiler_abi_host_sub_metrics, sub_metrics, CUpti_Profiler_Host_GetSubMetrics_Params, ppSubMetrics);

/* Also longer since 13.2. */
AT(profiler_abi_host_properties, host, CUpti_Profiler_Host_GetMetricProperties_Params, pHostObject);
AT(profiler_abi_host_properties, metric_name, CUpti_Profiler_Host_GetMetricProperties_Params, pMetricName);
AT(profiler_abi_host_properties, description, CUpti_Profiler_Host_GetMetricProperties_Params, pDescription);
AT(profiler_abi_host_properties, hardware_unit, CUpti_Profiler_Host_GetMetricProperties_Params, pHwUnit);
AT(profiler_abi_host_properties, dimension_unit, CUpti_Profiler_Host_GetMetricProperties_Params, pDimUnit);
AT(profiler_abi_host_properties, metric_type, CUpti_Profiler_Host_GetMetricProperties_Params, metricType);

BYTES(PROFILER_ABI_HOST_EVALUATE_BYTES, CUpti_Profiler_Host_EvaluateToGpuValues_Params);
AT(profiler_abi_host_evaluate, host, CUpti_Profiler_Host_EvaluateToGpuValues_Params, pHostObject);
AT(profiler_abi_host_evaluate, counter_data, CUpti_Profiler_Host_EvaluateToGpuValues_Params, pCounterDataImage);
AT(profiler_abi_host_evaluate, counter_data_bytes, CUpti_Profiler_Host_EvaluateToGpuValues_Params,
   counterDataImageSize);
AT(profiler_abi_host_evaluate, range_index, CUpti_Profiler_Host_EvaluateToGpuValues_Params, rangeIndex);
AT(profiler_abi_host_evaluate, metric_names, CUpti_Profiler_Host_EvaluateToGpuValues_Params, ppMetricNames);
AT(profiler_abi_host_evaluate, metric_count, CUpti_Profiler_Host_EvaluateToGpuValues_Params, numMetrics);
AT(profiler_abi_host_evaluate, values, CUpti_Profiler_Host_EvaluateToGpuValues_Params, pMetricValues);

BYTES(PROFILER_ABI_HOST_ADD_METRICS_BYTES, CUpti_Profiler_Host_ConfigAddMetrics_Params);
AT(profiler_abi_host_add_metrics, host, CUpti_Profiler_Host_ConfigAddMetrics_Params, pHostObject);
AT(profiler_abi_host_add_metrics, metric_names, CUpti_Profiler_Host_ConfigAddMetrics_Params, ppMetricNames);
AT(profiler_abi_host_add_metrics, metric_count, CUpti_Profiler_Host_ConfigAddMetrics_Params, numMetrics);

BYTES(PROFILER_ABI_HOST_IMAGE_SIZE_BYTES, CUpti_Profiler_Host_GetConfigImageSize_Params);
AT(profiler_abi_host_image_size, host, CUpti_Profiler_Host_GetConfigImageSize_Params, pHostObject);
AT(profiler_abi_host_image_size, image_bytes, CUpti_Profiler_Host_GetConfigImageSize_Params, configImageSize);

BYTES(PROFILER_ABI_HOST_IMAGE_BYTES, CUpti_Profiler_Host_GetConfigImage_Params);
AT(profiler_abi_host_image, host, CUpti_Profiler_Host_GetConfigImage_Params, pHostObject);
AT(profiler_abi_host_image, image_bytes, CUpti_Profiler_Host_GetConfigImage_Params, configImageSize);
AT(profiler_abi_host_image, image, CUpti_Profiler_Host_GetConfigImage_Params, pConfigImage);

BYTES(PROFILER_ABI_HOST_PASSES_BYTES, CUpti_Profiler_Host_GetNumOfPasses_Params);
AT(profiler_abi_host_passes, image_bytes, CUpti_Profiler_Host_GetNumOfPasses_Params, configImageSize);
AT(profiler_abi_host_passes, image, CUpti_Profiler_Host_GetNumOfPasses_Params, pConfigImage);
AT(profiler_abi_host_passes, pass_count, CUpti_Profiler_Host_GetNumOfPasses_Params, numOfPasses);

BYTES(PROFILER_ABI_HOST_PER_PASS_BYTES, CUpti_Profiler_Host_GetMaxNumHardwareMetricsPerPass_Params);
AT(profiler_abi_host_per_pass, profiler_type, CUpti_Profiler_Host_GetMaxNumHardwareMetricsPerPass_Params, profilerType);
AT(profiler_abi_host_per_pass, chip_name, CUpti_Profiler_Host_GetMaxNumHardwareMetricsPerPass_Params, pChipName);
AT(profiler_abi_host_per_pass, availability, CUpti_Profiler_Host_GetMaxNumHardwareMetricsPerPass_Params,
   pCounterAvailabilityImage);
AT(profiler_abi_host_per_pass, metric_count, CUpti_Profiler_Host_GetMaxNumHardwareMetricsPerPass_Params,
   maxMetricsPerPass);

#ifdef CUpti_Profiler_Host_GetSinglePassSets_Params_STRUCT_SIZE
BYTES(PROFILER_ABI_HOST_SINGLE_PASS_SETS_BYTES, CUpti_Profiler_Host_GetSinglePassSets_Params);
AT(profiler_abi_host_single_pass_sets, chip_name, CUpti_Profiler_Host_GetSinglePassSets_Params, pChipName);
AT(profiler_abi_host_single_pass_sets, set_count, CUpti_Profiler_Host_GetSinglePassSets_Params, numOfSinglePassSets);
AT(profiler_abi_host_single_pass_sets, set_names, CUpti_Profiler_Host_GetSinglePassSets_Params, ppSinglePassSets);
BYTES(PROFILER_ABI_HOST_SINGLE_PASS_METRICS_BYTES, CUpti_Profiler_Host_GetMetricsInSinglePassSet_Params);
#endif

VALUE(PROFILER_ABI_INVALID_PARAMETER, CUPTI_ERROR_INVALID_PARAMETER);
VALUE(PROFILER_ABI_INVALID_DEVICE, CUPTI_ERROR_INVALID_DEVICE);
VALUE(PROFILER_ABI_INVALID_CONTEXT, CUPTI_ERROR_INVALID_CONTEXT);
VALUE(PROFILER_ABI_INVALID_OPERATION, CUPTI_ERROR_INVALID_OPERATION);
VALUE(PROFILER_ABI_OUT_OF_MEMORY, CUPTI_ERROR_OUT_OF_MEMORY);
VALUE(PROFILER_ABI_NOT_COMPATIBLE, CUPTI_ERROR_NOT_COMPATIBLE);
VALUE(PROFILER_ABI_INVALID_METRIC_NAME, CUPTI_ERROR_INVALID_METRIC_NAME);
VALUE(PROFILER_ABI_HARDWARE_BUSY, CUPTI_ERROR_HARDWARE_BUSY);
VALUE(PROFILER_ABI_NOT_SUPPORTED, CUPTI_ERROR_NOT_SUPPORTED);
VALUE(PROFILER_ABI_VIRTUALIZED_DEVICE, CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED);
VALUE(PROFILER_ABI_OLD_PROFILER_API, CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED);
VALUE(PROFILER_ABI_LEGACY_PROFILER, CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED);
VALUE(PROFILER_ABI_VIRTUALIZED_PRIVILEGES, CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES);
VALUE(PROFILER_ABI_CONFIDENTIAL_COMPUTING, CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED);
VALUE(PROFILER_ABI_CMP_DEVICE, CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED);
VALUE(PROFILER_ABI_MIG_DEVICE, CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED);
VALUE(PROFILER_ABI_SLI_DEVICE, CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED);
VALUE(PROFILER_ABI_WSL_DEVICE, CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED);
VALUE(PROFILER_ABI_INVALID_CHIP_NAME, CUPTI_ERROR_INVALID_CHIP_NAME);
VALUE(PROFILER_ABI_SUPPORT_UNKNOWN, CUPTI_PROFILER_CONFIGURATION_UNKNOWN);
VALUE(PROFILER_ABI_SUPPORT_UNSUPPORTED, CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED);
VALUE(PROFILER_ABI_SUPPORT_DISABLED, CUPTI_PROFILER_CONFIGURATION_DISABLED);
VALUE(PROFILER_ABI_SUPPORT_SUPPORTED, CUPTI_PROFILER_CONFIGURATION_SUPPORTED);

#endif

static void profiler_host_declarations_match_the_vendors_headers(void **)
{
#ifndef HAS_VENDOR_HEADERS
    skip();
#endif
}

int main()
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profiler_host_declarations_match_the_vendors_headers),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
