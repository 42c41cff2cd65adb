/* SPDX-License-Identifier: Apache-2.0 */
/* The GPUs of this host, of all vendors whose driver is there, and their latest
 * sample. NVIDIA's come first, as NVML numbers them, then AMD's by their place on the
 * bus. While one vendor's driver is away its GPUs keep their numbers, as lost. Owned
 * by the system sampler; not thread-safe. */
#ifndef GPUFL_CAPTURE_GPU_TELEMETRY_H
#define GPUFL_CAPTURE_GPU_TELEMETRY_H

#include "base/status.h"
#include "driver/amdgpu.h"
#include "driver/nvml.h"

enum { GPU_PROCESSES_MAX = 128 }; /* of one GPU; the rest is left out */
enum { GPU_VENDORS_ALL = (1 << GPU_VENDOR_COUNT) - 1, GPU_DEVICES_MAX = 64 };

struct gpu_mig {
    struct gpu_mig_info info;
    struct gpu_sample sample; /* the latest */
};

struct gpu_device {
    struct gpu_device_info info;
    struct gpu_sample sample; /* the latest; nothing known before the first */
    int64_t sampled_wall_ns;
    bool is_lost;      /* fell off the bus: never asked again */
    bool is_loss_told; /* its loss record is written */
    struct gpu_process processes[GPU_PROCESSES_MAX];
    int process_count; /* as many as there are, maybe more than fit; -1: not known */
    struct gpu_mig migs[GPU_MIG_MAX];
    uint32_t mig_count;
    bool has_new_migs; /* the list changed since its records were written */
};

/* Whose GPUs are asked, and how. */
struct gpu_choice {
    unsigned vendors;   /* bit per enum gpu_vendor */
    bool with_rocm_smi; /* it may be loaded: only in our own process, for it prints */
};

struct gpu_telemetry {
    struct gpu_choice choice;
    struct nvml *nvml;  /* owned; NULL: no data of NVIDIA's GPUs */
    struct amdgpu *amd; /* owned; NULL: no data of AMD's GPUs */
    struct gpu_device *devices;
    uint32_t device_count;
};

/* On failure, which is that none of them has a GPU here, the telemetry is empty
 * and usable, and the problem says why there is no GPU data. */
gpufl_status gpu_telemetry_open(struct gpu_telemetry *telemetry, struct gpu_choice choice, struct problem *problem);
void gpu_telemetry_close(struct gpu_telemetry *telemetry);
/* In a forked child: frees our memory and leaves the drivers' handles alone. */
void gpu_telemetry_abandon(struct gpu_telemetry *telemetry);
bool gpu_telemetry_has(const struct gpu_telemetry *telemetry, enum gpu_vendor vendor);
static inline bool gpu_telemetry_is_open(const struct gpu_telemetry *telemetry)
{
    return telemetry->nvml || telemetry->amd;
}
/* "" when it is not known. */
const char *gpu_telemetry_driver_version(const struct gpu_telemetry *telemetry, enum gpu_vendor vendor);
/* Opens one vendor's driver anew and lists its GPUs again; the others' are not touched, but may get other numbers. On
 * failure the vendor's GPUs stay in the list, as lost. */
gpufl_status gpu_telemetry_reopen(struct gpu_telemetry *telemetry, enum gpu_vendor vendor, struct problem *problem);
/* Closes one vendor's driver; its GPUs stay in the list, as lost. */
void gpu_telemetry_drop(struct gpu_telemetry *telemetry, enum gpu_vendor vendor);
/* Renews the device's sample and those of its MIG instances; false when it is lost, now or before. with_slow: also the
 * list of its MIG instances and processes. */
bool gpu_telemetry_sample(struct gpu_telemetry *telemetry, uint32_t index, bool with_slow);

#endif
