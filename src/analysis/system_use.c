/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of GPU and host samples. */
#include "analysis/analysis.h"

#include <stdlib.h>

/* NVML's clocks-event bits, from bit 0, then those that only AMD has. */
const struct throttle_reason throttle_reasons[throttle_bits] = {
    {"gpu_idle", "idle", false},
    {"applications_clocks", "clocks set by an administrator", false},
    {"sw_power_cap", "power limit", true},
    {"hw_slowdown", "hardware slowdown", true},
    {"sync_boost", "sync boost", false},
    {"sw_thermal", "temperature limit", true},
    {"hw_thermal", "hardware temperature limit", true},
    {"hw_power_brake", "external power brake", true},
    {"display_clocks", "display clocks", false},
    {"current_limit", "current limit", true},
};

static void summary_add(struct metric_summary *summary, int64_t value)
{
    if (value < 0) /* unknown, or impossible for all of these metrics */
        return;
    if (!summary->count++) {
        summary->first = summary->min = summary->max = value;
        summary->mean = 0;
    }
    summary->last = value;
    summary->min = value < summary->min ? value : summary->min;
    summary->max = value > summary->max ? value : summary->max;
    summary->mean += ((double)value - summary->mean) / (double)summary->count;
}

static void table_row(const struct metric_table *table, size_t row, struct metric_summary *summaries)
{
    for (unsigned i = 1; i < record_catalogue[table->type].column_count; i++)
        if (table->columns[i])
            summary_add(&summaries[i], table->columns[i][row]);
}

enum { devices_max = 256, processes_max = 256 };

static struct device_use *device_of(struct analysis *analysis, int64_t device)
{
    for (size_t i = 0; i < analysis->system_count; i++)
        if (analysis->system[i].device == device)
            return &analysis->system[i];
    if (analysis->system_count == devices_max)
        return NULL;
    struct device_use *grown = realloc(analysis->system, (analysis->system_count + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    analysis->system = grown;
    memset(&grown[analysis->system_count], 0, sizeof *grown);
    grown[analysis->system_count].device = device;
    return &grown[analysis->system_count++];
}

static int device_compare(const void *left, const void *right)
{
    const struct device_use *a = left, *b = right;
    return a->device < b->device ? -1 : a->device > b->device;
}

/* Processes beyond the limit are ignored; sessions of one program see only a few. */
static struct process_use *process_of(struct analysis *analysis, int64_t device, int64_t pid)
{
    for (size_t i = 0; i < analysis->process_count; i++)
        if (analysis->processes[i].device == device && analysis->processes[i].pid == pid)
            return &analysis->processes[i];
    if (!analysis->processes)
        analysis->processes = calloc(processes_max, sizeof *analysis->processes);
    if (!analysis->processes || analysis->process_count == processes_max)
        return NULL;
    struct process_use *use = &analysis->processes[analysis->process_count++];
    *use = (struct process_use){.device = device, .pid = pid};
    return use;
}

static int process_compare(const void *left, const void *right)
{
    const struct process_use *a = left, *b = right;
    if (a->used_mib.max != b->used_mib.max)
        return a->used_mib.max > b->used_mib.max ? -1 : 1;
    return a->pid < b->pid ? -1 : a->pid > b->pid;
}

static void processes_make(struct analysis *analysis)
{
    const struct metric_table *table = &analysis->model->process_metrics;
    const int64_t *devices = table->columns ? table->columns[PROCESS_METRIC_DEVICE_ID] : NULL;
    const int64_t *pids = table->columns ? table->columns[PROCESS_METRIC_PID] : NULL;
    const int64_t *used = table->columns ? table->columns[PROCESS_METRIC_USED_MIB] : NULL;
    for (size_t row = 0; pids && used && row < table->count; row++) {
        struct process_use *use = process_of(analysis, devices ? devices[row] : 0, pids[row]);
        if (use)
            summary_add(&use->used_mib, used[row]);
    }
    if (analysis->process_count)
        qsort(analysis->processes, analysis->process_count, sizeof *analysis->processes, process_compare);
}

gpufl_status system_use_make(struct analysis *analysis)
{
    const struct metric_table *table = &analysis->model->device_metrics;
    for (size_t row = 0; row < table->count; row++) {
        const int64_t *ids = table->columns[DEVICE_METRIC_DEVICE_ID];
        struct device_use *use = device_of(analysis, ids ? ids[row] : 0);
        if (!use && analysis->system_count < devices_max)
            return GPUFL_E_NO_MEMORY;
        if (!use)
            continue;
        use->samples++;
        table_row(table, row, use->metrics);
        const int64_t *reasons = table->columns[DEVICE_METRIC_THROTTLE_REASONS];
        for (unsigned bit = 0; reasons && reasons[row] != CELL_UNKNOWN && bit < throttle_bits; bit++)
            use->throttle_samples[bit] += (uint64_t)reasons[row] >> bit & 1;
    }
    if (analysis->system_count)
        qsort(analysis->system, analysis->system_count, sizeof *analysis->system, device_compare);
    for (size_t row = 0; row < analysis->model->host_metrics.count; row++)
        table_row(&analysis->model->host_metrics, row, analysis->host);
    processes_make(analysis);
    return GPUFL_OK;
}
