/* SPDX-License-Identifier: Apache-2.0 */
/* The GPUs that NVML shows: their latest sample, and samples as log rows and
 * as the v1 JSON objects. Owned by the system sampler; not thread-safe. */
#ifndef GPUFL_CAPTURE_GPU_TELEMETRY_H
#define GPUFL_CAPTURE_GPU_TELEMETRY_H

#include "base/bytes.h"
#include "base/status.h"
#include "driver/nvml.h"

enum { GPU_PROCESSES_MAX = 128 }; /* of one GPU; the rest is left out */

struct gpu_mig {
    struct nvml_mig_info info;
    struct nvml_sample sample; /* the latest */
};

struct gpu_device {
    struct nvml_device_info info;
    struct nvml_sample sample; /* the latest; nothing known before the first */
    int64_t sampled_wall_ns;
    bool is_lost;      /* fell off the bus: never asked again */
    bool is_loss_told; /* its loss record is written */
    struct nvml_process processes[GPU_PROCESSES_MAX];
    int process_count; /* as many as there are, maybe more than fit; -1: not known */
    struct gpu_mig migs[NVML_MIG_MAX];
    uint32_t mig_count;
    bool has_new_migs; /* the list changed since its records were written */
};

struct gpu_telemetry {
    struct nvml *nvml; /* owned; NULL: no GPU data */
    struct gpu_device *devices;
    uint32_t device_count;
};

/* On failure the telemetry is empty and usable, and the problem says why there is no GPU data. */
gpufl_status gpu_telemetry_open(struct gpu_telemetry *telemetry, struct problem *problem);
void gpu_telemetry_close(struct gpu_telemetry *telemetry);
/* In a forked child: frees our memory and leaves the driver's handle alone. */
void gpu_telemetry_abandon(struct gpu_telemetry *telemetry);
/* Renews the device's sample and those of its MIG instances; false when it is lost, now or before. with_slow: also the
 * list of its MIG instances and processes. */
bool gpu_telemetry_sample(struct gpu_telemetry *telemetry, uint32_t index, bool with_slow);

/* Fills one row of device_metric_batch. */
void gpu_row_fill(int64_t *row, int64_t dt_ns, uint32_t device_id, const struct nvml_sample *sample);
/* Fills one row of mig_metric_batch. */
void gpu_mig_row_fill(int64_t *row, int64_t dt_ns, uint32_t device_id, const struct gpu_mig *mig);
/* One object of job_start's and system_start's "devices"; sample NULL: nothing known. */
void gpu_sample_json(struct bytes *out, const struct nvml_device_info *info, const struct nvml_sample *sample);
/* One object of job_start's "gpu_static_devices". */
void gpu_static_json(struct bytes *out, const struct nvml_device_info *info);

#endif
