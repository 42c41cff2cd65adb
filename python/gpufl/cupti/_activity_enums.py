# SPDX-License-Identifier: Apache-2.0
"""CUPTI's enumerations that activity records and functions use, by CUPTI's names and numbers (CUDA 13.0)."""
from enum import IntEnum


class ActivityKind(IntEnum):
    INVALID = 0
    MEMCPY = 1
    MEMSET = 2
    KERNEL = 3
    DRIVER = 4
    RUNTIME = 5
    EVENT = 6
    METRIC = 7
    DEVICE = 8
    CONTEXT = 9
    CONCURRENT_KERNEL = 10
    NAME = 11
    MARKER = 12
    MARKER_DATA = 13
    SOURCE_LOCATOR = 14
    GLOBAL_ACCESS = 15
    BRANCH = 16
    OVERHEAD = 17
    CDP_KERNEL = 18
    PREEMPTION = 19
    ENVIRONMENT = 20
    EVENT_INSTANCE = 21
    MEMCPY2 = 22
    METRIC_INSTANCE = 23
    INSTRUCTION_EXECUTION = 24
    UNIFIED_MEMORY_COUNTER = 25
    FUNCTION = 26
    MODULE = 27
    DEVICE_ATTRIBUTE = 28
    SHARED_ACCESS = 29
    PC_SAMPLING = 30
    PC_SAMPLING_RECORD_INFO = 31
    INSTRUCTION_CORRELATION = 32
    OPENACC_DATA = 33
    OPENACC_LAUNCH = 34
    OPENACC_OTHER = 35
    CUDA_EVENT = 36
    STREAM = 37
    SYNCHRONIZATION = 38
    EXTERNAL_CORRELATION = 39
    NVLINK = 40
    INSTANTANEOUS_EVENT = 41
    INSTANTANEOUS_EVENT_INSTANCE = 42
    INSTANTANEOUS_METRIC = 43
    INSTANTANEOUS_METRIC_INSTANCE = 44
    MEMORY = 45
    PCIE = 46
    OPENMP = 47
    INTERNAL_LAUNCH_API = 48
    MEMORY2 = 49
    MEMORY_POOL = 50
    GRAPH_TRACE = 51
    JIT = 52
    DEVICE_GRAPH_TRACE = 53
    MEM_DECOMPRESS = 54
    CONFIDENTIAL_COMPUTE_ROTATION = 55


class ActivityAttribute(IntEnum):
    DEVICE_BUFFER_SIZE = 0
    DEVICE_BUFFER_SIZE_CDP = 1
    DEVICE_BUFFER_POOL_LIMIT = 2
    PROFILING_SEMAPHORE_POOL_SIZE = 3
    PROFILING_SEMAPHORE_POOL_LIMIT = 4
    ZEROED_OUT_ACTIVITY_BUFFER = 5
    DEVICE_BUFFER_PRE_ALLOCATE_VALUE = 6
    PROFILING_SEMAPHORE_PRE_ALLOCATE_VALUE = 7
    MEM_ALLOCATION_TYPE_HOST_PINNED = 8
    PER_THREAD_ACTIVITY_BUFFER = 9
    DEVICE_BUFFER_SIZE_DEVICE_GRAPHS = 10


class ActivityFlag(IntEnum):
    NONE = 0
    DEVICE_CONCURRENT_KERNELS = 1
    DEVICE_ATTRIBUTE_CUDEVICE = 1
    MEMCPY_ASYNC = 1
    MARKER_INSTANTANEOUS = 1
    MARKER_START = 2
    MARKER_END = 4
    MARKER_SYNC_ACQUIRE = 8
    MARKER_SYNC_ACQUIRE_SUCCESS = 16
    MARKER_SYNC_ACQUIRE_FAILED = 32
    MARKER_SYNC_RELEASE = 64
    MARKER_COLOR_NONE = 1
    MARKER_COLOR_ARGB = 2
    GLOBAL_ACCESS_KIND_SIZE_MASK = 255
    GLOBAL_ACCESS_KIND_LOAD = 256
    GLOBAL_ACCESS_KIND_CACHED = 512
    METRIC_OVERFLOWED = 1
    METRIC_VALUE_INVALID = 2
    INSTRUCTION_VALUE_INVALID = 1
    INSTRUCTION_CLASS_MASK = 510
    FLUSH_FORCED = 1
    SHARED_ACCESS_KIND_SIZE_MASK = 255
    SHARED_ACCESS_KIND_LOAD = 256
    MEMSET_ASYNC = 1
    THRASHING_IN_CPU = 1
    THROTTLING_IN_CPU = 1


