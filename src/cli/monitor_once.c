/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/message.h"
#include "analysis/quantity.h"
#include "cli/command.h"
#include "capture/gpu_rows.h"
#include "cli/host_watch.h"
#include "cli/monitor.h"
#include "format/batch.h"
#include "format/json.h"
#include "monitor/clock_event.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

static void cell_json(struct bytes *out, const char *key, int64_t cell)
{
    json_key(out, key);
    if (cell == CELL_UNKNOWN)
        json_text(out, NULL);
    else
        json_int(out, cell);
}

static void text_json(struct bytes *out, const char *key, const char *text)
{
    json_key(out, key);
    json_text(out, *text ? text : NULL);
}

static void processes_json(struct bytes *out, const struct view_gpu *gpu)
{
    json_key(out, "processes");
    bytes_append_char(out, '[');
    for (uint32_t i = 0; i < gpu->process_count; i++) {
        const struct view_process *process = &gpu->processes[i];
        bytes_append_text(out, i ? ",{" : "{");
        cell_json(out, "pid", process->use.pid);
        text_json(out, "name", process->identity.name);
        cell_json(out, "used_mib",
                  process->use.has_used_bytes ? (int64_t)(process->use.used_bytes >> 20) : CELL_UNKNOWN);
        text_json(out, "container_id", process->identity.cgroup.container_id);
        text_json(out, "container_runtime", process->identity.cgroup.runtime);
        text_json(out, "pod_uid", process->identity.cgroup.pod_uid);
        cell_json(out, "gpu_instance_id",
                  process->use.has_gpu_instance ? (int64_t)process->use.gpu_instance_id : CELL_UNKNOWN);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
}

/* Values have the names and units that they have in the log. */
static void gpu_json(struct bytes *out, const struct view_gpu *gpu)
{
    const struct record_info *record = &record_catalogue[RECORD_DEVICE_METRIC_BATCH];
    int64_t row[DEVICE_METRIC_COLUMN_COUNT];
    gpu_row_fill(row, 0, gpu->info.index, &gpu->sample);
    bytes_append_char(out, '{');
    cell_json(out, "device_id", gpu->info.index);
    text_json(out, "vendor", gpu_vendor_name(gpu->info.vendor));
    text_json(out, "name", gpu->info.name);
    text_json(out, "uuid", gpu->info.uuid);
    text_json(out, "pci_bus_id", gpu->info.pci_bus_id);
    for (unsigned i = 0; i < record->column_count; i++)
        if (i != DEVICE_METRIC_DT_NS && i != DEVICE_METRIC_DEVICE_ID)
            cell_json(out, record->columns[i].name, row[i]);
    json_key(out, "mig");
    bytes_append_char(out, '[');
    for (uint32_t i = 0; i < gpu->mig_count; i++) {
        const struct record_info *mig_record = &record_catalogue[RECORD_MIG_METRIC_BATCH];
        int64_t mig_row[MIG_METRIC_COLUMN_COUNT];
        gpu_mig_row_fill(mig_row, 0, gpu->info.index, &gpu->migs[i]);
        bytes_append_text(out, i ? ",{" : "{");
        text_json(out, "uuid", gpu->migs[i].info.uuid);
        text_json(out, "name", gpu->migs[i].info.name);
        for (unsigned j = MIG_METRIC_GPU_INSTANCE_ID; j < mig_record->column_count; j++)
            cell_json(out, mig_record->columns[j].name, mig_row[j]);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
    processes_json(out, gpu);
    bytes_append_char(out, '}');
}

void host_watch_json(struct bytes *out, const struct host_watch *watch)
{
    const struct monitor_view *view = &watch->view;
    cell_json(out, "ts_ns", view->sampled_wall_ns);
    text_json(out, "hostname", view->hostname);
    text_json(out, "driver_version", monitor_view_driver_version(view));
    text_json(out, "gpu_problem", watch->problem.text);
    cell_json(out, "cpu_pct_x100", view->host.cpu_pct_x100);
    cell_json(out, "ram_used_mib", view->host.ram_used_mib);
    cell_json(out, "ram_total_mib", view->host.ram_total_mib);
    json_key(out, "gpus");
    bytes_append_char(out, '[');
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        if (i)
            bytes_append_char(out, ',');
        gpu_json(out, &view->gpus[i]);
    }
    bytes_append_char(out, ']');
}

/* "  12 W" or "   - W": what is not known has no number. */
static void value_text(struct bytes *out, const char *name, const struct gpu_sample *sample, enum gpu_metric metric,
                       double divisor, int decimals, const char *unit)
{
    if (gpu_sample_knows(sample, metric))
        bytes_append_format(out, "  %s %.*f %s", name, decimals, (double)sample->values[metric] / divisor, unit);
    else
        bytes_append_format(out, "  %s – %s", name, unit);
}

/* Any user names a process. */
static void name_text(struct bytes *out, const char *name)
{
    text_escape(out, name, strlen(name));
}

static void gpu_text(struct bytes *out, const struct view_gpu *gpu)
{
    const struct gpu_sample *sample = &gpu->sample;
    const double gib = 1073741824;
    const bool is_nvidia = gpu->info.vendor == GPU_VENDOR_NVIDIA;
    bytes_append_format(out, "GPU %u  ", gpu->info.index);
    name_text(out, gpu->info.name);
    bytes_append_text(out, "  ");
    name_text(out, gpu->info.uuid);
    bytes_append_text(out, "\n  ");
    value_text(out, "busy", sample, GPU_UTIL_PCT, 1, 0, "%");
    if (is_nvidia)
        value_text(out, "SM active", sample, GPU_SM_ACTIVE_BP, 100, 1, "%");
    value_text(out, "memory", sample, GPU_MEM_USED_BYTES, gib, 1, "GiB");
    value_text(out, "of", sample, GPU_MEM_TOTAL_BYTES, gib, 1, "GiB");
    value_text(out, "power", sample, GPU_POWER_MW, 1000, 0, "W");
    value_text(out, "of", sample, GPU_POWER_LIMIT_MW, 1000, 0, "W");
    value_text(out, "temperature", sample, GPU_TEMP_C, 1, 0, "°C");
    if (!is_nvidia)
        value_text(out, "junction", sample, GPU_TEMP_JUNCTION_C, 1, 0, "°C");
    value_text(out, is_nvidia ? "SM clock" : "clock", sample, GPU_CLOCK_SM_MHZ, 1, 0, "MHz");
    bytes_append_char(out, '\n');
    uint64_t reasons = gpu_sample_knows(sample, GPU_THROTTLE_REASONS) ? sample->values[GPU_THROTTLE_REASONS] : 0;
    for (size_t i = 0; i < CLOCK_EVENT_COUNT; i++)
        if (reasons & clock_events[i].bit)
            bytes_append_format(out, "    clocks: %s\n", clock_events[i].name);
    for (uint32_t i = 0; i < gpu->mig_count; i++) {
        const struct gpu_mig *mig = &gpu->migs[i];
        bytes_append_format(out, "    MIG %u/%u  ", mig->info.gpu_instance_id, mig->info.compute_instance_id);
        name_text(out, mig->info.name);
        value_text(out, "memory", &mig->sample, GPU_MEM_USED_BYTES, gib, 1, "GiB");
        value_text(out, "SM active", &mig->sample, GPU_SM_ACTIVE_BP, 100, 1, "%");
        bytes_append_char(out, '\n');
    }
    for (uint32_t i = 0; i < gpu->process_count; i++) {
        const struct view_process *process = &gpu->processes[i];
        bytes_append_format(out, "    process %u  ", process->use.pid);
        name_text(out, process->identity.name[0] ? process->identity.name : "(unknown)");
        if (process->use.has_used_bytes)
            bytes_append_format(out, "  memory %.1f GiB", (double)process->use.used_bytes / gib);
        if (process->identity.cgroup.container_id[0])
            bytes_append_format(out, "  container %.12s", process->identity.cgroup.container_id);
        if (process->identity.cgroup.pod_uid[0])
            bytes_append_format(out, "  pod %s", process->identity.cgroup.pod_uid);
        bytes_append_char(out, '\n');
    }
}

static void view_text(struct bytes *out, const struct monitor_view *view, const char *gpu_problem)
{
    name_text(out, view->hostname);
    if (view->host.cpu_pct_x100 != CELL_UNKNOWN)
        bytes_append_format(out, "  CPU %.1f %%", (double)view->host.cpu_pct_x100 / 100);
    if (view->host.ram_used_mib != CELL_UNKNOWN)
        bytes_append_format(out, "  memory %.1f of %.1f GiB", (double)view->host.ram_used_mib / 1024,
                            (double)view->host.ram_total_mib / 1024);
    for (unsigned vendor = 0; vendor < GPU_VENDOR_COUNT; vendor++)
        if (view->driver_versions[vendor][0])
            bytes_append_format(out, "  %s driver %s", gpu_vendor_name(vendor), view->driver_versions[vendor]);
    bytes_append_char(out, '\n');
    for (uint32_t i = 0; i < view->gpu_count; i++)
        gpu_text(out, &view->gpus[i]);
    if (*gpu_problem)
        bytes_append_format(out, "no GPUs: %s\n", gpu_problem);
}

int monitor_once(bool is_json, unsigned vendors)
{
    struct bytes out = {0};
    struct host_watch *watch = host_watch_open(vendors);
    if (!watch) {
        command_error("monitor", "out of memory");
        return EXIT_ENVIRONMENT;
    }
    host_watch_tick(watch);
    nanosleep(&(struct timespec){.tv_nsec = HOST_WATCH_PAUSE_MS * 1000000L}, NULL);
    host_watch_tick(watch);
    if (is_json) {
        bytes_append_char(&out, '{');
        host_watch_json(&out, watch);
        bytes_append_text(&out, "}\n");
        fwrite(out.data, 1, out.size, stdout);
    } else {
        view_text(&out, &watch->view, watch->problem.text);
        message_write(stdout, bytes_text(&out), MESSAGE_INDENT);
    }
    bytes_free(&out);
    host_watch_close(watch);
    return EXIT_GOOD;
}
