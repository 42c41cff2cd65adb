/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of GPUs as log rows and as the v1 JSON objects. Plain functions. */
#ifndef GPUFL_CAPTURE_GPU_ROWS_H
#define GPUFL_CAPTURE_GPU_ROWS_H

#include "base/bytes.h"
#include "capture/gpu_telemetry.h"

/* Fills one row of device_metric_batch. */
void gpu_row_fill(int64_t *row, int64_t dt_ns, uint32_t device_id, const struct gpu_sample *sample);
/* Fills one row of mig_metric_batch. */
void gpu_mig_row_fill(int64_t *row, int64_t dt_ns, uint32_t device_id, const struct gpu_mig *mig);
/* One object of job_start's and system_start's "devices"; sample NULL: nothing known. */
void gpu_sample_json(struct bytes *out, const struct gpu_device_info *info, const struct gpu_sample *sample);
/* One object of job_start's "gpu_static_devices". */
void gpu_static_json(struct bytes *out, const struct gpu_device_info *info);

#endif
