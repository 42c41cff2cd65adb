/* SPDX-License-Identifier: Apache-2.0 */
/* The part of NVML's binary interface that we use: our own declarations. */
#ifndef GPUFL_DRIVER_NVML_ABI_H
#define GPUFL_DRIVER_NVML_ABI_H

#include <stddef.h>
#include <stdint.h>

/* nvmlReturn_t */
enum {
    NVML_ABI_SUCCESS = 0,
    NVML_ABI_UNINITIALIZED = 1,
    NVML_ABI_INVALID_ARGUMENT = 2,
    NVML_ABI_NOT_SUPPORTED = 3,
    NVML_ABI_NO_PERMISSION = 4,
    NVML_ABI_NOT_FOUND = 6,
    NVML_ABI_INSUFFICIENT_SIZE = 7,
    NVML_ABI_DRIVER_NOT_LOADED = 9,
    NVML_ABI_TIMEOUT = 10,
    NVML_ABI_FUNCTION_NOT_FOUND = 13,
    NVML_ABI_GPU_IS_LOST = 15,
    NVML_ABI_VERSION_MISMATCH = 18, /* between the library and the kernel driver */
    NVML_ABI_UNKNOWN = 999
};

enum {
    NVML_ABI_TEMPERATURE_GPU = 0,
    NVML_ABI_CLOCK_GRAPHICS = 0,
    NVML_ABI_CLOCK_SM = 1,
    NVML_ABI_CLOCK_MEM = 2,
    NVML_ABI_ECC_CORRECTED = 0,
    NVML_ABI_ECC_UNCORRECTED = 1,
    NVML_ABI_ECC_VOLATILE = 0, /* counted since the driver was loaded */
    NVML_ABI_PSTATE_UNKNOWN = 32
};

/* nvmlFieldValue_t.field_id */
enum {
    NVML_ABI_FIELD_MEMORY_TEMP = 82,
    NVML_ABI_FIELD_NVLINK_DATA_TX = 138, /* KiB */
    NVML_ABI_FIELD_NVLINK_DATA_RX = 139,
    NVML_ABI_FIELD_NVLINK_RAW_TX = 140, /* with protocol; listed so that nobody mistakes them for data */
    NVML_ABI_FIELD_NVLINK_RAW_RX = 141,
    NVML_ABI_FIELD_PCIE_TX_BYTES = 197, /* wraps at 32 bits */
    NVML_ABI_FIELD_PCIE_RX_BYTES = 198,
    NVML_ABI_FIELD_NVLINK_XMIT_BYTES = 202,
    NVML_ABI_FIELD_NVLINK_RCV_BYTES = 204
};
#define NVML_ABI_SCOPE_ALL_LINKS 0xffffffffu

/* nvmlValueType_t */
enum {
    NVML_ABI_VALUE_DOUBLE = 0,
    NVML_ABI_VALUE_UINT = 1,
    NVML_ABI_VALUE_ULONG = 2,
    NVML_ABI_VALUE_ULL = 3,
    NVML_ABI_VALUE_LL = 4,
    NVML_ABI_VALUE_INT = 5,
    NVML_ABI_VALUE_USHORT = 6
};
union nvml_abi_value {
    double as_double;
    int as_int;
    unsigned as_uint;
    unsigned long as_ulong;
    unsigned long long as_ull;
    long long as_ll;
    unsigned short as_ushort;
};
struct nvml_abi_field {
    unsigned field_id, scope_id;
    long long timestamp_us, latency_us;
    unsigned value_type;
    int result; /* of this field alone */
    union nvml_abi_value value;
};
_Static_assert(sizeof(struct nvml_abi_field) == 40, "nvmlFieldValue_t");

struct nvml_abi_utilization {
    unsigned gpu, memory; /* percent */
};
struct nvml_abi_memory {
    unsigned long long total, free, used;
};
struct nvml_abi_memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};
struct nvml_abi_process {
    unsigned pid;
    unsigned long long used_bytes; /* ~0: not available */
    unsigned gpu_instance_id, compute_instance_id;
};
_Static_assert(sizeof(struct nvml_abi_process) == 24, "nvmlProcessInfo_t");
struct nvml_abi_pci {
    char bus_id_legacy[16];
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
};
_Static_assert(sizeof(struct nvml_abi_pci) == 68, "nvmlPciInfo_t");

