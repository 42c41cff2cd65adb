/* SPDX-License-Identifier: Apache-2.0 */
/* AMD's GPUs of this machine and their telemetry, from what the amdgpu kernel
 * driver shows in /sys (no library is needed) and, where that lacks something,
 * from ROCm SMI. Not thread-safe per object: one sampler owns it. Files are opened
 * once and read in place; pcie_bw, which makes the driver wait for a second, is
 * never touched, and a GPU that sleeps is not woken. GPUFL_SYSFS_ROOT names
 * another directory in which sys, proc and usr lie. */
#ifndef GPUFL_DRIVER_AMDGPU_H
#define GPUFL_DRIVER_AMDGPU_H

#include "base/status.h"
#include "driver/gpu_sample.h"

struct amdgpu; /* opaque */
/* with_rocm_smi: it may be loaded when it is needed. It prints, so never in somebody else's process.
 * GPUFL_E_NO_DRIVER: there is no AMD GPU that the amdgpu driver runs. */
NODISCARD gpufl_status amdgpu_open(struct amdgpu **out, bool with_rocm_smi, struct problem *problem);
void amdgpu_close(struct amdgpu *amdgpu);
/* In a forked child: closes our files and leaves ROCm SMI alone. */
void amdgpu_abandon(struct amdgpu *amdgpu);
const char *amdgpu_driver_version(
    const struct amdgpu *amdgpu); /* of the module, or the kernel's when it is part of it */
uint32_t amdgpu_device_count(const struct amdgpu *amdgpu);
bool amdgpu_device_describe(const struct amdgpu *amdgpu, uint32_t index, struct gpu_device_info *info);
/* with_slow: also error counts, which ask the hardware. Rates need two calls. */
void amdgpu_device_sample(struct amdgpu *amdgpu, uint32_t index, bool with_slow, struct gpu_sample *sample);
/* Fills at most `capacity`; returns how many processes there are, or -1 when not available. */
int amdgpu_device_processes(struct amdgpu *amdgpu, uint32_t index, struct gpu_process *processes, int capacity);
/* Why gpu_metrics is not used for this GPU, in a sentence; "" when it is. */
const char *amdgpu_device_metrics_problem(const struct amdgpu *amdgpu, uint32_t index);

#endif
