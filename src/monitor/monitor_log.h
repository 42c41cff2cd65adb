/* SPDX-License-Identifier: Apache-2.0 */
/* The records that only a monitor writes: gpu_event and gpu_process. */
#ifndef GPUFL_MONITOR_MONITOR_LOG_H
#define GPUFL_MONITOR_MONITOR_LOG_H

#include "capture/gpu_telemetry.h"
#include "capture/recorder.h"
#include "monitor/process_table.h"

/* info NULL: the driver did not report which GPU. */
void monitor_log_event(struct recorder *recorder, const struct gpu_event *event, const struct gpu_device_info *info);
void monitor_log_gpu(struct recorder *recorder, const struct gpu_device_info *info, bool is_lost);
void monitor_log_driver(struct recorder *recorder, bool is_back, const char *reason);
/* Records the processes of all GPUs that were not yet recorded in this session. */
void monitor_log_processes(struct recorder *recorder, const struct gpu_telemetry *gpu, struct process_table *processes);

#endif
