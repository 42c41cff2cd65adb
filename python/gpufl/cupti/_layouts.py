# SPDX-License-Identifier: Apache-2.0
"""The byte layout of CUPTI records: name@offset:code of every field in CUDA 13.0 (records only grow at the end).

Codes are those of the struct module; in addition P is an address, s a text, xN bytes, RN.CLASS a nested struct.
!VERSION: the first CUPTI version that fills in the field, which was padding before.
tests/python/test_cupti_layout.py compares the layouts with the toolkit's headers."""
from typing import Dict, Tuple

# class: (C struct without CUpti_, its bytes, fields)
RECORDS: Dict[str, Tuple[str, int, str]] = {
    "ActivityMemcpy": ("ActivityMemcpy6", 96, (
        "kind@0:I copy_kind@4:B src_kind@5:B dst_kind@6:B flags@7:B bytes@8:Q start@16:Q end@24:Q device_id@32:I "
        "context_id@36:I stream_id@40:I correlation_id@44:I runtime_correlation_id@48:I graph_node_id@64:Q "
        "graph_id@72:I channel_id@76:I channel_type@80:I is_device_launched@84:B!130000 copy_count@88:Q")),
    "ActivityMemcpyPtoP": ("ActivityMemcpyPtoP4", 96, (
        "kind@0:I copy_kind@4:B src_kind@5:B dst_kind@6:B flags@7:B bytes@8:Q start@16:Q end@24:Q device_id@32:I "
        "context_id@36:I stream_id@40:I src_device_id@44:I src_context_id@48:I dst_device_id@52:I "
        "dst_context_id@56:I correlation_id@60:I graph_node_id@72:Q graph_id@80:I channel_id@84:I channel_type@88:I")),
    "ActivityMemset": ("ActivityMemset4", 88, (
        "kind@0:I value@4:I bytes@8:Q start@16:Q end@24:Q device_id@32:I context_id@36:I stream_id@40:I "
        "correlation_id@44:I flags@48:H memory_kind@50:H graph_node_id@64:Q graph_id@72:I channel_id@76:I "
        "channel_type@80:I is_device_launched@84:B!130000")),
    "ActivityMemory": ("ActivityMemory", 80, (
        "kind@0:I memory_kind@4:I address@8:Q bytes@16:Q start@24:Q end@32:Q alloc_pc@40:Q free_pc@48:Q "
        "process_id@56:I device_id@60:I context_id@64:I name@72:s")),
    "ActivityMemory2": ("ActivityMemory4", 128, (
        "kind@0:I memory_operation_type@4:I memory_kind@8:I correlation_id@12:I address@16:Q bytes@24:Q "
        "timestamp@32:Q pc@40:Q process_id@48:I device_id@52:I context_id@56:I stream_id@60:I name@64:s "
        "is_async@72:I memory_pool_config@80:R40.MemoryPoolConfig source@120:s")),
    "ActivityMemoryPool": ("ActivityMemoryPool3", 80, (
        "kind@0:I memory_pool_operation_type@4:I memory_pool_type@8:I correlation_id@12:I process_id@16:I "
        "device_id@20:I min_bytes_to_keep@24:Q address@32:Q size@40:Q release_threshold@48:Q timestamp@56:Q "
        "utilized_size@64:Q is_managed_pool@72:B")),
    "ActivityKernel": ("ActivityKernel10", 216, (
        "kind@0:I cache_config@4:R1.CacheConfig shared_memory_config@5:B registers_per_thread@6:H "
        "partitioned_global_cache_requested@8:I partitioned_global_cache_executed@12:I start@16:Q end@24:Q "
        "completed@32:Q device_id@40:I context_id@44:I stream_id@48:I grid_x@52:i grid_y@56:i grid_z@60:i "
        "block_x@64:i block_y@68:i block_z@72:i static_shared_memory@76:i dynamic_shared_memory@80:i "
        "local_memory_per_thread@84:I local_memory_total@88:I correlation_id@92:I grid_id@96:q name@104:s "
        "queued@120:Q submitted@128:Q launch_type@136:B is_shared_memory_carveout_requested@137:B "
        "shared_memory_carveout_requested@138:B shared_memory_executed@140:I graph_node_id@144:Q "
        "shmem_limit_config@152:I graph_id@156:I p_access_policy_window@160:P channel_id@168:I channel_type@172:I "
        "cluster_x@176:I cluster_y@180:I cluster_z@184:I cluster_scheduling_policy@188:I "
        "local_memory_total_v2@192:Q max_potential_cluster_size@200:I max_active_clusters@204:I "
        "is_device_launched@208:B")),
    "ActivityCdpKernel": ("ActivityCdpKernel", 144, (
        "kind@0:I cache_config@4:R1.CacheConfig shared_memory_config@5:B registers_per_thread@6:H start@8:Q "
        "end@16:Q device_id@24:I context_id@28:I stream_id@32:I grid_x@36:i grid_y@40:i grid_z@44:i block_x@48:i "
        "block_y@52:i block_z@56:i static_shared_memory@60:i dynamic_shared_memory@64:i "
        "local_memory_per_thread@68:I local_memory_total@72:I correlation_id@76:I grid_id@80:q parent_grid_id@88:q "
        "queued@96:Q submitted@104:Q completed@112:Q parent_block_x@120:I parent_block_y@124:I parent_block_z@128:I "
        "name@136:s")),
    "ActivityPreemption": ("ActivityPreemption", 40, (
        "kind@0:I preemption_kind@4:I timestamp@8:Q grid_id@16:q block_x@24:I block_y@28:I block_z@32:I")),
    "ActivityAPI": ("ActivityAPI", 40, (
        "kind@0:I cbid@4:I start@8:Q end@16:Q process_id@24:I thread_id@28:I correlation_id@32:I return_value@36:I")),
    "ActivityDevice": ("ActivityDevice5", 184, (
        "kind@0:I flags@4:I global_memory_bandwidth@8:Q global_memory_size@16:Q constant_memory_size@24:I "
        "l2_cache_size@28:I num_threads_per_warp@32:I core_clock_rate@36:I num_memcpy_engines@40:I "
        "num_multiprocessors@44:I max_ipc@48:I max_warps_per_multiprocessor@52:I max_blocks_per_multiprocessor@56:I "
        "max_shared_memory_per_multiprocessor@60:I max_registers_per_multiprocessor@64:I "
        "max_registers_per_block@68:I max_shared_memory_per_block@72:I max_threads_per_block@76:I "
        "max_block_dim_x@80:I max_block_dim_y@84:I max_block_dim_z@88:I max_grid_dim_x@92:I max_grid_dim_y@96:I "
        "max_grid_dim_z@100:I compute_capability_major@104:I compute_capability_minor@108:I id@112:I "
        "ecc_enabled@116:I uuid@120:x16 name@136:s is_cuda_visible@144:B is_mig_enabled@145:B gpu_instance_id@152:I "
        "compute_instance_id@156:I mig_uuid@160:x16 is_numa_node@176:I numa_id@180:I")),
    "ActivityDeviceAttribute": ("ActivityDeviceAttribute", 24, (
        "kind@0:I flags@4:I device_id@8:I attribute@12:R4.DeviceAttributeId value@16:R8.DeviceAttributeValue")),
    "ActivityContext": ("ActivityContext3", 32, (
        "kind@0:I context_id@4:I device_id@8:I compute_api_kind@12:H null_stream_id@14:H parent_context_id@16:I "
        "is_green_context@20:B num_multiprocessors@22:H cig_mode@24:I")),
    "ActivityName": ("ActivityName", 32, (
        "kind@0:I object_kind@4:I object_id@8:R12.ObjectId name@24:s")),
    "ActivityMarker": ("ActivityMarker2", 56, (
        "kind@0:I flags@4:I timestamp@8:Q id@16:I object_kind@20:I object_id@24:R12.ObjectId name@40:s domain@48:s")),
    "ActivityMarkerData": ("ActivityMarkerData2", 40, (
        "kind@0:I flags@4:I id@8:I payload_kind@12:I payload@16:R8.MetricValue color@24:I category@28:I "
        "cupti_domain_id@32:I")),
    "ActivityOverhead": ("ActivityOverhead3", 56, (
        "kind@0:I overhead_kind@4:I object_kind@8:I object_id@12:R12.ObjectId start@24:Q end@32:Q "
        "correlation_id@40:I overhead_data@48:P")),
    "ActivityEnvironment": ("ActivityEnvironment", 40, (
        "kind@0:I device_id@4:I timestamp@8:Q environment_kind@16:I data@20:R20.EnvironmentData")),
    "ActivityUnifiedMemoryCounter": ("ActivityUnifiedMemoryCounter3", 104, (
        "kind@0:I counter_kind@4:I value@8:Q start@16:Q end@24:Q address@32:Q src_id@40:I dst_id@44:I "
        "stream_id@48:I process_id@52:I flags@56:I processors@64:x40")),
    "ActivityFunction": ("ActivityFunction", 32, (
        "kind@0:I id@4:I context_id@8:I module_id@12:I function_index@16:I name@24:s")),
    "ActivityModule": ("ActivityModule", 24, (
        "kind@0:I context_id@4:I id@8:I cubin_size@12:I cubin@16:P")),
    "ActivityCudaEvent": ("ActivityCudaEvent2", 56, (
        "kind@0:I correlation_id@4:I context_id@8:I stream_id@12:I event_id@16:I device_id@24:I "
        "device_timestamp@40:Q cuda_event_sync_id@48:Q")),
    "ActivityStream": ("ActivityStream", 24, (
        "kind@0:I context_id@4:I stream_id@8:I priority@12:I flag@16:I correlation_id@20:I")),
    "ActivitySynchronization": ("ActivitySynchronization2", 56, (
        "kind@0:I type@4:I start@8:Q end@16:Q correlation_id@24:I context_id@28:I stream_id@32:I cuda_event_id@36:I "
        "cuda_event_sync_id@40:Q return_value@48:I")),
    "ActivityOpenAccData": ("ActivityOpenAccData", 152, (
        "kind@0:I event_kind@4:I parent_construct@8:I version@12:I implicit@16:I device_type@20:I "
        "device_number@24:I thread_id@28:I async@32:Q async_map@40:Q line_no@48:I end_line_no@52:I "
        "func_line_no@56:I func_end_line_no@60:I start@64:Q end@72:Q cu_device_id@80:I cu_context_id@84:I "
        "cu_stream_id@88:I cu_process_id@92:I cu_thread_id@96:I external_id@100:I src_file@104:s func_name@112:s "
        "bytes@120:Q host_ptr@128:Q device_ptr@136:Q var_name@144:s")),
    "ActivityOpenAccLaunch": ("ActivityOpenAccLaunch", 152, (
        "kind@0:I event_kind@4:I parent_construct@8:I version@12:I implicit@16:I device_type@20:I "
        "device_number@24:I thread_id@28:I async@32:Q async_map@40:Q line_no@48:I end_line_no@52:I "
        "func_line_no@56:I func_end_line_no@60:I start@64:Q end@72:Q cu_device_id@80:I cu_context_id@84:I "
        "cu_stream_id@88:I cu_process_id@92:I cu_thread_id@96:I external_id@100:I src_file@104:s func_name@112:s "
        "num_gangs@120:Q num_workers@128:Q vector_length@136:Q kernel_name@144:s")),
    "ActivityOpenAccOther": ("ActivityOpenAccOther", 120, (
        "kind@0:I event_kind@4:I parent_construct@8:I version@12:I implicit@16:I device_type@20:I "
        "device_number@24:I thread_id@28:I async@32:Q async_map@40:Q line_no@48:I end_line_no@52:I "
        "func_line_no@56:I func_end_line_no@60:I start@64:Q end@72:Q cu_device_id@80:I cu_context_id@84:I "
        "cu_stream_id@88:I cu_process_id@92:I cu_thread_id@96:I external_id@100:I src_file@104:s func_name@112:s")),
    "ActivityOpenMp": ("ActivityOpenMp", 40, (
        "kind@0:I event_kind@4:I version@8:I thread_id@12:I start@16:Q end@24:Q cu_process_id@32:I "
        "cu_thread_id@36:I")),
    "ActivityExternalCorrelation": ("ActivityExternalCorrelation", 24, (
        "kind@0:I external_kind@4:I external_id@8:Q correlation_id@16:I")),
    "ActivityNvLink": ("ActivityNvLink4", 136, (
        "kind@0:I nvlink_version@4:I type_dev0@8:I type_dev1@12:I id_dev0@16:R16.NvLinkId id_dev1@32:R16.NvLinkId "
        "flag@48:I physical_nv_link_count@52:I port_dev0@56:x32 port_dev1@88:x32 bandwidth@120:Q "
        "nvswitch_connected@128:B")),
    "ActivityPcie": ("ActivityPcie", 168, (
        "kind@0:I type@4:I id@8:R4.PcieId domain@12:I pcie_generation@16:H link_rate@18:H link_width@20:H "
        "upstream_bus@22:H attr@24:R144.PcieAttr")),
    "ActivityConfidentialComputeRotation": ("ActivityConfidentialComputeRotation", 32, (
        "kind@0:I event_type@4:I device_id@8:I context_id@12:I channel_id@16:I channel_type@20:I timestamp@24:Q")),
    "ActivityJit": ("ActivityJit2", 72, (
        "kind@0:I jit_entry_type@4:I jit_operation_type@8:I device_id@12:I start@16:Q end@24:Q correlation_id@32:I "
        "jit_operation_correlation_id@40:Q cache_size@48:Q cache_path@56:s process_id@64:I thread_id@68:I")),
    "ActivityGraphTrace": ("ActivityGraphTrace2", 56, (
        "kind@0:I correlation_id@4:I start@8:Q end@16:Q device_id@24:I graph_id@28:I context_id@32:I stream_id@36:I "
        "end_device_id@48:I end_context_id@52:I")),
    "ActivityDeviceGraphTrace": ("ActivityDeviceGraphTrace", 56, (
        "kind@0:I device_id@4:I start@8:Q end@16:Q graph_id@24:I launcher_graph_id@28:I device_launch_mode@32:I "
        "context_id@36:I stream_id@40:Q")),
    "ActivityMemDecompress": ("ActivityMemDecompress", 64, (
        "kind@0:I device_id@4:I context_id@8:I stream_id@12:I channel_id@16:I channel_type@20:I correlation_id@24:I "
        "number_of_operations@28:I source_bytes@32:Q start@48:Q end@56:Q")),
    "CallbackData": ("CallbackData", 72, (
        "callback_site@0:I function_name@8:s function_params@16:P function_return_value@24:P symbol_name@32:s "
        "context@40:P context_uid@48:I correlation_data@56:P correlation_id@64:I")),
    "ResourceData": ("ResourceData", 24, (
        "context@0:P resource_handle@8:R8.ResourceHandle resource_descriptor@16:P")),
    "SynchronizeData": ("SynchronizeData", 16, (
        "context@0:P stream@8:P")),
    "NvtxData": ("NvtxData", 24, (
        "function_name@0:s function_params@8:P function_return_value@16:P")),
    "StateData": ("StateData", 16, "result@0:I message@8:s notification@0:R16.StateNotification"),
}

