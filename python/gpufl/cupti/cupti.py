# SPDX-License-Identifier: Apache-2.0
"""CUPTI function for function: cuptiActivityEnable is activity_enable, CUpti_ActivityKind is ActivityKind, and a
CUptiResult other than success raises cuptiError. For a pointer to a struct, pass the object or its `ptr`."""
from enum import IntEnum
from typing import Any, Callable, Dict, List, Type

from .. import _cupti
from . import _library, _records, _structs
from ._activity import (  # noqa: F401
    activity_configure_unified_memory_counter, activity_disable, activity_disable_context, activity_enable,
    activity_enable_all_sync_records, activity_enable_allocation_source, activity_enable_and_dump,
    activity_enable_context,
    activity_enable_cuda_event_device_timestamps, activity_enable_device_graph, activity_enable_driver_api,
    activity_enable_hw_trace, activity_enable_latency_timestamps, activity_enable_launch_attributes,
    activity_enable_runtime_api, activity_flush_all, activity_flush_period, activity_get_attribute,
    activity_get_num_dropped_records, activity_pop_external_correlation_id, activity_push_external_correlation_id,
    activity_register_callbacks, activity_register_timestamp_callback, activity_set_attribute, address_checked)
from ._activity_enums import *  # noqa: F401,F403
from ._callback import (  # noqa: F401
    callback_ids, compute_capability_supported, device_supported, device_virtualization_mode, enable_all_domains,
    enable_callback, enable_domain, finalize, get_callback_name, get_callback_state, get_context_id, get_device_id,
    get_error_message, get_graph_exec_id, get_graph_id, get_graph_node_id, get_last_error, get_result_string,
    get_stream_id,
    get_stream_id_ex, get_thread_id_type, get_timestamp, get_version, is_tracing_session_running, set_thread_id_type,
    subscribe,
    subscribe_v2, supported_domains, unsubscribe)
from ._enums import *  # noqa: F401,F403
from ._enums import CallbackDomain, Result
from ._library import FunctionNotFoundError, cuptiError  # noqa: F401
from ._records import ActivityBuffer  # noqa: F401
from ._structs import ActivityUnifiedMemoryCounterConfig, SubscriberParams  # noqa: F401


def _with_params(function: str) -> Callable[[Any], None]:
    def with_params(p_params: Any) -> None:
        _library.call(function, "P", address_checked(p_params, "p_params"))

    with_params.__doc__ = f"{function}; takes the address of its parameters."
    return with_params


def device_get_chip_name(p_params: Any) -> None:
    """cuptiDeviceGetChipName; raises cuptiError without a driver, where CUPTI would crash."""
    address = address_checked(p_params, "p_params")
    try:
        devices = _cupti.start_driver()
    except RuntimeError as error:
        raise cuptiError(Result.ERROR_NOT_INITIALIZED, f"cuptiDeviceGetChipName: {error}") from None
    given: Any = _structs.CLASSES["Device_GetChipName_Params"].from_address(address)
    if given.device_index >= devices:
        raise cuptiError(Result.ERROR_INVALID_DEVICE, f"cuptiDeviceGetChipName: there are {devices} devices")
    _library.call("cuptiDeviceGetChipName", "P", address)


profiler_initialize = _with_params("cuptiProfilerInitialize")
profiler_deinitialize = _with_params("cuptiProfilerDeInitialize")
profiler_device_supported = _with_params("cuptiProfilerDeviceSupported")
profiler_get_counter_availability = _with_params("cuptiProfilerGetCounterAvailability")

profiler_host_initialize = _with_params("cuptiProfilerHostInitialize")
profiler_host_deinitialize = _with_params("cuptiProfilerHostDeinitialize")
profiler_host_get_supported_chips = _with_params("cuptiProfilerHostGetSupportedChips")
profiler_host_get_base_metrics = _with_params("cuptiProfilerHostGetBaseMetrics")
profiler_host_get_sub_metrics = _with_params("cuptiProfilerHostGetSubMetrics")
profiler_host_get_metric_properties = _with_params("cuptiProfilerHostGetMetricProperties")
profiler_host_get_range_name = _with_params("cuptiProfilerHostGetRangeName")
profiler_host_evaluate_to_gpu_values = _with_params("cuptiProfilerHostEvaluateToGpuValues")
profiler_host_config_add_metrics = _with_params("cuptiProfilerHostConfigAddMetrics")
profiler_host_get_config_image_size = _with_params("cuptiProfilerHostGetConfigImageSize")
profiler_host_get_config_image = _with_params("cuptiProfilerHostGetConfigImage")
profiler_host_get_num_of_passes = _with_params("cuptiProfilerHostGetNumOfPasses")
profiler_host_get_max_num_hardware_metrics_per_pass = _with_params("cuptiProfilerHostGetMaxNumHardwareMetricsPerPass")
profiler_host_get_single_pass_sets = _with_params("cuptiProfilerHostGetSinglePassSets")
profiler_host_get_metrics_in_single_pass_set = _with_params("cuptiProfilerHostGetMetricsInSinglePassSet")

