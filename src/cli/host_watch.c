/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/host_watch.h"

#include "base/clock.h"

#include <stdlib.h>

#define DRIVER_RETRY_NS INT64_C(5000000000)

static void drivers_open(struct host_watch *watch)
{
    watch->problem.text[0] = '\0';
    (void)gpu_telemetry_open(&watch->gpu, (struct gpu_choice){watch->vendors, true}, &watch->problem);
    watch->opened_ns = clock_mono_ns();
}

struct host_watch *host_watch_open(unsigned vendors)
{
    struct host_watch *watch = calloc(1, sizeof *watch);
    if (!watch)
        return NULL;
    watch->vendors = vendors;
    process_table_init(&watch->processes, "");
    monitor_view_init(&watch->view);
    host_metrics_init(&watch->host, "");
    drivers_open(watch);
    return watch;
}

void host_watch_tick(struct host_watch *watch)
{
    bool is_gone = !gpu_telemetry_is_open(&watch->gpu);
    for (uint32_t i = 0; i < watch->gpu.device_count; i++)
        is_gone |= !gpu_telemetry_sample(&watch->gpu, i, true);
    if (is_gone && clock_mono_ns() - watch->opened_ns > DRIVER_RETRY_NS) {
        gpu_telemetry_close(&watch->gpu);
        drivers_open(watch);
        for (uint32_t i = 0; i < watch->gpu.device_count; i++)
            (void)gpu_telemetry_sample(&watch->gpu, i, true);
    }
    struct host_sample host = host_metrics_sample(&watch->host, clock_mono_ns());
    monitor_view_update(&watch->view, &watch->gpu, &host, &watch->processes);
}

void host_watch_close(struct host_watch *watch)
{
    if (!watch)
        return;
    gpu_telemetry_close(&watch->gpu);
    monitor_view_free(&watch->view);
    free(watch);
}
