/* SPDX-License-Identifier: Apache-2.0 */
/* What a driver reports about a GPU, for all vendors: identity, one reading of its telemetry, its processes and
 * partitions. Plain data; every value has a validity bit, and values the driver does not provide are unknown, never
 * zero. */
#ifndef GPUFL_DRIVER_GPU_SAMPLE_H
#define GPUFL_DRIVER_GPU_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

/* In the order in which their GPUs are numbered on a host with several vendors. */
enum gpu_vendor { GPU_VENDOR_NVIDIA, GPU_VENDOR_AMD, GPU_VENDOR_COUNT };

/* index into values[] and bit in known */
enum gpu_metric {
    GPU_UTIL_PCT,
    GPU_MEM_UTIL_PCT,
    GPU_TEMP_C, /* the sensor that the vendor lists first: AMD's edge sensor, or else its junction sensor */
    GPU_TEMP_MEM_C,
    GPU_POWER_MW,
    GPU_POWER_LIMIT_MW,
    GPU_ENERGY_UJ,
    GPU_MEM_USED_BYTES,
    GPU_MEM_TOTAL_BYTES,
    GPU_CLOCK_SM_MHZ, /* of the shader cores: NVIDIA's SM clock, AMD's gfx clock */
    GPU_CLOCK_MEM_MHZ,
    GPU_CLOCK_GFX_MHZ,
    GPU_FAN_PCT,
    GPU_PERF_STATE,
    GPU_THROTTLE_REASONS, /* bits of enum gpu_throttle */
    GPU_PCIE_RX_BPS,
    GPU_PCIE_TX_BPS,
    GPU_NVLINK_RX_BPS,
    GPU_NVLINK_TX_BPS,
    GPU_ECC_CORRECTED,
    GPU_ECC_UNCORRECTED,
    GPU_SM_ACTIVE_BP,
    GPU_SM_OCCUPANCY_BP,
    GPU_TENSOR_ACTIVE_BP,
    GPU_DRAM_ACTIVE_BP,
    GPU_FP64_ACTIVE_BP,
    GPU_FP32_ACTIVE_BP,
    GPU_FP16_ACTIVE_BP,
    GPU_TEMP_EDGE_C,
    GPU_TEMP_JUNCTION_C,
    GPU_VOLTAGE_MV,
    GPU_FAN_RPM,
    GPU_PCIE_BPS, /* both directions together, if the driver does not separate them */
    GPU_XGMI_READ_BPS,
    GPU_XGMI_WRITE_BPS,
    GPU_METRIC_COUNT
};

/* Why clocks are lowered. The first nine are the bits of NVML's clocks-event mask. */
enum gpu_throttle {
    GPU_THROTTLE_IDLE = 0x001,
    GPU_THROTTLE_APPLICATION_CLOCKS = 0x002,
    GPU_THROTTLE_SOFTWARE_POWER_CAP = 0x004,
    GPU_THROTTLE_HARDWARE = 0x008,
    GPU_THROTTLE_SYNC_BOOST = 0x010,
    GPU_THROTTLE_SOFTWARE_THERMAL = 0x020,
    GPU_THROTTLE_HARDWARE_THERMAL = 0x040,
    GPU_THROTTLE_HARDWARE_POWER_BRAKE = 0x080,
    GPU_THROTTLE_DISPLAY_CLOCKS = 0x100,
    GPU_THROTTLE_CURRENT_LIMIT = 0x200, /* AMD: the current of a supply rail */
};

struct gpu_sample {
    uint64_t known; /* bit per enum gpu_metric */
    uint64_t values[GPU_METRIC_COUNT];
    bool is_lost; /* the GPU fell off the bus */
};

static inline bool gpu_sample_knows(const struct gpu_sample *sample, enum gpu_metric metric)
{
    return sample->known >> metric & 1;
}

static inline void gpu_sample_set(struct gpu_sample *sample, enum gpu_metric metric, uint64_t value)
{
    sample->known |= UINT64_C(1) << metric;
    sample->values[metric] = value;
}

struct gpu_process {
    uint32_t pid;
    uint64_t used_bytes;
    bool has_used_bytes;
    bool has_gpu_instance; /* runs on a part of a GPU in MIG mode */
    uint32_t gpu_instance_id;
};

struct gpu_device_info { /* unknown: 0 or "" */
    enum gpu_vendor vendor;
    uint32_t index;        /* on this host, over all vendors; the driver's number until telemetry assigns one */
    uint32_t driver_index; /* as the vendor's driver numbers it */
    char name[96], uuid[96], pci_bus_id[32], architecture[32];
    uint32_t compute_major, compute_minor; /* CUDA's; AMD's gfx version is its architecture */
    uint64_t memory_total_bytes;
    uint32_t multiprocessors, warp_size; /* compute units and wave size; NVML does not report these */
    uint32_t lds_bytes;                  /* shared memory of a multiprocessor */
    uint32_t pcie_lanes, pcie_lanes_max; /* lanes in use at that time, and the maximum of card and slot; not queried
                                          * with NVML */
    bool is_mig;
    /* Of a partitioned AMD GPU: each partition is a device. The first has the telemetry of the whole GPU. */
    bool is_partition;
    uint32_t partition; /* also 0 if it is not partitioned */
};

/* The same GPU: by uuid, or by bus address if the driver reports none. */
bool gpu_device_is_same(const struct gpu_device_info *a, const struct gpu_device_info *b);
const char *gpu_vendor_name(enum gpu_vendor vendor); /* "NVIDIA", "AMD" */

/* One MIG instance: the part of a GPU in MIG mode that a program sees. */
struct gpu_mig_info {
    uint32_t gpu_instance_id, compute_instance_id;
    char uuid[96], name[96];
};
enum { GPU_MIG_MAX = 8 };

enum gpu_event_kind { GPU_EVENT_XID, GPU_EVENT_ECC_CORRECTED, GPU_EVENT_ECC_UNCORRECTED, GPU_EVENT_MIG_CHANGED };
struct gpu_event {
    enum gpu_event_kind kind;
    bool has_device, has_instance;
    uint32_t index; /* of the GPU, as its driver numbers it */
    uint32_t gpu_instance_id, compute_instance_id;
    uint64_t xid; /* of GPU_EVENT_XID */
};

#endif