/* nvmlEventData_t.type, and bits of the mask that is registered */
enum {
    NVML_ABI_EVENT_ECC_CORRECTED = 0x1,
    NVML_ABI_EVENT_ECC_UNCORRECTED = 0x2,
    NVML_ABI_EVENT_XID = 0x8,
    NVML_ABI_EVENT_MIG_CHANGED = 0x100
};
#define NVML_ABI_NO_INSTANCE 0xffffffffu
struct nvml_abi_event {
    void *device;
    unsigned long long type, data; /* data: the number of an Xid, 999 when it is not known */
    unsigned gpu_instance_id, compute_instance_id;
};
_Static_assert(sizeof(struct nvml_abi_event) == 32, "nvmlEventData_t");

/* Versioned structs carry their size and version number. */
#define NVML_ABI_VERSION(type, number) ((unsigned)sizeof(type) | ((unsigned)(number) << 24))

/* GPM metric ids; percent as double */
enum {
    NVML_ABI_GPM_SM_UTIL = 2,
    NVML_ABI_GPM_SM_OCCUPANCY = 3,
    NVML_ABI_GPM_ANY_TENSOR = 5,
    NVML_ABI_GPM_DRAM = 10,
    NVML_ABI_GPM_FP64 = 11,
    NVML_ABI_GPM_FP32 = 12,
    NVML_ABI_GPM_FP16 = 13,
    NVML_ABI_GPM_PCIE_TX = 20, /* MiB per second, and the rest */
    NVML_ABI_GPM_PCIE_RX = 21,
    NVML_ABI_GPM_NVLINK_RX = 60,
    NVML_ABI_GPM_NVLINK_TX = 61,
    /* Elements of metrics[]. Drivers know fewer or more and only use metric_count. */
    NVML_ABI_GPM_METRICS_MAX = 333
};
struct nvml_abi_gpm_metric {
    unsigned metric_id;
    int result;
    double value;
    struct {
        char *short_name, *long_name, *unit;
    } info;
};
_Static_assert(sizeof(struct nvml_abi_gpm_metric) == 40, "nvmlGpmMetric_t");
struct nvml_abi_gpm_metrics {
    unsigned version, metric_count;
    void *older, *newer; /* samples */
    struct nvml_abi_gpm_metric metrics[NVML_ABI_GPM_METRICS_MAX];
};
struct nvml_abi_gpm_support {
    unsigned version, is_supported;
};

