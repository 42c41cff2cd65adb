/* SPDX-License-Identifier: Apache-2.0 */
/* The GPUs of this host, of all vendors whose driver is loaded, and their latest sample. NVIDIA's come first, in
 * NVML's order, then AMD's in bus order. While a vendor's driver is unavailable its GPUs keep their numbers and are
 * marked lost. Owned by the system sampler; not thread-safe. */
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
    struct gpu_sample sample; /* the latest; everything unknown before the first */
    int64_t sampled_wall_ns;
    bool is_lost;          /* fell off the bus: never sampled again */
    bool is_loss_reported; /* its loss record is written */
    struct gpu_process processes[GPU_PROCESSES_MAX];
    int process_count; /* the actual number, which may exceed the list; -1: not known */
    struct gpu_mig migs[GPU_MIG_MAX];
    uint32_t mig_count;
    bool has_new_migs; /* the list changed since its records were written */
};

/* Which GPUs are sampled, and how. */
struct gpu_choice {
    unsigned vendors;   /* bit per enum gpu_vendor */
    bool with_rocm_smi; /* rocm_smi may be loaded: only in our own process, since it prints */
};

struct gpu_telemetry {
    struct gpu_choice choice;
    struct nvml *nvml;  /* owned; NULL: NVIDIA GPUs are not sampled */
    struct amdgpu *amd; /* owned; NULL: AMD GPUs are not sampled */
    struct gpu_device *devices;
    uint32_t device_count;
};

/* Fails when no vendor has a GPU here. The telemetry is then empty and usable, and the problem has the reason. */
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
/* Reopens one vendor's driver and lists its GPUs again; other vendors' GPUs are not touched, but may be renumbered.
 * On failure the vendor's GPUs stay in the list, marked lost. */
gpufl_status gpu_telemetry_reopen(struct gpu_telemetry *telemetry, enum gpu_vendor vendor, struct problem *problem);
/* Closes one vendor's driver; its GPUs stay in the list, marked lost. */
void gpu_telemetry_drop(struct gpu_telemetry *telemetry, enum gpu_vendor vendor);
/* Updates the sample of the device and of its MIG instances; false: it is lost. with_slow: also updates the lists of
 * MIG instances and processes. */
bool gpu_telemetry_sample(struct gpu_telemetry *telemetry, uint32_t index, bool with_slow);

#endif
