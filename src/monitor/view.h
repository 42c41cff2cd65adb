/* SPDX-License-Identifier: Apache-2.0 */
/* A monitor's current values as plain data, from which pages and exports are rendered without waiting for the driver.
 * The monitor updates it after each sample; readers must hold its lock. */
#ifndef GPUFL_MONITOR_VIEW_H
#define GPUFL_MONITOR_VIEW_H

#include "capture/gpu_telemetry.h"
#include "capture/host_metrics.h"
#include "monitor/process_table.h"

#include <pthread.h>

enum { VIEW_XIDS_MAX = 16 };

struct view_process {
    struct process_identity identity;
    struct gpu_process use;
};

struct view_xid {
    uint64_t number, count;
};

struct view_gpu {
    struct gpu_device_info info;
    bool is_up; /* answered the latest sample */
    struct gpu_sample sample;
    struct view_process *processes; /* owned; [process_capacity] */
    uint32_t process_count, process_capacity;
    struct gpu_mig migs[GPU_MIG_MAX];
    uint32_t mig_count;
    struct view_xid xids[VIEW_XIDS_MAX]; /* since the monitor's start; kinds beyond the limit are only in the log */
    uint32_t xid_count;
    uint64_t xid_last; /* 0: none yet */
};

struct monitor_view {
    pthread_mutex_t mutex;
    char hostname[256], driver_versions[GPU_VENDOR_COUNT][80]; /* "": not known */
    int64_t started_wall_ns, sampled_wall_ns, sampled_mono_ns; /* 0: not yet */
    /* whether the drivers of all GPUs seen so far are open */
    bool has_driver;
    uint64_t samples, sessions, driver_losses;
    struct host_sample host;
    struct view_gpu *gpus; /* owned */
    uint32_t gpu_count;
};

void monitor_view_init(struct monitor_view *view);
void monitor_view_free(struct monitor_view *view);
/* Copies the latest sample. processes identifies the processes; NULL: they were not sampled, and the previous list
 * stays. Counts and slow values of a GPU that was there before are kept. Takes the lock. */
void monitor_view_update(struct monitor_view *view, const struct gpu_telemetry *gpu, const struct host_sample *host,
                         struct process_table *processes);
/* Counts an event of GPU_EVENT_XID. Takes the lock. */
void monitor_view_xid(struct monitor_view *view, uint32_t index, uint64_t xid);
/* Of the first vendor whose driver reports it; "": none does. */
const char *monitor_view_driver_version(const struct monitor_view *view);

#endif
