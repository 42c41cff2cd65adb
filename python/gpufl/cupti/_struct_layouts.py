# SPDX-License-Identifier: Apache-2.0
"""The parameter structs of CUPTI, of CUDA 13.0: name:code of every field, in order and aligned as C does it.

Codes: Q I H B unsigned numbers of 8 to 1 bytes, i a signed one of 4, P an address, s a text, xN bytes. !VERSION: the
struct ends before this field for an older CUPTI. Compared with the toolkit's headers by
tests/python/test_cupti_layout.py."""
from typing import Dict

STRUCTS: Dict[str, str] = {
    "Device_GetChipName_Params": "struct_size:Q p_priv:P device_index:Q p_chip_name:s",
    "GetCubinCrcParams": "size:Q cubin_size:Q cubin:P cubin_crc:Q",
    "GetSassToSourceCorrelationParams": (
        "size:Q cubin:P function_name:s cubin_size:Q line_number:I pc_offset:Q file_name:s dir_name:s"),
    "PCSamplingConfigurationInfoParams": "size:Q p_priv:P ctx:P num_attributes:Q p_pc_sampling_configuration_info:P",
    "PCSamplingDisableParams": "size:Q p_priv:P ctx:P",
    "PCSamplingEnableParams": "size:Q p_priv:P ctx:P",
    "PCSamplingGetDataParams": "size:Q p_priv:P ctx:P pc_sampling_data:P",
    "PCSamplingGetNumStallReasonsParams": "size:Q p_priv:P ctx:P num_stall_reasons:P",
    "PCSamplingGetStallReasonsParams": "size:Q p_priv:P ctx:P num_stall_reasons:Q stall_reason_index:P stall_reasons:P",
    "PCSamplingStartParams": "size:Q p_priv:P ctx:P",
    "PCSamplingStopParams": "size:Q p_priv:P ctx:P",
    "PmSampling_CounterDataImage_Initialize_Params": (
        "struct_size:Q p_priv:P p_pm_sampling_object:P counter_data_size:Q p_counter_data:P"),
    "PmSampling_CounterData_GetSampleInfo_Params": (
        "struct_size:Q p_priv:P p_pm_sampling_object:P p_counter_data_image:P counter_data_image_size:Q "
        "sample_index:Q start_timestamp:Q end_timestamp:Q"),
    "PmSampling_DecodeData_Params": (
        "struct_size:Q p_priv:P p_pm_sampling_object:P p_counter_data_image:P counter_data_image_size:Q "
        "decode_stop_reason:I overflow:B"),
    "PmSampling_Disable_Params": "struct_size:Q p_priv:P p_pm_sampling_object:P",
    "PmSampling_Enable_Params": "struct_size:Q p_priv:P device_index:Q p_pm_sampling_object:P",
    "PmSampling_GetCounterAvailability_Params": (
        "struct_size:Q p_priv:P device_index:Q counter_availability_image_size:Q p_counter_availability_image:P"),
    "PmSampling_GetCounterDataInfo_Params": (
        "struct_size:Q p_priv:P p_counter_data_image:P counter_data_image_size:Q num_total_samples:Q "
        "num_populated_samples:Q num_completed_samples:Q"),
    "PmSampling_GetCounterDataSize_Params": (
        "struct_size:Q p_priv:P p_pm_sampling_object:P p_metric_names:P num_metrics:Q max_samples:I "
        "counter_data_size:Q"),
    "PmSampling_SetConfig_Params": (
        "struct_size:Q p_priv:P p_pm_sampling_object:P config_size:Q p_config:P hardware_buffer_size:Q "
        "sampling_interval:Q trigger_mode:I hw_buffer_append_mode:I"),
    "PmSampling_Start_Params": "struct_size:Q p_priv:P p_pm_sampling_object:P",
    "PmSampling_Stop_Params": "struct_size:Q p_priv:P p_pm_sampling_object:P",
    "Profiler_Host_ConfigAddMetrics_Params": "struct_size:Q p_priv:P p_host_object:P pp_metric_names:P num_metrics:Q",
    "Profiler_Host_Deinitialize_Params": "struct_size:Q p_priv:P p_host_object:P",
    "Profiler_Host_EvaluateToGpuValues_Params": (
        "struct_size:Q p_priv:P p_host_object:P p_counter_data_image:P counter_data_image_size:Q range_index:Q "
        "pp_metric_names:P num_metrics:Q p_metric_values:P"),
    "Profiler_Host_GetBaseMetrics_Params": (
        "struct_size:Q p_priv:P p_host_object:P metric_type:I pp_metric_names:P num_metrics:Q"),
    "Profiler_Host_GetConfigImageSize_Params": "struct_size:Q p_priv:P p_host_object:P config_image_size:Q",
    "Profiler_Host_GetConfigImage_Params": (
        "struct_size:Q p_priv:P p_host_object:P config_image_size:Q p_config_image:P"),
    "Profiler_Host_GetMaxNumHardwareMetricsPerPass_Params": (
        "struct_size:Q p_priv:P profiler_type:I p_chip_name:s p_counter_availability_image:P max_metrics_per_pass:Q"),
    "Profiler_Host_GetMetricProperties_Params": (
        "struct_size:Q p_priv:P p_host_object:P p_metric_name:s p_description:s p_hw_unit:s p_dim_unit:s "
        "metric_type:I metric_collection_scope:I!130100"),
    "Profiler_Host_GetNumOfPasses_Params": (
        "struct_size:Q p_priv:P config_image_size:Q p_config_image:P num_of_passes:Q"),
    "Profiler_Host_GetRangeName_Params": (
        "struct_size:Q p_priv:P p_counter_data_image:P counter_data_image_size:Q range_index:Q delimiter:s "
        "p_range_name:s"),
    "Profiler_Host_GetSubMetrics_Params": (
        "struct_size:Q p_priv:P p_host_object:P metric_type:I p_metric_name:s num_of_submetrics:Q pp_sub_metrics:P"),
    "Profiler_Host_GetSupportedChips_Params": "struct_size:Q p_priv:P num_chips:Q pp_chip_names:P",
    "Profiler_Host_Initialize_Params": (
        "struct_size:Q p_priv:P profiler_type:I p_chip_name:s p_counter_availability_image:P p_host_object:P "
        "p_single_pass_metric_set_name:s!130200"),
    "RangeProfiler_CounterDataImage_Initialize_Params": (
        "struct_size:Q p_priv:P p_range_profiler_object:P counter_data_size:Q p_counter_data:P"),
    "RangeProfiler_CounterData_GetRangeInfo_Params": (
        "struct_size:Q p_priv:P p_counter_data_image:P counter_data_image_size:Q range_index:Q range_delimiter:s "
        "range_name:s"),
    "RangeProfiler_DecodeData_Params": "struct_size:Q p_priv:P p_range_profiler_object:P num_of_range_dropped:Q",
    "RangeProfiler_Disable_Params": "struct_size:Q p_priv:P p_range_profiler_object:P",
    "RangeProfiler_Enable_Params": "struct_size:Q p_priv:P ctx:P p_range_profiler_object:P",
    "RangeProfiler_GetCounterDataInfo_Params": (
        "struct_size:Q p_priv:P p_counter_data_image:P counter_data_image_size:Q num_total_ranges:Q"),
    "RangeProfiler_GetCounterDataSize_Params": (
        "struct_size:Q p_priv:P p_range_profiler_object:P p_metric_names:P num_metrics:Q max_num_of_ranges:Q "
        "max_num_range_tree_nodes:I counter_data_size:Q"),
    "RangeProfiler_PopRange_Params": "struct_size:Q p_priv:P p_range_profiler_object:P",
    "RangeProfiler_PushRange_Params": "struct_size:Q p_priv:P p_range_profiler_object:P p_range_name:s",
    "RangeProfiler_SetConfig_Params": (
        "struct_size:Q p_priv:P p_range_profiler_object:P config_size:Q p_config:P counter_data_image_size:Q "
        "p_counter_data_image:P range:I replay_mode:I max_ranges_per_pass:Q num_nesting_levels:H "
        "min_nesting_level:H pass_index:Q target_nesting_level:H"),
    "RangeProfiler_Start_Params": "struct_size:Q p_priv:P p_range_profiler_object:P",
    "RangeProfiler_Stop_Params": (
        "struct_size:Q p_priv:P p_range_profiler_object:P pass_index:Q target_nesting_level:Q "
        "is_all_pass_submitted:B"),
    "SassMetricsDisable_Params": "struct_size:Q p_priv:P ctx:P num_of_dropped_records:Q",
    "SassMetricsEnable_Params": "struct_size:Q p_priv:P ctx:P enable_lazy_patching:B",
    "SassMetricsFlushData_Params": (
        "struct_size:Q p_priv:P ctx:P num_of_patched_instruction_records:Q num_of_instances:Q p_metrics_data:P"),
    "SassMetricsGetDataProperties_Params": (
        "struct_size:Q p_priv:P ctx:P num_of_patched_instruction_records:Q num_of_instances:Q"),
    "SassMetricsSetConfig_Params": "struct_size:Q p_priv:P num_of_metric_config:Q p_configs:P device_index:I",
    "SassMetricsUnsetConfig_Params": "struct_size:Q p_priv:P device_index:I",
    "SassMetrics_GetMetrics_Params": "struct_size:Q p_priv:P p_chip_name:s num_of_metrics:Q p_metrics_list:P",
    "SassMetrics_GetNumOfMetrics_Params": "struct_size:Q p_priv:P p_chip_name:s num_of_metrics:Q",
    "SassMetrics_GetProperties_Params": "struct_size:Q p_priv:P p_chip_name:s p_metric_name:s metric:x24",
    "Profiler_Initialize_Params": "struct_size:Q p_priv:P",
    "Profiler_DeInitialize_Params": "struct_size:Q p_priv:P",
    "Profiler_DeviceSupported_Params": (
        "struct_size:Q p_priv:P cu_device:i is_supported:I architecture:I sli:I v_gpu:I confidential_compute:I "
        "cmp:I wsl:I api:I"),
    "Profiler_GetCounterAvailability_Params": (
        "struct_size:Q p_priv:P ctx:P counter_availability_image_size:Q p_counter_availability_image:P"),
    "SubscriberParams": "struct_size:Q subscriber_name:s old_subscriber_name:s old_subscriber_size:Q",
    "ActivityUnifiedMemoryCounterConfig": "scope:I kind:I device_id:I enable:I",
    "ActivityAutoBoostState": "enabled:I pid:I",
    "PCSamplingData": (
        "size:Q collect_num_pcs:Q total_samples:Q dropped_samples:Q total_num_pcs:Q remaining_num_pcs:Q range_id:Q "
        "p_pc_data:P non_usr_kernels_total_samples:Q hardware_buffer_full:B"),
    "PCSamplingPCData": (
        "size:Q cubin_crc:Q pc_offset:Q function_index:I function_name:s stall_reason_count:Q stall_reason:P "
        "correlation_id:I"),
    "PCSamplingStallReason": "pc_sampling_stall_reason_index:I samples:I",
    "SassMetrics_Config": "metric_id:Q output_granularity:B",
    "SassMetrics_Data": (
        "struct_size:Q p_priv:P cubin_crc:I function_index:I function_name:s pc_offset:I p_instance_values:P"),
    "SassMetrics_InstanceValue": "metric_id:Q value:Q",
    "SassMetrics_MetricDetails": "metric_id:Q p_metric_name:s p_metric_description:s",
    "Profiler_Host_GetSinglePassSets_Params": (
        "struct_size:Q p_priv:P p_chip_name:s num_of_single_pass_sets:Q pp_single_pass_sets:P"),
    "Profiler_Host_GetMetricsInSinglePassSet_Params": (
        "struct_size:Q p_priv:P p_chip_name:s p_single_pass_set_name:s num_of_metrics_in_single_pass_set:Q "
        "metrics_buffer_size:Q p_metrics_indices_buffer:P p_metrics_buffer:P"),
    "PCSamplingConfigurationInfo": "attribute_type:I attribute_status:I data0:Q data1:Q data2:Q",
}
