/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/analysis.h"

#include <string.h>

static const struct {
    const char *name, *words;
} part_texts[SLOWDOWN_PART_COUNT] = {
    [SLOWDOWN_CUPTI] = {"cupti_ns", "CUPTI"},          [SLOWDOWN_CALLBACKS] = {"callbacks_ns", "callbacks"},
    [SLOWDOWN_STACKS] = {"stacks_ns", "stacks"},       [SLOWDOWN_GATE] = {"gate_ns", "held launches"},
    [SLOWDOWN_REPLAY] = {"replay_ns", "replay"},       [SLOWDOWN_SWITCHES] = {"switches_ns", "engine switches"},
    [SLOWDOWN_COUNTING] = {"counting_ns", "counting"},
};

const char *slowdown_part_name(enum slowdown_part part)
{
    return part_texts[part].name;
}

const char *slowdown_part_words(enum slowdown_part part)
{
    return part_texts[part].words;
}

/* What rocprofiler's records cost is not known. Where telemetry does not tell the vendor, a session that never met CUPTI
 * is of AMD's GPUs. */
static bool is_amd(const struct session_model *model, uint16_t device)
{
    const struct device_info *info = session_device(model, device);
    if (!model->job.has_rocprofiler)
        return false;
    return !model->job.cupti_version[0] || (info && !strcmp(info->vendor, "AMD"));
}

/* GPUs work side by side: the one whose records cost most holds up the program. */
static int64_t cupti_ns(const struct analysis *analysis, bool *is_unknown)
{
    const struct session_overhead *overhead = &analysis->model->overhead;
    int64_t most_ns = 0;
    for (size_t i = 0; i < analysis->device_count; i++) {
        const struct kernel_starts *starts = &analysis->devices[i].starts;
        if (is_amd(analysis->model, analysis->devices[i].device)) {
            *is_unknown |= starts->awaited || starts->queued;
            continue;
        }
        int64_t ns = (int64_t)starts->awaited * overhead->record_host_ns +
                     (int64_t)starts->queued * overhead->record_gpu_ns +
                     (int64_t)starts->graph_nodes * overhead->record_graph_node_ns;
        most_ns = ns > most_ns ? ns : most_ns;
    }
    return most_ns;
}

/* Launches that the GPU waited for, of all that a call of the program made. */
static double awaited_share(const struct analysis *analysis)
{
    uint64_t awaited = 0, all = 0;
    for (size_t i = 0; i < analysis->device_count; i++) {
        awaited += analysis->devices[i].starts.awaited;
        all += analysis->devices[i].starts.awaited + analysis->devices[i].starts.queued;
    }
    return all ? (double)awaited / (double)all : 1;
}

/* Time in windows of counted instructions that would not have been needed at the rate of launches outside of them. */
static int64_t counting_ns(const struct analysis *analysis, bool *is_unknown)
{
    const struct kernel_columns *kernels = &analysis->model->kernels;
    const struct window_use *counted = NULL;
    for (size_t i = 0; i < analysis->deep.window_use_count; i++)
        if (analysis->deep.windows[i].source && !strcmp(analysis->deep.windows[i].source, "sass_metrics"))
            counted = &analysis->deep.windows[i];
    if (!counted || !counted->covered_ns || !counted->launches)
        return 0;
    int64_t outside_ns = 0;
    if (kernels->count) {
        size_t last = kernels->count - 1;
        outside_ns = kernels->start_ns[last] + kernels->duration_ns[last] - kernels->start_ns[0] - counted->covered_ns;
    }
    if (outside_ns <= 0) {
        *is_unknown = true;
        return 0;
    }
    double rate = (double)kernels->count / (double)outside_ns;
    double needed_ns = (double)counted->launches / rate;
    return needed_ns < (double)counted->covered_ns ? counted->covered_ns - (int64_t)needed_ns : 0;
}

int64_t slowdown_ns(const struct slowdown *slowdown)
{
    int64_t total_ns = 0;
    for (int i = 0; i < SLOWDOWN_PART_COUNT; i++)
        total_ns += slowdown->parts_ns[i];
    return total_ns;
}

gpufl_status slowdown_make(struct analysis *analysis)
{
    const struct session_overhead *overhead = &analysis->model->overhead;
    struct slowdown *slowdown = &analysis->slowdown;
    int64_t wall_ns = overhead->wall_ns > 0 ? overhead->wall_ns : analysis->wall_ns;
    if (!overhead->is_known || wall_ns <= 0)
        return GPUFL_OK;
    double share = awaited_share(analysis);
    int64_t *parts = slowdown->parts_ns;
    for (int i = 0; i < USER_TIME_COUNT; i++) {
        bool is_hidden = i == USER_TIME_CALLBACKS || i == USER_TIME_STACKS; /* while the GPU has other work */
        slowdown->is_least |= overhead->user_ns[i] < 0;
        if (overhead->user_ns[i] > 0)
            parts[SLOWDOWN_CALLBACKS + i] = (int64_t)((double)overhead->user_ns[i] * (is_hidden ? share : 1));
    }
    if (parts[SLOWDOWN_REPLAY])
        parts[SLOWDOWN_GATE] = 0; /* was within the launches that were replayed */
    parts[SLOWDOWN_CUPTI] = cupti_ns(analysis, &slowdown->is_least);
    parts[SLOWDOWN_COUNTING] = counting_ns(analysis, &slowdown->is_least);
    int64_t total_ns = slowdown_ns(slowdown);
    int64_t least_ns = wall_ns / 10000; /* no program is nothing but its recording */
    int64_t rest_ns = wall_ns - total_ns > least_ns ? wall_ns - total_ns : least_ns;
    slowdown->is_default = overhead->is_default_cost;
    slowdown->fraction = (double)total_ns / (double)rest_ns;
    slowdown->is_known =
        !slowdown->is_least || slowdown->fraction >= SLOWDOWN_SHOWN; /* "at least nothing" says nothing */
    return GPUFL_OK;
}
