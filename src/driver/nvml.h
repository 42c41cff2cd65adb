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
};
struct nvml_device_info {
    uint32_t index;
    char name[96], uuid[96], pci_bus_id[32], architecture[32];
    uint32_t compute_major, compute_minor;
    uint64_t memory_total_bytes;
    bool is_mig;
};
struct nvml; /* opaque */
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

#endif
