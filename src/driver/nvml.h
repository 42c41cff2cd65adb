/* SPDX-License-Identifier: Apache-2.0 */
/* NVML: NVIDIA's GPUs of this machine and their telemetry. Not thread-safe per object: one sampler owns it. Calls
 * known to block (PCIe throughput: 20 ms) are never used; slow ones (energy: 3 ms) are made at a longer interval. */
#ifndef GPUFL_DRIVER_NVML_H
#define GPUFL_DRIVER_NVML_H

#include "base/status.h"
#include "driver/gpu_sample.h"

struct nvml; /* opaque */
/* GPUFL_E_UNSUPPORTED: NVML does not match the running driver, or functions are missing. */
NODISCARD gpufl_status nvml_open(struct nvml **out, struct problem *problem);
void nvml_close(struct nvml *nvml);
/* library_trim of NVML: only when nobody else can be using it. */
void nvml_trim(const struct nvml *nvml);
const char *nvml_driver_version(const struct nvml *nvml);
int nvml_cuda_driver_version(const struct nvml *nvml);
uint32_t nvml_device_count(const struct nvml *nvml);
bool nvml_device_describe(struct nvml *nvml, uint32_t index, struct gpu_device_info *info);
/* with_slow: also the millisecond-class values (energy, throttle counters). Rates need two calls. */
void nvml_device_sample(struct nvml *nvml, uint32_t index, bool with_slow, struct gpu_sample *sample);
/* Fills at most `capacity`; returns how many processes there are, or -1 if unavailable. */
int nvml_device_processes(struct nvml *nvml, uint32_t index, struct gpu_process *processes, int capacity);

/* Lists the MIG instances again; at most GPU_MIG_MAX. 0: none, or not in MIG mode. */
uint32_t nvml_device_mig_list(struct nvml *nvml, uint32_t index, struct gpu_mig_info infos[GPU_MIG_MAX]);
/* Memory of the instance at `position` of the last list, and the hardware counters of its GPU instance. */
void nvml_device_mig_sample(struct nvml *nvml, uint32_t index, uint32_t position, struct gpu_sample *sample);
/* Starts listening for Xid, ECC and MIG events; false when no GPU offers them. */
bool nvml_events_listen(struct nvml *nvml);
/* The next event; false: none. Never waits. */
bool nvml_events_take(struct nvml *nvml, struct gpu_event *event);

#endif
