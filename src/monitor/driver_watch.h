/* SPDX-License-Identifier: Apache-2.0 */
/* Notices that a vendor's driver or a GPU stopped answering, and tries again: with
 * a pause that doubles from one second to one minute, for each vendor on its own.
 * The monitor's thread. */
#ifndef GPUFL_MONITOR_DRIVER_WATCH_H
#define GPUFL_MONITOR_DRIVER_WATCH_H

#include "capture/gpu_telemetry.h"
#include "capture/recorder.h"

struct watched_gpu {
    struct gpu_device_info info;
    unsigned blind_beats; /* samples in a row without any answer */
    bool is_lost;
};

struct watched_driver {
    bool is_gone;               /* it is closed */
    int64_t pause_ns, retry_ns; /* monotonic; retry_ns 0: nothing to try */
    struct problem reason;      /* why it is gone */
};

struct driver_watch {
    struct watched_driver drivers[GPU_VENDOR_COUNT];
    bool needs_restart;                       /* the driver was replaced: this process cannot load its NVML any more */
    struct watched_gpu gpus[GPU_DEVICES_MAX]; /* as they were last there, by index */
    uint32_t gpu_count;
};

enum driver_news {
    DRIVER_NO_NEWS,
    DRIVER_GONE,     /* reason says why */
    DRIVER_BACK,     /* after it was gone */
    DRIVER_REOPENED, /* for the sake of a lost GPU; it never was gone */
};

/* The telemetry was opened for the first time, or could not be. */
void driver_watch_start(struct driver_watch *watch, struct gpu_telemetry *gpu, const struct problem *problem,
                        int64_t now_ns);
/* Before a sample: opens the vendor's driver again when it is time. *has_other_gpus: not the ones from before. */
enum driver_news driver_watch_tend(struct driver_watch *watch, struct gpu_telemetry *gpu, enum gpu_vendor vendor,
                                   bool *has_other_gpus, int64_t now_ns);
/* After a sample: GPUs that were lost or came back become gpu_event records. When none of the vendor's answers any
 * more, its driver is closed. */
enum driver_news driver_watch_sampled(struct driver_watch *watch, struct gpu_telemetry *gpu, enum gpu_vendor vendor,
                                      struct recorder *recorder, int64_t now_ns);
void driver_watch_hurry(struct driver_watch *watch); /* no more pause before the next try */

#endif
