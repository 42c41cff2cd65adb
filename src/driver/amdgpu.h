/* SPDX-License-Identifier: Apache-2.0 */
/* AMD's GPUs of this machine and their telemetry, from the amdgpu kernel driver's files in /sys (no library is
 * needed) and, for missing values, from ROCm SMI. Not thread-safe per object: one sampler owns it. Files are opened
 * once and reread in place; pcie_bw, which blocks in the driver for a second, is never read, and a sleeping GPU is
 * not woken. GPUFL_SYSFS_ROOT names another directory that contains sys, proc and usr. */
#ifndef GPUFL_DRIVER_AMDGPU_H
#define GPUFL_DRIVER_AMDGPU_H

#include "base/status.h"
#include "driver/gpu_sample.h"

struct amdgpu; /* opaque */
/* with_rocm_smi: the library may be loaded when it is needed. It prints, so it is never loaded into the user's
 * process. GPUFL_E_NO_DRIVER: there is no AMD GPU with the amdgpu driver. */
NODISCARD gpufl_status amdgpu_open(struct amdgpu **out, bool with_rocm_smi, struct problem *problem);
void amdgpu_close(struct amdgpu *amdgpu);
/* In a forked child: closes our files and does not call ROCm SMI. */
void amdgpu_abandon(struct amdgpu *amdgpu);
const char *amdgpu_driver_version(
    const struct amdgpu *amdgpu); /* of the module, or the kernel's if the driver is built in */
uint32_t amdgpu_device_count(const struct amdgpu *amdgpu);
bool amdgpu_device_describe(const struct amdgpu *amdgpu, uint32_t index, struct gpu_device_info *info);
/* with_slow: also error counts, which query the hardware. Rates need two calls. */
void amdgpu_device_sample(struct amdgpu *amdgpu, uint32_t index, bool with_slow, struct gpu_sample *sample);
/* Fills at most `capacity`; returns how many processes there are, or -1 if unavailable. */
int amdgpu_device_processes(struct amdgpu *amdgpu, uint32_t index, struct gpu_process *processes, int capacity);
/* The reason why gpu_metrics is not used for this GPU; "" if it is. */
const char *amdgpu_device_metrics_problem(const struct amdgpu *amdgpu, uint32_t index);

#endif