# Unions and structs inside records.
PARTS: Dict[str, Tuple[int, str]] = {
    "CacheConfig": (1, "both@0:B"),
    "MemoryPool": (8, "size@0:Q process_id@0:Q"),
    "MemoryPoolConfig": (40, "memory_pool_type@0:I address@8:Q release_threshold@16:Q pool@24:R8.MemoryPool "
                             "utilized_size@32:Q"),
    "ObjectProcess": (8, "process_id@0:I thread_id@4:I"),
    "ObjectDevice": (12, "device_id@0:I context_id@4:I stream_id@8:I"),
    "ObjectId": (12, "pt@0:R8.ObjectProcess dcs@0:R12.ObjectDevice"),
    "DeviceAttributeId": (4, "cu@0:I cupti@0:I"),
    "DeviceAttributeValue": (8, "v_double@0:d v_uint32@0:I v_uint64@0:Q v_int32@0:i v_int64@0:q"),
    "MetricValue": (8, "metric_value_double@0:d metric_value_uint64@0:Q metric_value_int64@0:q "
                       "metric_value_percent@0:d metric_value_throughput@0:Q metric_value_utilization_level@0:I"),
    "EnvironmentSpeed": (20, "sm_clock@0:I memory_clock@4:I pcie_link_gen@8:I pcie_link_width@12:I "
                             "clocks_throttle_reasons@16:I"),
    "EnvironmentTemperature": (4, "gpu_temperature@0:I"),
    "EnvironmentPower": (8, "power@0:I power_limit@4:I"),
    "EnvironmentCooling": (4, "fan_speed@0:I"),
    "EnvironmentData": (20, "speed@0:R20.EnvironmentSpeed temperature@0:R4.EnvironmentTemperature "
                            "power@0:R8.EnvironmentPower cooling@0:R4.EnvironmentCooling"),
    "NvLinkNpu": (8, "index@0:I domain_id@4:I"),
    "NvLinkId": (16, "uuid_dev@0:x16 npu@0:R8.NvLinkNpu"),
    "PcieId": (4, "dev_id@0:i bridge_id@0:I"),
    "PcieGpuAttr": (144, "uuid_dev@0:x16 peer_dev@16:x128"),
    "PcieBridgeAttr": (6, "secondary_bus@0:H device_id@2:H vendor_id@4:H"),
    "PcieAttr": (144, "gpu_attr@0:R144.PcieGpuAttr bridge_attr@0:R6.PcieBridgeAttr"),
    "ResourceHandle": (8, "stream@0:P"),
    "StateNotification": (16, "result@0:I"),
}