class ActivityObjectKind(IntEnum):
    UNKNOWN = 0
    PROCESS = 1
    THREAD = 2
    DEVICE = 3
    CONTEXT = 4
    STREAM = 5


class ActivityOverheadKind(IntEnum):
    UNKNOWN = 0
    DRIVER_COMPILER = 1
    CUPTI_BUFFER_FLUSH = 65536
    CUPTI_INSTRUMENTATION = 131072
    CUPTI_RESOURCE = 196608
    RUNTIME_TRIGGERED_MODULE_LOADING = 262144
    LAZY_FUNCTION_LOADING = 327680
    COMMAND_BUFFER_FULL = 393216
    ACTIVITY_BUFFER_REQUEST = 458752
    UVM_ACTIVITY_INIT = 524288


class ActivityComputeApiKind(IntEnum):
    UNKNOWN = 0
    CUDA = 1
    CUDA_MPS = 2


class ActivityMemcpyKind(IntEnum):
    UNKNOWN = 0
    HTOD = 1
    DTOH = 2
    HTOA = 3
    ATOH = 4
    ATOA = 5
    ATOD = 6
    DTOA = 7
    DTOD = 8
    HTOH = 9
    PTOP = 10


class ActivityMemoryKind(IntEnum):
    UNKNOWN = 0
    PAGEABLE = 1
    PINNED = 2
    DEVICE = 3
    ARRAY = 4
    MANAGED = 5
    DEVICE_STATIC = 6
    MANAGED_STATIC = 7


class ActivityMemoryOperationType(IntEnum):
    INVALID = 0
    ALLOCATION = 1
    RELEASE = 2


class ActivityMemoryPoolType(IntEnum):
    INVALID = 0
    LOCAL = 1
    IMPORTED = 2


class ActivityMemoryPoolOperationType(IntEnum):
    INVALID = 0
    CREATED = 1
    DESTROYED = 2
    TRIMMED = 3


class ActivityPreemptionKind(IntEnum):
    UNKNOWN = 0
    SAVE = 1
    RESTORE = 2


class ActivityEnvironmentKind(IntEnum):
    UNKNOWN = 0
    SPEED = 1
    TEMPERATURE = 2
    POWER = 3
    COOLING = 4


class EnvironmentClocksThrottleReason(IntEnum):
    GPU_IDLE = 1
    USER_DEFINED_CLOCKS = 2
    SW_POWER_CAP = 4
    HW_SLOWDOWN = 8
    UNKNOWN = 2147483648
    UNSUPPORTED = 1073741824
    NONE = 0


class ActivityUnifiedMemoryCounterScope(IntEnum):
    UNKNOWN = 0
    PROCESS_SINGLE_DEVICE = 1
    PROCESS_ALL_DEVICES = 2


class ActivityUnifiedMemoryCounterKind(IntEnum):
    UNKNOWN = 0
    BYTES_TRANSFER_HTOD = 1
    BYTES_TRANSFER_DTOH = 2
    GPU_PAGE_FAULT = 4
    THRASHING = 5
    THROTTLING = 6
    REMOTE_MAP = 7
    BYTES_TRANSFER_DTOD = 8


class ActivityUnifiedMemoryAccessType(IntEnum):
    UNKNOWN = 0
    READ = 1
    WRITE = 2
    ATOMIC = 3
    PREFETCH = 4


class ActivityUnifiedMemoryMigrationCause(IntEnum):
    UNKNOWN = 0
    USER = 1
    COHERENCE = 2
    PREFETCH = 3
    EVICTION = 4
    ACCESS_COUNTERS = 5


class ActivityUnifiedMemoryRemoteMapCause(IntEnum):
    UNKNOWN = 0
    COHERENCE = 1
    THRASHING = 2
    POLICY = 3
    OUT_OF_MEMORY = 4
    EVICTION = 5


class ActivityPartitionedGlobalCacheConfig(IntEnum):
    UNKNOWN = 0
    NOT_SUPPORTED = 1
    OFF = 2
    ON = 3


