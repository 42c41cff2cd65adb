/* SPDX-License-Identifier: Apache-2.0 */
#include "monitor/view.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

/* Sampled at the slow interval: a reading stays valid until the next one. */
static const uint64_t slow_metrics = 1ull << GPU_ENERGY_UJ | 1ull << GPU_ECC_CORRECTED | 1ull << GPU_ECC_UNCORRECTED;

void monitor_view_init(struct monitor_view *view)
{
    memset(view, 0, sizeof *view);
    pthread_mutex_init(&view->mutex, NULL);
    struct host_identity identity;
    host_identity_read(&identity);
    snprintf(view->hostname, sizeof view->hostname, "%s", identity.hostname);
    view->started_wall_ns = clock_wall_ns();
    view->host = host_sample_unknown();
}

static void gpus_free(struct view_gpu *gpus, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        free(gpus[i].processes);
    free(gpus);
}

void monitor_view_free(struct monitor_view *view)
{
    gpus_free(view->gpus, view->gpu_count);
    pthread_mutex_destroy(&view->mutex);
}

static bool is_same_list(const struct monitor_view *view, const struct gpu_telemetry *gpu)
{
    bool is_same = view->gpu_count == gpu->device_count;
    for (uint32_t i = 0; i < gpu->device_count && is_same; i++)
        is_same = gpu_device_is_same(&view->gpus[i].info, &gpu->devices[i].info);
    return is_same;
}

/* While the driver is gone, the last known GPUs stay in the list, marked as down. */
static void list_renew(struct monitor_view *view, const struct gpu_telemetry *gpu)
{
    struct view_gpu *gpus = calloc(gpu->device_count, sizeof *gpus);
    if (!gpus)
        return;
    for (uint32_t i = 0; i < gpu->device_count; i++) {
        const struct gpu_device_info *info = &gpu->devices[i].info;
        for (uint32_t j = 0; j < view->gpu_count; j++)
            if ((info->uuid[0] || info->pci_bus_id[0]) && gpu_device_is_same(&view->gpus[j].info, info)) {
                gpus[i] = view->gpus[j];
                view->gpus[j].processes = NULL;
            }
    }
    gpus_free(view->gpus, view->gpu_count);
    view->gpus = gpus;
    view->gpu_count = gpu->device_count;
}

static void processes_renew(struct view_gpu *gpu, const struct gpu_device *device, struct process_table *processes)
{
    int known = device->process_count < GPU_PROCESSES_MAX ? device->process_count : GPU_PROCESSES_MAX;
    uint32_t count = known > 0 ? (uint32_t)known : 0;
    if (count > gpu->process_capacity) {
        struct view_process *grown = realloc(gpu->processes, count * sizeof *grown);
        if (!grown)
            return;
        gpu->processes = grown;
        gpu->process_capacity = count;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct process_identity *identity = process_table_find(processes, device->processes[i].pid);
        gpu->processes[i].use = device->processes[i];
        if (identity)
            gpu->processes[i].identity = *identity;
        else
            gpu->processes[i].identity = (struct process_identity){.pid = device->processes[i].pid};
    }
    gpu->process_count = count;
}

static void gpu_renew(struct view_gpu *gpu, const struct gpu_device *device, struct process_table *processes)
{
    struct gpu_sample before = gpu->sample;
    gpu->info = device->info;
    gpu->is_up = !device->is_lost && device->sample.known;
    gpu->sample = device->sample;
    /* Slow values are sampled together with the processes; a value that could not be read then is unknown. */
    bool is_slow_sample = processes != NULL;
    uint64_t kept = gpu->is_up && !is_slow_sample ? before.known & slow_metrics & ~device->sample.known : 0;
    for (unsigned metric = 0; metric < GPU_METRIC_COUNT; metric++)
        if (kept >> metric & 1)
            gpu->sample.values[metric] = before.values[metric];
    gpu->sample.known |= kept;
    gpu->mig_count = device->mig_count;
    memcpy(gpu->migs, device->migs, device->mig_count * sizeof *gpu->migs);
    if (device->process_count < 0)
        gpu->process_count = 0;
    else if (processes)
        processes_renew(gpu, device, processes);
}

static void drivers_renew(struct monitor_view *view, const struct gpu_telemetry *gpu)
{
    view->has_driver = gpu_telemetry_is_open(gpu);
    for (uint32_t i = 0; i < gpu->device_count; i++)
        view->has_driver &= gpu_telemetry_has(gpu, gpu->devices[i].info.vendor);
    for (unsigned vendor = 0; vendor < GPU_VENDOR_COUNT; vendor++)
        if (gpu_telemetry_has(gpu, vendor))
            snprintf(view->driver_versions[vendor], sizeof view->driver_versions[vendor], "%s",
                     gpu_telemetry_driver_version(gpu, vendor));
}

const char *monitor_view_driver_version(const struct monitor_view *view)
{
    const char *version = "";
    for (unsigned vendor = 0; vendor < GPU_VENDOR_COUNT && !*version; vendor++)
        version = view->driver_versions[vendor];
    return version;
}

void monitor_view_update(struct monitor_view *view, const struct gpu_telemetry *gpu, const struct host_sample *host,
                         struct process_table *processes)
{
    pthread_mutex_lock(&view->mutex);
    drivers_renew(view, gpu);
    if (gpu->device_count && !is_same_list(view, gpu))
        list_renew(view, gpu);
    if (processes)
        process_table_next_round(processes);
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        if (i < gpu->device_count) {
            gpu_renew(&view->gpus[i], &gpu->devices[i], processes);
        } else {
            view->gpus[i].is_up = false;
            view->gpus[i].sample.known = 0;
            view->gpus[i].process_count = view->gpus[i].mig_count = 0;
        }
    }
    view->host = *host;
    view->samples++;
    view->sampled_wall_ns = clock_wall_ns();
    view->sampled_mono_ns = clock_mono_ns();
    pthread_mutex_unlock(&view->mutex);
}

void monitor_view_xid(struct monitor_view *view, uint32_t index, uint64_t xid)
{
    pthread_mutex_lock(&view->mutex);
    if (index < view->gpu_count) {
        struct view_gpu *gpu = &view->gpus[index];
        uint32_t at = 0;
        while (at < gpu->xid_count && gpu->xids[at].number != xid)
            at++;
        if (at == gpu->xid_count && at < VIEW_XIDS_MAX)
            gpu->xids[gpu->xid_count++] = (struct view_xid){.number = xid};
        if (at < gpu->xid_count)
            gpu->xids[at].count++;
        gpu->xid_last = xid;
    }
    pthread_mutex_unlock(&view->mutex);
}
