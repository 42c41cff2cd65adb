/* SPDX-License-Identifier: Apache-2.0 */
#include "monitor/driver_watch.h"

#include "monitor/monitor_log.h"

#include <string.h>

enum { BLIND_BEATS_MAX = 3 };

static const int64_t pause_first_ns = 1000000000, pause_max_ns = 60000000000;

static void retry_plan(struct driver_watch *watch, int64_t now_ns)
{
    watch->retry_ns = now_ns + watch->pause_ns;
    watch->pause_ns = watch->pause_ns * 2 < pause_max_ns ? watch->pause_ns * 2 : pause_max_ns;
}

static void gone(struct driver_watch *watch, const struct problem *reason, int64_t now_ns)
{
    watch->is_gone = true;
    watch->reason = *reason;
    retry_plan(watch, now_ns);
}

/* Remembers who is there. A GPU that does not even tell its name keeps the one it had. */
static bool gpus_take(struct driver_watch *watch, struct gpu_telemetry *gpu)
{
    uint32_t count = gpu->device_count < DRIVER_WATCH_GPUS_MAX ? gpu->device_count : DRIVER_WATCH_GPUS_MAX;
    bool is_same = count == watch->gpu_count;
    for (uint32_t i = 0; i < count; i++) {
        struct watched_gpu *known = &watch->gpus[i];
        struct nvml_device_info *info = &gpu->devices[i].info;
        if (!info->uuid[0] && i < watch->gpu_count)
            *info = known->info;
        bool is_known = i < watch->gpu_count && !strcmp(known->info.uuid, info->uuid);
        is_same &= is_known;
        if (!is_known)
            *known = (struct watched_gpu){0};
        known->info = *info;
        known->blind_beats = 0;
        gpu->devices[i].is_loss_told = known->is_lost;
    }
    watch->gpu_count = count;
    nvml_events_listen(gpu->nvml);
    return is_same;
}

void driver_watch_start(struct driver_watch *watch, struct gpu_telemetry *gpu, const struct problem *problem,
                        int64_t now_ns)
{
    memset(watch, 0, sizeof *watch);
    watch->pause_ns = pause_first_ns;
    if (gpu->nvml)
        gpus_take(watch, gpu);
    else
        gone(watch, problem, now_ns);
}

enum driver_news driver_watch_tend(struct driver_watch *watch, struct gpu_telemetry *gpu, bool *has_other_gpus,
                                   int64_t now_ns)
{
    *has_other_gpus = false;
    if (!watch->retry_ns || now_ns < watch->retry_ns)
        return DRIVER_NO_NEWS;
    struct problem problem = {""};
    bool was_gone = watch->is_gone;
    gpu_telemetry_close(gpu);
    gpufl_status status = gpu_telemetry_open(gpu, &problem);
    if (status != GPUFL_OK) {
        gone(watch, &problem, now_ns);
        /* Only when it worked before: a machine that never matched would restart for ever. */
        watch->needs_restart = status == GPUFL_E_UNSUPPORTED && watch->gpu_count > 0;
        return was_gone ? DRIVER_NO_NEWS : DRIVER_GONE;
    }
    watch->is_gone = false;
    watch->retry_ns = 0;
    *has_other_gpus = !gpus_take(watch, gpu);
    return was_gone ? DRIVER_BACK : DRIVER_REOPENED;
}

enum driver_news driver_watch_sampled(struct driver_watch *watch, struct gpu_telemetry *gpu, struct recorder *recorder,
                                      int64_t now_ns)
{
    uint32_t blind = 0, lost = 0;
    if (!gpu->nvml)
        return DRIVER_NO_NEWS;
    for (uint32_t i = 0; i < watch->gpu_count; i++) {
        struct watched_gpu *known = &watch->gpus[i];
        bool is_blind = !gpu->devices[i].is_lost && !gpu->devices[i].sample.known;
        known->blind_beats = is_blind ? known->blind_beats + 1 : 0;
        blind += known->blind_beats >= BLIND_BEATS_MAX;
    }
    if (blind && blind == watch->gpu_count) {
        gpu_telemetry_close(gpu);
        gone(watch, &(struct problem){"NVML answers none of its calls"}, now_ns);
        return DRIVER_GONE;
    }
    for (uint32_t i = 0; i < watch->gpu_count; i++) {
        struct watched_gpu *known = &watch->gpus[i];
        bool is_lost = gpu->devices[i].is_lost || known->blind_beats >= BLIND_BEATS_MAX;
        /* One that is silent for a moment is what it was. */
        if (is_lost != known->is_lost && (is_lost || !known->blind_beats)) {
            known->is_lost = is_lost;
            monitor_log_gpu(recorder, &known->info, is_lost);
        }
        lost += known->is_lost;
    }
    if (lost && !watch->retry_ns)
        retry_plan(watch, now_ns);
    else if (!lost)
        watch->retry_ns = 0, watch->pause_ns = pause_first_ns;
    return DRIVER_NO_NEWS;
}

void driver_watch_hurry(struct driver_watch *watch)
{
    watch->pause_ns = pause_first_ns;
    if (watch->retry_ns)
        watch->retry_ns = 1;
}
