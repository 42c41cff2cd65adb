/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/analysis.h"

#include <string.h>

static const struct {
    const char *name, *words;
} part_texts[SLOWDOWN_PART_COUNT] = {
    [SLOWDOWN_CUPTI] = {"cupti_ns", "CUPTI"},
    [SLOWDOWN_CALLBACKS] = {"callbacks_ns", "callbacks"},
    [SLOWDOWN_STACKS] = {"stacks_ns", "stacks"},
    [SLOWDOWN_GATE] = {"gate_ns", "held launches"},
    [SLOWDOWN_REPLAY] = {"replay_ns", "replay"},
    [SLOWDOWN_SWITCHES] = {"switches_ns", "engine switches"},
    [SLOWDOWN_START] = {"start_ns", "start"},
    [SLOWDOWN_COUNTING] = {"counting_ns", "counting"},
    [SLOWDOWN_SAMPLING] = {"sampling_ns", "PC sampling"},
};

const char *slowdown_part_name(enum slowdown_part part)
{
    return part_texts[part].name;
}

const char *slowdown_part_words(enum slowdown_part part)
{
    return part_texts[part].words;
}

/* The cost of rocprofiler's records is unknown. If telemetry has no vendor, a session that never used CUPTI is of AMD
 * GPUs. */
static bool is_amd(const struct session_model *model, uint16_t device)
{
    const struct device_info *info = session_device(model, device);
    if (!model->job.has_rocprofiler)
        return false;
    return !model->job.cupti_version[0] || (info && !strcmp(info->vendor, "AMD"));
}

/* GPUs work in parallel: the one whose records cost most determines the delay. */
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
        const int64_t *cost_ns = overhead->record_cost_ns;
        int64_t ns = (int64_t)starts->awaited * cost_ns[RECORD_COST_HOST] +
                     (int64_t)(starts->cold * (double)(cost_ns[RECORD_COST_HOST_COLD] - cost_ns[RECORD_COST_HOST])) +
                     (int64_t)starts->queued * cost_ns[RECORD_COST_GPU] +
                     (int64_t)starts->graph_nodes * cost_ns[RECORD_COST_GRAPH_NODE];
        most_ns = ns > most_ns ? ns : most_ns;
    }
    return most_ns;
}

/* The share of launches that the GPU waited for, among those made by calls of the program. */
static double awaited_share(const struct analysis *analysis)
{
    uint64_t awaited = 0, all = 0;
    for (size_t i = 0; i < analysis->device_count; i++) {
        awaited += analysis->devices[i].starts.awaited;
        all += analysis->devices[i].starts.awaited + analysis->devices[i].starts.queued;
    }
    return all ? (double)awaited / (double)all : 1;
}

/* Extra time in the calls of a state, compared with its launches' usual time; negative: nothing to compare with. */
static int64_t longer_ns(const struct call_state_use *state, int64_t launch_ns)
{
    if (state->launches <= 0 || state->calls_ns <= 0)
        return 0;
    if (launch_ns < 0)
        return -1;
    double needed_ns = (double)state->launches * (double)launch_ns;
    return needed_ns < (double)state->calls_ns ? state->calls_ns - (int64_t)needed_ns : 0;
}

/* The time that PC sampling and counting add to the program's calls, without the wait at the gate, which is included in
 * them. A counted launch has no CUPTI record, unlike the launches that it is compared with. */
static void calls_longer(const struct analysis *analysis, int64_t gate_ns, struct slowdown *slowdown)
{
    const struct call_state_use *calls = analysis->model->overhead.calls;
    const struct kernel_columns *kernels = &analysis->model->kernels;
    int64_t plain_ns = calls[CALLS_PLAIN].typical_ns, typical_ns = plain_ns;
    if (typical_ns < 0)
        typical_ns = calls[CALLS_SAMPLED].typical_ns; /* Deep: the part added by sampling is missing */
    int64_t record_ns = kernels->count ? slowdown->parts_ns[SLOWDOWN_CUPTI] / (int64_t)kernels->count : 0;
    if (typical_ns >= 0)
        typical_ns = typical_ns > record_ns ? typical_ns - record_ns : 0;
    const struct {
        enum slowdown_part part;
        int64_t ns;
    } longer[] = {{SLOWDOWN_COUNTING, longer_ns(&calls[CALLS_COUNTED], typical_ns)},
                  {SLOWDOWN_SAMPLING, longer_ns(&calls[CALLS_SAMPLED], plain_ns)}};
    for (size_t i = 0; i < sizeof longer / sizeof *longer; i++) {
        slowdown->is_least |= longer[i].ns < 0;
        int64_t ns = longer[i].ns < 0 ? 0 : longer[i].ns, held_ns = ns < gate_ns ? ns : gate_ns;
        slowdown->parts_ns[longer[i].part] = ns - held_ns;
        gate_ns -= held_ns;
    }
}

/* Each replayed kernel would have run once. */
static int64_t kernels_once_ns(const struct deep_use *deep)
{
    double ns = 0;
    for (size_t i = 0; i < deep->group_count; i++)
        for (size_t j = 0; deep->groups[i].is_kernel && j < deep->groups[i].column_count; j++) {
            const struct metric_column *column = &deep->groups[i].columns[j];
            if (column->count && column->mean > 0 && !strcmp(column->name, "gpu__time_duration.sum"))
                ns += column->mean * (double)column->count;
        }
    return ns < 1e18 ? (int64_t)ns : 0;
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
    if (parts[SLOWDOWN_REPLAY]) {
        int64_t once_ns = kernels_once_ns(&analysis->deep);
        parts[SLOWDOWN_GATE] = 0; /* contained in the replayed launches */
        parts[SLOWDOWN_REPLAY] -= once_ns < parts[SLOWDOWN_REPLAY] ? once_ns : parts[SLOWDOWN_REPLAY];
    }
    parts[SLOWDOWN_CUPTI] = cupti_ns(analysis, &slowdown->is_least);
    calls_longer(analysis, parts[SLOWDOWN_GATE], slowdown);
    int64_t total_ns = slowdown_ns(slowdown);
    int64_t least_ns = wall_ns / 10000; /* recording never takes all of a program's time */
    int64_t rest_ns = wall_ns - total_ns > least_ns ? wall_ns - total_ns : least_ns;
    slowdown->is_default = overhead->is_default_cost;
    slowdown->fraction = (double)total_ns / (double)rest_ns;
    slowdown->is_known = !slowdown->is_least || slowdown->fraction >= SLOWDOWN_SHOWN; /* do not print "at least 0" */
    return GPUFL_OK;
}
