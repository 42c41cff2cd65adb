/* SPDX-License-Identifier: Apache-2.0 */
/* Detects that a vendor's driver or a GPU stopped answering, and retries for each vendor separately, with a delay that
 * doubles from one second to one minute. Called by the monitor's thread. */
#ifndef GPUFL_MONITOR_DRIVER_WATCH_H
#define GPUFL_MONITOR_DRIVER_WATCH_H

#include "capture/gpu_telemetry.h"
#include "capture/recorder.h"

struct watched_gpu {
    struct gpu_device_info info;
    unsigned blind_samples; /* consecutive samples without any answer */
    bool is_lost;
};

struct watched_driver {
    bool is_gone;               /* the driver is closed */
    int64_t pause_ns, retry_ns; /* monotonic; retry_ns 0: no retry is due */
    struct problem reason;      /* why it is closed */
};

struct driver_watch {
    struct watched_driver drivers[GPU_VENDOR_COUNT];
    bool needs_restart;                       /* the driver was replaced, and this process cannot load the new NVML */
    struct watched_gpu gpus[GPU_DEVICES_MAX]; /* as last seen, by index */
    uint32_t gpu_count;
};

enum driver_news {
    DRIVER_NO_NEWS,
    DRIVER_GONE,     /* see reason */
    DRIVER_BACK,     /* reopened after DRIVER_GONE */
    DRIVER_REOPENED, /* reopened because of a lost GPU, without having been gone */
};

/* Call after opening the telemetry for the first time, even if that failed. */
void driver_watch_start(struct driver_watch *watch, struct gpu_telemetry *gpu, const struct problem *problem,
                        int64_t now_ns);
/* Call before each sample: reopens the vendor's driver when a retry is due. *has_other_gpus: the GPUs differ from
 * before. */
enum driver_news driver_watch_retry(struct driver_watch *watch, struct gpu_telemetry *gpu, enum gpu_vendor vendor,
                                    bool *has_other_gpus, int64_t now_ns);
/* Call after each sample: GPUs that were lost or came back become gpu_event records. When no GPU of the vendor answers
 * any more, its driver is closed. */
enum driver_news driver_watch_sampled(struct driver_watch *watch, struct gpu_telemetry *gpu, enum gpu_vendor vendor,
                                      struct recorder *recorder, int64_t now_ns);
void driver_watch_retry_now(struct driver_watch *watch); /* makes the next retry due immediately */

#endif
