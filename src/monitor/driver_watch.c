/* SPDX-License-Identifier: Apache-2.0 */
#include "monitor/driver_watch.h"

#include "monitor/monitor_log.h"

#include <string.h>

enum { BLIND_SAMPLES_MAX = 3 };

static const int64_t pause_first_ns = 1000000000, pause_max_ns = 60000000000;

static void retry_plan(struct watched_driver *driver, int64_t now_ns)
{
    driver->retry_ns = now_ns + driver->pause_ns;
    driver->pause_ns = driver->pause_ns * 2 < pause_max_ns ? driver->pause_ns * 2 : pause_max_ns;
}

static void gone(struct watched_driver *driver, const struct problem *reason, int64_t now_ns)
{
    driver->is_gone = true;
    driver->reason = *reason;
    retry_plan(driver, now_ns);
}

/* Remembers the vendor's GPUs after its driver was opened. A GPU that does not even report its PCI address keeps its
 * previous identity. */
static bool gpus_take(struct driver_watch *watch, struct gpu_telemetry *gpu, enum gpu_vendor vendor)
{
    uint32_t count = gpu->device_count < GPU_DEVICES_MAX ? gpu->device_count : GPU_DEVICES_MAX;
    bool is_same = count == watch->gpu_count;
    for (uint32_t i = 0; i < count; i++) {
        struct watched_gpu *known = &watch->gpus[i];
        struct gpu_device_info *info = &gpu->devices[i].info;
        bool was_there = i < watch->gpu_count && known->info.vendor == info->vendor;
        if (!info->uuid[0] && !info->pci_bus_id[0] && was_there)
            *info = known->info;
        bool is_known = was_there && gpu_device_is_same(&known->info, info);
        is_same &= is_known;
        if (!is_known)
            *known = (struct watched_gpu){0};
        known->info = *info;
        if (info->vendor != vendor)
            continue;
        known->blind_samples = 0;
        gpu->devices[i].is_loss_reported = known->is_lost;
    }
    watch->gpu_count = count;
    if (vendor == GPU_VENDOR_NVIDIA) {
        nvml_events_listen(gpu->nvml);
        nvml_trim(gpu->nvml); /* no other code of this process uses NVML */
    }
    return is_same;
}

void driver_watch_start(struct driver_watch *watch, struct gpu_telemetry *gpu, const struct problem *problem,
                        int64_t now_ns)
{
    memset(watch, 0, sizeof *watch);
    for (unsigned vendor = 0; vendor < GPU_VENDOR_COUNT; vendor++) {
        watch->drivers[vendor].pause_ns = pause_first_ns;
        if (gpu_telemetry_has(gpu, vendor))
            gpus_take(watch, gpu, vendor);
        else if (gpu->choice.vendors >> vendor & 1)
            gone(&watch->drivers[vendor], problem, now_ns);
    }
}

static bool has_watched(const struct driver_watch *watch, enum gpu_vendor vendor)
{
    bool has_any = false;
    for (uint32_t i = 0; i < watch->gpu_count; i++)
        has_any |= watch->gpus[i].info.vendor == vendor;
    return has_any;
}

enum driver_news driver_watch_retry(struct driver_watch *watch, struct gpu_telemetry *gpu, enum gpu_vendor vendor,
                                    bool *has_other_gpus, int64_t now_ns)
{
    struct watched_driver *driver = &watch->drivers[vendor];
    *has_other_gpus = false;
    if (!driver->retry_ns || now_ns < driver->retry_ns)
        return DRIVER_NO_NEWS;
    struct problem problem = {""};
    bool was_gone = driver->is_gone;
    gpufl_status status = gpu_telemetry_reopen(gpu, vendor, &problem);
    if (status != GPUFL_OK) {
        gone(driver, &problem, now_ns);
        /* Only if it worked before: with a permanent mismatch the process would restart forever. */
        watch->needs_restart =
            vendor == GPU_VENDOR_NVIDIA && status == GPUFL_E_UNSUPPORTED && has_watched(watch, vendor);
        return was_gone ? DRIVER_NO_NEWS : DRIVER_GONE;
    }
    driver->is_gone = false;
    driver->retry_ns = 0;
    *has_other_gpus = !gpus_take(watch, gpu, vendor);
    return was_gone ? DRIVER_BACK : DRIVER_REOPENED;
}

/* Counts consecutive samples without any answer. True when every GPU of the vendor has reached the limit. */
static bool are_all_blind(struct driver_watch *watch, const struct gpu_telemetry *gpu, enum gpu_vendor vendor)
{
    uint32_t blind = 0, count = 0;
    for (uint32_t i = 0; i < watch->gpu_count; i++) {
        struct watched_gpu *known = &watch->gpus[i];
        if (known->info.vendor != vendor)
            continue;
        bool is_blind = !gpu->devices[i].is_lost && !gpu->devices[i].sample.known;
        known->blind_samples = is_blind ? known->blind_samples + 1 : 0;
        blind += known->blind_samples >= BLIND_SAMPLES_MAX;
        count++;
    }
    return blind && blind == count;
}

enum driver_news driver_watch_sampled(struct driver_watch *watch, struct gpu_telemetry *gpu, enum gpu_vendor vendor,
                                      struct recorder *recorder, int64_t now_ns)
{
    struct watched_driver *driver = &watch->drivers[vendor];
    uint32_t lost = 0;
    if (!gpu_telemetry_has(gpu, vendor))
        return DRIVER_NO_NEWS;
    if (are_all_blind(watch, gpu, vendor)) {
        gpu_telemetry_drop(gpu, vendor);
        struct problem reason;
        problem_set(&reason, GPUFL_E_NO_DRIVER, "%s",
                    vendor == GPU_VENDOR_AMD ? "no read from the amdgpu driver succeeds" : "no call to NVML succeeds");
        gone(driver, &reason, now_ns);
        return DRIVER_GONE;
    }
    for (uint32_t i = 0; i < watch->gpu_count; i++) {
        struct watched_gpu *known = &watch->gpus[i];
        if (known->info.vendor != vendor)
            continue;
        bool is_lost = gpu->devices[i].is_lost || known->blind_samples >= BLIND_SAMPLES_MAX;
        /* A short silence does not change the state. */
        if (is_lost != known->is_lost && (is_lost || !known->blind_samples)) {
            known->is_lost = is_lost;
            monitor_log_gpu(recorder, &known->info, is_lost);
        }
        lost += known->is_lost;
    }
    if (lost && !driver->retry_ns)
        retry_plan(driver, now_ns);
    else if (!lost)
        driver->retry_ns = 0, driver->pause_ns = pause_first_ns;
    return DRIVER_NO_NEWS;
}

void driver_watch_retry_now(struct driver_watch *watch)
{
    for (unsigned vendor = 0; vendor < GPU_VENDOR_COUNT; vendor++) {
        watch->drivers[vendor].pause_ns = pause_first_ns;
        if (watch->drivers[vendor].retry_ns)
            watch->drivers[vendor].retry_ns = 1;
    }
}
