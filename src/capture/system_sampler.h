/* SPDX-License-Identifier: Apache-2.0 */
/* Samples GPUs and host (/proc) on its own thread and writes
 * device_metric_batch, process_metric_batch and host_metric_batch lines, plus
 * system_start/system_stop. Idle (no wake-ups) while no window is open and the
 * policy is not continuous. */
#ifndef GPUFL_CAPTURE_SYSTEM_SAMPLER_H
#define GPUFL_CAPTURE_SYSTEM_SAMPLER_H

#include "base/bytes.h"
#include "base/status.h"
#include "base/watch.h"
#include "logfile/writer.h"

struct system_sampler; /* opaque */

struct system_sampler_options {
    struct log_writer *writer; /* borrowed; must outlive the sampler */
    const char *session_id, *app_name;
    unsigned interval_ms; /* 0: windows are marked, but nothing is sampled */
    bool is_continuous;
    bool use_nvidia, use_amd;
};
/* Without a GPU driver it still samples the host; gpu_problem then has the reason (else ""). */
NODISCARD gpufl_status system_sampler_start(struct system_sampler **out, const struct system_sampler_options *options,
                                            struct problem *gpu_problem);
/* Starts the thread. Call it once job_start is written: until then nothing is written, and windows and holds wait. */
NODISCARD gpufl_status system_sampler_run(struct system_sampler *sampler);
/* Takes a last sample, flushes, joins, frees; NULL is a no-op. WATCH_HUNG: its thread was abandoned in a call;
 * WATCH_BUSY: it may still use the writer. In both cases nothing is freed. */
enum watch_end system_sampler_stop(struct system_sampler *sampler);
void system_sampler_abandon(struct system_sampler *sampler); /* after fork in the child */
/* A named window: writes system_start/system_stop and keeps sampling between them. Any thread. */
void system_sampler_window(struct system_sampler *sampler, const char *name, bool is_start);
/* Automatic sampling during scopes: the number of threads inside an outermost scope changed. Any thread, lock-free,
 * no system call unless the sampler is idle. The sample after the last release is taken at the next tick. */
void system_sampler_hold(struct system_sampler *sampler);
void system_sampler_release(struct system_sampler *sampler);
int64_t system_sampler_cpu_ns(const struct system_sampler *sampler); /* as of the last tick */
/* Appends the v1 job_start members host, devices, gpu_static_devices, cuda_static_devices, rocm_static_devices
 * (,"host":{..},"devices":[..],...) from one fresh sample. */
void system_sampler_describe(struct system_sampler *sampler, struct bytes *out);
int system_sampler_cuda_version(const struct system_sampler *sampler); /* 13000 = 13.0; 0 unknown */
/* NVIDIA's, or AMD's if there is no NVIDIA GPU; "" unknown. */
const char *system_sampler_driver_version(const struct system_sampler *sampler);
/* The number of the AMD GPU, or GPU partition, at this bus address; false: telemetry does not list it, and device_id
 * is the first free number. */
struct amd_place {
    uint32_t domain, bus, device, partition;
};
bool system_sampler_find_amd(struct system_sampler *sampler, const struct amd_place *place, uint32_t *device_id);

#endif