pm_sampling_enable = _with_params("cuptiPmSamplingEnable")
pm_sampling_disable = _with_params("cuptiPmSamplingDisable")
pm_sampling_set_config = _with_params("cuptiPmSamplingSetConfig")
pm_sampling_start = _with_params("cuptiPmSamplingStart")
pm_sampling_stop = _with_params("cuptiPmSamplingStop")
pm_sampling_decode_data = _with_params("cuptiPmSamplingDecodeData")
pm_sampling_get_counter_availability = _with_params("cuptiPmSamplingGetCounterAvailability")
pm_sampling_get_counter_data_size = _with_params("cuptiPmSamplingGetCounterDataSize")
pm_sampling_counter_data_image_initialize = _with_params("cuptiPmSamplingCounterDataImageInitialize")
pm_sampling_get_counter_data_info = _with_params("cuptiPmSamplingGetCounterDataInfo")
pm_sampling_counter_data_get_sample_info = _with_params("cuptiPmSamplingCounterDataGetSampleInfo")

range_profiler_enable = _with_params("cuptiRangeProfilerEnable")
range_profiler_disable = _with_params("cuptiRangeProfilerDisable")
range_profiler_set_config = _with_params("cuptiRangeProfilerSetConfig")
range_profiler_start = _with_params("cuptiRangeProfilerStart")
range_profiler_stop = _with_params("cuptiRangeProfilerStop")
range_profiler_push_range = _with_params("cuptiRangeProfilerPushRange")
range_profiler_pop_range = _with_params("cuptiRangeProfilerPopRange")
range_profiler_decode_data = _with_params("cuptiRangeProfilerDecodeData")
range_profiler_get_counter_data_size = _with_params("cuptiRangeProfilerGetCounterDataSize")
range_profiler_counter_data_image_initialize = _with_params("cuptiRangeProfilerCounterDataImageInitialize")
range_profiler_get_counter_data_info = _with_params("cuptiRangeProfilerGetCounterDataInfo")
range_profiler_counter_data_get_range_info = _with_params("cuptiRangeProfilerCounterDataGetRangeInfo")

pc_sampling_enable = _with_params("cuptiPCSamplingEnable")
pc_sampling_disable = _with_params("cuptiPCSamplingDisable")
pc_sampling_start = _with_params("cuptiPCSamplingStart")
pc_sampling_stop = _with_params("cuptiPCSamplingStop")
pc_sampling_get_data = _with_params("cuptiPCSamplingGetData")
pc_sampling_set_configuration_attribute = _with_params("cuptiPCSamplingSetConfigurationAttribute")
pc_sampling_get_configuration_attribute = _with_params("cuptiPCSamplingGetConfigurationAttribute")
pc_sampling_get_num_stall_reasons = _with_params("cuptiPCSamplingGetNumStallReasons")
pc_sampling_get_stall_reasons = _with_params("cuptiPCSamplingGetStallReasons")
get_cubin_crc = _with_params("cuptiGetCubinCrc")
get_sass_to_source_correlation = _with_params("cuptiGetSassToSourceCorrelation")

sass_metrics_get_num_of_metrics = _with_params("cuptiSassMetricsGetNumOfMetrics")
sass_metrics_get_metrics = _with_params("cuptiSassMetricsGetMetrics")
sass_metrics_get_properties = _with_params("cuptiSassMetricsGetProperties")
sass_metrics_set_config = _with_params("cuptiSassMetricsSetConfig")
sass_metrics_unset_config = _with_params("cuptiSassMetricsUnsetConfig")
sass_metrics_enable = _with_params("cuptiSassMetricsEnable")
sass_metrics_disable = _with_params("cuptiSassMetricsDisable")
sass_metrics_get_data_properties = _with_params("cuptiSassMetricsGetDataProperties")
sass_metrics_flush_data = _with_params("cuptiSassMetricsFlushData")

_SIZES = _structs.size_constants()
_CALLBACK_IDS: Dict[str, CallbackDomain] = {
    "Driver_api_trace_cbid": CallbackDomain.DRIVER_API, "Runtime_api_trace_cbid": CallbackDomain.RUNTIME_API}
_made: Dict[str, Type[IntEnum]] = {}


def __getattr__(name: str) -> Any:
    """Record and parameter classes, parameter sizes, and callback ids, which are queried from this CUPTI."""
    if name in _records.PUBLIC:
        return _records.PUBLIC[name]
    if name in _structs.CLASSES:
        return _structs.CLASSES[name]
    if name in _SIZES:
        return _structs.CLASSES[_SIZES[name]].struct_bytes()
    capital = name[:1].upper() + name[1:]
    if capital in _CALLBACK_IDS:  # CUPTI Python up to 13.0 spells them in lower case
        if capital not in _made:
            _made[capital] = callback_ids(_CALLBACK_IDS[capital], capital)
        return _made[capital]
    raise AttributeError(f"module 'gpufl.cupti.cupti' has no attribute {name!r}")


def __dir__() -> List[str]:
    own = [name for name in globals() if not name.startswith("_")]
    return sorted({*own, *_records.PUBLIC, *_structs.CLASSES, *_SIZES, *_CALLBACK_IDS})
