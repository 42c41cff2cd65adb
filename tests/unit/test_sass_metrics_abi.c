/* SPDX-License-Identifier: Apache-2.0 */
/* Our declarations of CUPTI's SASS metrics against the toolkit's header, where
 * there is one. The checks happen at compile time; the test says whether they did. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/sass_metrics_abi.h"

#if defined(__has_include)
#if __has_include(<cupti_sass_metrics.h>)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include <cupti_sass_metrics.h>
#pragma GCC diagnostic pop
#define HAS_VENDOR_HEADER 1
#endif
#endif

#ifdef HAS_VENDOR_HEADER
#define SIZE(ours, theirs) _Static_assert(sizeof(struct ours) == sizeof(theirs), #theirs)
#define AT(ours, member, theirs, their_member)                                                    \
    _Static_assert(offsetof(struct ours, member) == offsetof(theirs, their_member) &&             \
                       sizeof(((struct ours *)0)->member) == sizeof(((theirs *)0)->their_member), \
                   #theirs "." #their_member)
#define VALUE(ours, theirs) _Static_assert((unsigned)(ours) == (unsigned)(theirs), #theirs)

VALUE(SASS_ABI_PARAMETER_SIZE_NOT_SUFFICIENT, CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
VALUE(SASS_ABI_GRANULARITY_GPU, CUPTI_SASS_METRICS_OUTPUT_GRANULARITY_GPU);

SIZE(sass_abi_metric, CUpti_SassMetrics_MetricDetails);
AT(sass_abi_metric, id, CUpti_SassMetrics_MetricDetails, metricId);
AT(sass_abi_metric, name, CUpti_SassMetrics_MetricDetails, pMetricName);
AT(sass_abi_metric, description, CUpti_SassMetrics_MetricDetails, pMetricDescription);

VALUE(SASS_ABI_METRIC_COUNT_BYTES, CUpti_SassMetrics_GetNumOfMetrics_Params_STRUCT_SIZE);
AT(sass_abi_metric_count, chip_name, CUpti_SassMetrics_GetNumOfMetrics_Params, pChipName);
AT(sass_abi_metric_count, metric_count, CUpti_SassMetrics_GetNumOfMetrics_Params, numOfMetrics);

VALUE(SASS_ABI_METRIC_LIST_BYTES, CUpti_SassMetrics_GetMetrics_Params_STRUCT_SIZE);
AT(sass_abi_metric_list, chip_name, CUpti_SassMetrics_GetMetrics_Params, pChipName);
AT(sass_abi_metric_list, metric_count, CUpti_SassMetrics_GetMetrics_Params, numOfMetrics);
AT(sass_abi_metric_list, metrics, CUpti_SassMetrics_GetMetrics_Params, pMetricsList);

SIZE(sass_abi_config, CUpti_SassMetrics_Config);
AT(sass_abi_config, metric_id, CUpti_SassMetrics_Config, metricId);
AT(sass_abi_config, granularity, CUpti_SassMetrics_Config, outputGranularity);

VALUE(SASS_ABI_SET_CONFIG_BYTES, CUpti_SassMetricsSetConfig_Params_STRUCT_SIZE);
AT(sass_abi_set_config, config_count, CUpti_SassMetricsSetConfig_Params, numOfMetricConfig);
AT(sass_abi_set_config, configs, CUpti_SassMetricsSetConfig_Params, pConfigs);
AT(sass_abi_set_config, device_index, CUpti_SassMetricsSetConfig_Params, deviceIndex);

VALUE(SASS_ABI_ENABLE_BYTES, CUpti_SassMetricsEnable_Params_STRUCT_SIZE);
AT(sass_abi_enable, context, CUpti_SassMetricsEnable_Params, ctx);
AT(sass_abi_enable, is_lazy, CUpti_SassMetricsEnable_Params, enableLazyPatching);

VALUE(SASS_ABI_DISABLE_BYTES, CUpti_SassMetricsDisable_Params_STRUCT_SIZE);
AT(sass_abi_disable, context, CUpti_SassMetricsDisable_Params, ctx);
AT(sass_abi_disable, dropped_records, CUpti_SassMetricsDisable_Params, numOfDroppedRecords);

VALUE(SASS_ABI_DATA_PROPERTIES_BYTES, CUpti_SassMetricsGetDataProperties_Params_STRUCT_SIZE);
AT(sass_abi_data_properties, context, CUpti_SassMetricsGetDataProperties_Params, ctx);
AT(sass_abi_data_properties, record_count, CUpti_SassMetricsGetDataProperties_Params, numOfPatchedInstructionRecords);
AT(sass_abi_data_properties, instance_count, CUpti_SassMetricsGetDataProperties_Params, numOfInstances);

SIZE(sass_abi_value, CUpti_SassMetrics_InstanceValue);
AT(sass_abi_value, metric_id, CUpti_SassMetrics_InstanceValue, metricId);
AT(sass_abi_value, value, CUpti_SassMetrics_InstanceValue, value);

SIZE(sass_abi_record, CUpti_SassMetrics_Data);
AT(sass_abi_record, struct_bytes, CUpti_SassMetrics_Data, structSize);
AT(sass_abi_record, cubin_crc, CUpti_SassMetrics_Data, cubinCrc);
AT(sass_abi_record, function_index, CUpti_SassMetrics_Data, functionIndex);
AT(sass_abi_record, function_name, CUpti_SassMetrics_Data, functionName);
AT(sass_abi_record, pc_offset, CUpti_SassMetrics_Data, pcOffset);
AT(sass_abi_record, values, CUpti_SassMetrics_Data, pInstanceValues);

/* 13.0 says the short size; a later header may say the whole. */
_Static_assert(CUpti_SassMetricsFlushData_Params_STRUCT_SIZE == SASS_ABI_FLUSH_BYTES_SHORT ||
                   CUpti_SassMetricsFlushData_Params_STRUCT_SIZE == SASS_ABI_FLUSH_BYTES_WHOLE,
               "CUpti_SassMetricsFlushData_Params");
SIZE(sass_abi_flush, CUpti_SassMetricsFlushData_Params);
AT(sass_abi_flush, context, CUpti_SassMetricsFlushData_Params, ctx);
AT(sass_abi_flush, record_count, CUpti_SassMetricsFlushData_Params, numOfPatchedInstructionRecords);
AT(sass_abi_flush, instance_count, CUpti_SassMetricsFlushData_Params, numOfInstances);
AT(sass_abi_flush, records, CUpti_SassMetricsFlushData_Params, pMetricsData);
#endif

static void our_declarations_agree_with_the_toolkit(void **state)
{
    (void)state;
#ifndef HAS_VENDOR_HEADER
    print_message("no CUDA headers on the include path: nothing to compare with\n");
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(our_declarations_agree_with_the_toolkit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
