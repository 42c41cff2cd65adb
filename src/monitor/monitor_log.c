/* SPDX-License-Identifier: Apache-2.0 */
#include "monitor/monitor_log.h"

#include "base/clock.h"
#include "format/json.h"

#include <stdio.h>

static void member_number(struct bytes *line, const char *key, bool is_known, uint64_t value)
{
    json_key(line, key);
    if (is_known)
        json_uint(line, value);
    else
        json_text(line, NULL);
}

static void member_text(struct bytes *line, const char *key, const char *text)
{
    json_key(line, key);
    json_text(line, *text ? text : NULL);
}

static void event_write(struct recorder *recorder, const char *kind, const struct gpu_device_info *info,
                        const struct gpu_event *event, const char *message)
{
    struct bytes *line = recorder_begin(recorder, RECORD_GPU_EVENT);
    json_key(line, "ts_ns");
    json_int(line, clock_wall_ns());
    member_text(line, "kind", kind);
    member_number(line, "device_id", info != NULL, info ? info->index : 0);
    member_text(line, "uuid", info ? info->uuid : "");
    member_number(line, "xid", event && event->kind == GPU_EVENT_XID, event ? event->xid : 0);
    member_number(line, "gpu_instance_id", event && event->has_instance, event ? event->gpu_instance_id : 0);
    member_number(line, "compute_instance_id", event && event->has_instance, event ? event->compute_instance_id : 0);
    member_text(line, "message", message);
    recorder_end(recorder, RECORD_GPU_EVENT);
}

void monitor_log_event(struct recorder *recorder, const struct gpu_event *event, const struct gpu_device_info *info)
{
    static const char *const kinds[] = {[GPU_EVENT_XID] = "xid",
                                        [GPU_EVENT_ECC_CORRECTED] = "ecc_corrected",
                                        [GPU_EVENT_ECC_UNCORRECTED] = "ecc_uncorrected",
                                        [GPU_EVENT_MIG_CHANGED] = "mig_changed"};
    event_write(recorder, kinds[event->kind], info, event, "");
}

void monitor_log_gpu(struct recorder *recorder, const struct gpu_device_info *info, bool is_lost)
{
    event_write(recorder, is_lost ? "gpu_lost" : "gpu_back", info, NULL,
                is_lost ? "the GPU does not answer; its driver is reopened until it does" : "the GPU answers again");
}

void monitor_log_driver(struct recorder *recorder, bool is_back, const char *reason)
{
    event_write(recorder, is_back ? "driver_back" : "driver_lost", NULL, NULL, reason);
}

static void process_write(struct recorder *recorder, const struct process_identity *identity)
{
    struct bytes *line = recorder_begin(recorder, RECORD_GPU_PROCESS);
    json_key(line, "ts_ns");
    json_int(line, clock_wall_ns());
    member_number(line, "pid", true, identity->pid);
    member_text(line, "name", identity->name);
    member_text(line, "container_id", identity->cgroup.container_id);
    member_text(line, "container_runtime", identity->cgroup.runtime);
    member_text(line, "pod_uid", identity->cgroup.pod_uid);
    recorder_end(recorder, RECORD_GPU_PROCESS);
}

void monitor_log_processes(struct recorder *recorder, const struct gpu_telemetry *gpu, struct process_table *processes)
{
    for (uint32_t i = 0; i < gpu->device_count; i++) {
        const struct gpu_device *device = &gpu->devices[i];
        for (int j = 0; j < device->process_count && j < GPU_PROCESSES_MAX; j++) {
            const struct process_identity *identity = process_table_find(processes, device->processes[j].pid);
            if (identity && process_table_mark_recorded(processes, identity))
                process_write(recorder, identity);
        }
    }
}
