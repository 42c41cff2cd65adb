/* SPDX-License-Identifier: Apache-2.0 */
/* NVML: GPUs of this machine and their telemetry. Every value has a validity
 * bit; what the driver does not offer is unknown, never zero. Not thread-safe
 * per object: one sampler owns it. Calls known to block (PCIe throughput: 20 ms)
 * are never used; slow ones (energy: 3 ms) run on a slower beat. */
#ifndef GPUFL_DRIVER_NVML_H
#define GPUFL_DRIVER_NVML_H

#include "base/status.h"

/* index into values[] and bit in known */
enum nvml_metric {
    NVML_GPU_UTIL_PCT,
    NVML_MEM_UTIL_PCT,
    NVML_TEMP_C,
    NVML_TEMP_MEM_C,
    NVML_POWER_MW,
    NVML_POWER_LIMIT_MW,
    NVML_ENERGY_UJ,
    NVML_MEM_USED_BYTES,
    NVML_MEM_TOTAL_BYTES,
    NVML_CLOCK_SM_MHZ,
    NVML_CLOCK_MEM_MHZ,
    NVML_CLOCK_GFX_MHZ,
    NVML_FAN_PCT,
    NVML_PERF_STATE,
    NVML_THROTTLE_REASONS,
    NVML_PCIE_RX_BPS,
    NVML_PCIE_TX_BPS,
    NVML_NVLINK_RX_BPS,
    NVML_NVLINK_TX_BPS,
    NVML_ECC_CORRECTED,
    NVML_ECC_UNCORRECTED,
    NVML_SM_ACTIVE_BP,
    NVML_SM_OCCUPANCY_BP,
    NVML_TENSOR_ACTIVE_BP,
    NVML_DRAM_ACTIVE_BP,
    NVML_FP64_ACTIVE_BP,
    NVML_FP32_ACTIVE_BP,
    NVML_FP16_ACTIVE_BP,
    NVML_METRIC_COUNT
};
struct nvml_sample {
    uint64_t known; /* bit per enum nvml_metric */
    uint64_t values[NVML_METRIC_COUNT];
    bool is_lost; /* the GPU fell off the bus */
};
struct nvml_process {
    uint32_t pid;
    uint64_t used_bytes;
    bool has_used_bytes;
    bool has_gpu_instance; /* runs on a part of a GPU in MIG mode */
    uint32_t gpu_instance_id;
};
struct nvml_device_info {
    uint32_t index;
    char name[96], uuid[96], pci_bus_id[32], architecture[32];
    uint32_t compute_major, compute_minor;
    uint64_t memory_total_bytes;
    bool is_mig;
};
/* One MIG instance, which is what a program sees of a GPU in MIG mode. */
struct nvml_mig_info {
    uint32_t gpu_instance_id, compute_instance_id;
    char uuid[96], name[96];
};
enum { NVML_MIG_MAX = 8 };
enum nvml_event_kind { NVML_EVENT_XID, NVML_EVENT_ECC_CORRECTED, NVML_EVENT_ECC_UNCORRECTED, NVML_EVENT_MIG_CHANGED };
struct nvml_event {
    enum nvml_event_kind kind;
    bool has_device, has_instance;
    uint32_t index; /* of the GPU */
    uint32_t gpu_instance_id, compute_instance_id;
    uint64_t xid; /* of NVML_EVENT_XID */
};
struct nvml; /* opaque */
/* GPUFL_E_UNSUPPORTED: NVML cannot work with the running driver: another version, or functions are missing. */
NODISCARD gpufl_status nvml_open(struct nvml **out, struct problem *problem);
void nvml_close(struct nvml *nvml);
const char *nvml_driver_version(const struct nvml *nvml);
int nvml_cuda_driver_version(const struct nvml *nvml);
uint32_t nvml_device_count(const struct nvml *nvml);
bool nvml_device_describe(struct nvml *nvml, uint32_t index, struct nvml_device_info *info);
/* with_slow: also the millisecond-class values (energy, throttle counters). Rates need two calls. */
void nvml_device_sample(struct nvml *nvml, uint32_t index, bool with_slow, struct nvml_sample *sample);
/* Fills at most `capacity`; returns how many processes there are, or -1 when not available. */
int nvml_device_processes(struct nvml *nvml, uint32_t index, struct nvml_process *processes, int capacity);

/* MIG instances, listed anew; at most NVML_MIG_MAX. 0: none, or not in MIG mode. */
uint32_t nvml_device_mig_list(struct nvml *nvml, uint32_t index, struct nvml_mig_info infos[NVML_MIG_MAX]);
/* Memory, and the hardware counters of its GPU instance, of the instance at `position` of the last list. */
void nvml_device_mig_sample(struct nvml *nvml, uint32_t index, uint32_t position, struct nvml_sample *sample);
/* Starts listening for Xid, ECC and MIG events; false when no GPU offers them. */
bool nvml_events_listen(struct nvml *nvml);
/* The next event that has happened; false: none. Never waits. */
bool nvml_events_take(struct nvml *nvml, struct nvml_event *event);

#endif