class ActivitySynchronizationType(IntEnum):
    UNKNOWN = 0
    EVENT_SYNCHRONIZE = 1
    STREAM_WAIT_EVENT = 2
    STREAM_SYNCHRONIZE = 3
    CONTEXT_SYNCHRONIZE = 4


class ActivityStreamFlag(IntEnum):
    FLAG_UNKNOWN = 0
    FLAG_DEFAULT = 1
    FLAG_NON_BLOCKING = 2
    FLAG_NULL = 3
    MASK = 65535


class ActivityLaunchType(IntEnum):
    REGULAR = 0
    COOPERATIVE_SINGLE_DEVICE = 1
    COOPERATIVE_MULTI_DEVICE = 2
    CBL_COMMANDLIST = 3


class ActivityJitEntryType(IntEnum):
    INVALID = 0
    PTX_TO_CUBIN = 1
    NVVM_IR_TO_PTX = 2


class ActivityJitOperationType(IntEnum):
    INVALID = 0
    CACHE_LOAD = 1
    CACHE_STORE = 2
    COMPILE = 3


class ActivityThreadIdType(IntEnum):
    DEFAULT = 0
    SYSTEM = 1


class LinkFlag(IntEnum):
    INVALID = 0
    PEER_ACCESS = 2
    SYSMEM_ACCESS = 4
    PEER_ATOMICS = 8
    SYSMEM_ATOMICS = 16


class ChannelType(IntEnum):
    INVALID = 0
    COMPUTE = 1
    ASYNC_MEMCPY = 2
    DECOMP = 3


class ContextCigMode(IntEnum):
    NONE = 0
    CIG = 1
    CIG_FALLBACK = 2


class FuncShmemLimitConfig(IntEnum):
    DEFAULT = 0
    OPTIN = 1


class OpenAccEventKind(IntEnum):
    INVALID = 0
    DEVICE_INIT = 1
    DEVICE_SHUTDOWN = 2
    RUNTIME_SHUTDOWN = 3
    ENQUEUE_LAUNCH = 4
    ENQUEUE_UPLOAD = 5
    ENQUEUE_DOWNLOAD = 6
    WAIT = 7
    IMPLICIT_WAIT = 8
    COMPUTE_CONSTRUCT = 9
    UPDATE = 10
    ENTER_DATA = 11
    EXIT_DATA = 12
    CREATE = 13
    DELETE = 14
    ALLOC = 15
    FREE = 16


class OpenAccConstructKind(IntEnum):
    UNKNOWN = 0
    PARALLEL = 1
    KERNELS = 2
    LOOP = 3
    DATA = 4
    ENTER_DATA = 5
    EXIT_DATA = 6
    HOST_DATA = 7
    ATOMIC = 8
    DECLARE = 9
    INIT = 10
    SHUTDOWN = 11
    SET = 12
    UPDATE = 13
    ROUTINE = 14
    WAIT = 15
    RUNTIME_API = 16


class ExternalCorrelationKind(IntEnum):
    INVALID = 0
    UNKNOWN = 1
    OPENACC = 2
    CUSTOM0 = 3
    CUSTOM1 = 4
    CUSTOM2 = 5


class DevType(IntEnum):
    INVALID = 0
    GPU = 1
    NPU = 2


class PcieDeviceType(IntEnum):
    GPU = 0
    BRIDGE = 1


class PcieGen(IntEnum):
    GEN1 = 1
    GEN2 = 2
    GEN3 = 3
    GEN4 = 4
    GEN5 = 5
    GEN6 = 6


class ConfidentialComputeRotationEventType(IntEnum):
    INVALID_ROTATION_EVENT = 0
    KEY_ROTATION_CHANNEL_BLOCKED = 1
    KEY_ROTATION_CHANNEL_DRAINED = 2
    KEY_ROTATION_CHANNEL_UNBLOCKED = 3


class DeviceGraphLaunchMode(IntEnum):
    INVALID = 0
    FIRE_AND_FORGET = 1
    TAIL = 2
    FIRE_AND_FORGET_AS_SIBLING = 3


class DeviceVirtualizationMode(IntEnum):
    NONE = 0
    PASS_THROUGH = 1
    VIRTUAL_GPU = 2


class MetricValueKind(IntEnum):
    DOUBLE = 0
    UINT64 = 1
    PERCENT = 2
    THROUGHPUT = 3
    INT64 = 4
    UTILIZATION_LEVEL = 5
    NVTX_EXTENDED_PAYLOAD = 6