/* X(member, symbol, parameters): every function we call; all return an nvmlReturn_t. */
#define NVML_ABI_FUNCTIONS(X)                                                                                        \
    X(init, nvmlInit_v2, (void))                                                                                     \
    X(shutdown, nvmlShutdown, (void))                                                                                \
    X(driver_version, nvmlSystemGetDriverVersion, (char *text, unsigned size))                                       \
    X(cuda_version, nvmlSystemGetCudaDriverVersion_v2, (int *version))                                               \
    X(device_count, nvmlDeviceGetCount_v2, (unsigned *count))                                                        \
    X(device_handle, nvmlDeviceGetHandleByIndex_v2, (unsigned index, void **device))                                 \
    X(name, nvmlDeviceGetName, (void *device, char *text, unsigned size))                                            \
    X(uuid, nvmlDeviceGetUUID, (void *device, char *text, unsigned size))                                            \
    X(pci, nvmlDeviceGetPciInfo_v3, (void *device, struct nvml_abi_pci *pci))                                        \
    X(architecture, nvmlDeviceGetArchitecture, (void *device, unsigned *architecture))                               \
    X(compute_capability, nvmlDeviceGetCudaComputeCapability, (void *device, int *major, int *minor))                \
    X(mig_mode, nvmlDeviceGetMigMode, (void *device, unsigned *current, unsigned *pending))                          \
    X(utilization, nvmlDeviceGetUtilizationRates, (void *device, struct nvml_abi_utilization *rates))                \
    X(temperature, nvmlDeviceGetTemperature, (void *device, unsigned sensor, unsigned *celsius))                     \
    X(power, nvmlDeviceGetPowerUsage, (void *device, unsigned *milliwatts))                                          \
    X(power_limit, nvmlDeviceGetEnforcedPowerLimit, (void *device, unsigned *milliwatts))                            \
    X(energy, nvmlDeviceGetTotalEnergyConsumption, (void *device, unsigned long long *millijoules))                  \
    X(memory, nvmlDeviceGetMemoryInfo, (void *device, struct nvml_abi_memory *memory))                               \
    X(memory_v2, nvmlDeviceGetMemoryInfo_v2, (void *device, struct nvml_abi_memory_v2 *memory))                      \
    X(clock, nvmlDeviceGetClockInfo, (void *device, unsigned type, unsigned *mhz))                                   \
    X(fan, nvmlDeviceGetFanSpeed, (void *device, unsigned *percent))                                                 \
    X(link_generation, nvmlDeviceGetCurrPcieLinkGeneration, (void *device, unsigned *generation))                    \
    X(link_width, nvmlDeviceGetCurrPcieLinkWidth, (void *device, unsigned *lanes))                                   \
    X(perf_state, nvmlDeviceGetPerformanceState, (void *device, unsigned *state))                                    \
    X(throttle, nvmlDeviceGetCurrentClocksThrottleReasons, (void *device, unsigned long long *reasons))              \
    X(clock_events, nvmlDeviceGetCurrentClocksEventReasons, (void *device, unsigned long long *reasons))             \
    X(ecc, nvmlDeviceGetTotalEccErrors, (void *device, unsigned error, unsigned counter, unsigned long long *count)) \
    X(fields, nvmlDeviceGetFieldValues, (void *device, int count, struct nvml_abi_field *fields))                    \
    X(processes, nvmlDeviceGetComputeRunningProcesses_v3,                                                            \
      (void *device, unsigned *count, struct nvml_abi_process *processes))                                           \
    X(event_types, nvmlDeviceGetSupportedEventTypes, (void *device, unsigned long long *types))                      \
    X(event_set_create, nvmlEventSetCreate, (void **set))                                                            \
    X(event_register, nvmlDeviceRegisterEvents, (void *device, unsigned long long types, void *set))                 \
    X(event_wait, nvmlEventSetWait_v2, (void *set, struct nvml_abi_event *event, unsigned timeout_ms))               \
    X(event_set_free, nvmlEventSetFree, (void *set))                                                                 \
    X(mig_count_max, nvmlDeviceGetMaxMigDeviceCount, (void *device, unsigned *count))                                \
    X(mig_handle, nvmlDeviceGetMigDeviceHandleByIndex, (void *device, unsigned index, void **mig))                   \
    X(gpu_instance_id, nvmlDeviceGetGpuInstanceId, (void *mig, unsigned *id))                                        \
    X(compute_instance_id, nvmlDeviceGetComputeInstanceId, (void *mig, unsigned *id))                                \
    X(gpm_mig_sample_get, nvmlGpmMigSampleGet, (void *device, unsigned gpu_instance_id, void *sample))               \
    X(gpm_support, nvmlGpmQueryDeviceSupport, (void *device, struct nvml_abi_gpm_support *support))                  \
    X(gpm_sample_alloc, nvmlGpmSampleAlloc, (void **sample))                                                         \
    X(gpm_sample_free, nvmlGpmSampleFree, (void *sample))                                                            \
    X(gpm_sample_get, nvmlGpmSampleGet, (void *device, void *sample))                                                \
    X(gpm_metrics_get, nvmlGpmMetricsGet, (struct nvml_abi_gpm_metrics * metrics))

/* The one function that does not return a status. */
typedef const char *nvml_abi_error_string_fn(int result); /* nvmlErrorString */

#endif
