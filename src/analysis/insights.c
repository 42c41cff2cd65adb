/* SPDX-License-Identifier: Apache-2.0 */
/* Rules: each uses recorded data only, and reports its finding and a suggestion. Without data there is no insight. The
 * thresholds are given with the rules below. */
#include "analysis/analysis.h"
#include "analysis/quantity.h"

#include <stdio.h>
#include <stdlib.h>

enum { insights_max = 64, hot_kernels = 5 };

void insight_add(struct analysis *analysis, const char *rule, enum insight_severity severity, int64_t impact_ns,
                 const char *format, ...)
{
    if (analysis->insight_count == insights_max)
        return;
    char *text;
    va_list args;
    va_start(args, format);
    int size = vasprintf(&text, format, args);
    va_end(args);
    if (size >= 0)
        analysis->insights[analysis->insight_count] =
            (struct insight){rule, severity, impact_ns, text, (uint32_t)analysis->insight_count};
    analysis->insight_count += size >= 0;
}

static double of_wall(const struct analysis *analysis, int64_t ns)
{
    return analysis->wall_ns > 0 ? (double)ns / (double)analysis->wall_ns : 0;
}

static const char *name_text(struct bytes *out, const struct hotspot *hotspot)
{
    enum { name_columns = 48 };
    bytes_clear(out);
    hotspot_name(out, hotspot, name_columns);
    return bytes_text(out);
}

/* " on GPU 1" if there are several: a share of the run refers to one GPU. */
struct place_text {
    char text[32];
};

static struct place_text place_of(const struct analysis *analysis, uint16_t device)
{
    struct place_text place = {""};
    if (analysis->device_count > 1 && device == DEVICE_UNKNOWN)
        snprintf(place.text, sizeof place.text, " on a GPU not recorded");
    else if (analysis->device_count > 1)
        snprintf(place.text, sizeof place.text, " on GPU %u", device);
    return place;
}

/* The deepest scope that contains at least four fifths of the waiting. */
static uint32_t launch_scope(const struct analysis *analysis)
{
    uint32_t node = 0;
    for (;;) {
        uint32_t child = analysis->scopes[node].first_child;
        while (child != ID_UNKNOWN && analysis->scopes[child].launch_wait_ns < analysis->launch_bound.wait_ns / 5 * 4)
            child = analysis->scopes[child].next_sibling;
        if (child == ID_UNKNOWN)
            return node;
        node = child;
    }
}

static int64_t launch_wait(const struct analysis *analysis, uint16_t device)
{
    for (size_t i = 0; i < analysis->device_count; i++)
        if (analysis->devices[i].device == device)
            return analysis->devices[i].wait_launch_ns;
    return 0;
}

/* A GPU that waits at least 5 % of the wall time for launches inside series of short kernels. */
static void launch_bound_rule(struct analysis *analysis, struct bytes *scratch)
{
    const struct launch_bound *bound = &analysis->launch_bound;
    double share = of_wall(analysis, bound->wait_ns);
    if (!bound->run_count || share < 0.05)
        return;
    uint32_t node = launch_scope(analysis);
    int64_t saving_ns = node ? analysis->scopes[node].launch_wait_ns : bound->wait_ns;
    bytes_clear(scratch);
    if (node) {
        bytes_append_text(scratch, " for `");
        scope_tree_path(analysis, node, scratch);
        bytes_append_text(scratch, "`");
    }
    insight_add(analysis, "launch_bound", share > 0.2 ? INSIGHT_HIGH : INSIGHT_MEDIUM, bound->wait_ns,
                "Launch-bound: the GPU waited for launches in %s of the run%s, of that %s in %s series of more than %d "
                "kernels shorter than %d us (%s kernels). A CUDA graph%s would save at most about %s.",
                quantity_percent(of_wall(analysis, launch_wait(analysis, bound->device))).text,
                place_of(analysis, bound->device).text, quantity_time((double)bound->wait_ns).text,
                quantity_count(bound->run_count).text, LAUNCH_RUN_MIN, LAUNCH_SHORT_NS / 1000,
                quantity_count(bound->kernel_count).text, bytes_text(scratch), quantity_time((double)saving_ns).text);
}

/* A kernel with at least 10 % of the kernel time and at most half of the possible warps. */
static void occupancy_rule(struct analysis *analysis, const struct hotspot *hotspot, struct bytes *scratch)
{
    static const char *const advice[] = {
        "see its launch configuration",
        "try __launch_bounds__ or fewer registers per thread",
        "use less shared memory per block",
        "use larger blocks, or a size that divides the SM's warps",
        "use larger blocks: the SM's block limit is reached first",
        "launch more blocks",
    };
    const struct launch_config *launch = hotspot->launch;
    if (!launch || launch->occupancy_bp == ID_UNKNOWN || launch->occupancy_bp > 5000 || hotspot->share < 0.1)
        return;
    unsigned limiter = launch->limiter < sizeof advice / sizeof *advice ? launch->limiter : 0;
    const char *word = schema_word("limiter", (long)limiter);
    insight_add(analysis, "low_occupancy", hotspot->share > 0.3 ? INSIGHT_MEDIUM : INSIGHT_LOW, hotspot->duration.total,
                "%s (%s of kernel time) can fill only %.0f %% of the SM's warps, limited by %s: %s.",
                name_text(scratch, hotspot), quantity_percent(hotspot->share).text, launch->occupancy_bp / 100.0,
                word && limiter ? word : "an unknown resource", advice[limiter]);
}

static void spill_rule(struct analysis *analysis, const struct hotspot *hotspot, struct bytes *scratch)
{
    const struct launch_config *launch = hotspot->launch;
    if (!launch || launch->local_per_thread == ID_UNKNOWN || !launch->local_per_thread || hotspot->share < 0.05)
        return;
    /* An NVIDIA GPU's limits contain its compute capability. */
    const struct device_info *device = session_device(analysis->model, launch->device);
    bool is_amd = device && device->has_limits && device->compute_major == ID_UNKNOWN;
    insight_add(analysis, "local_memory", INSIGHT_LOW, hotspot->duration.total,
                "%s uses %s bytes of local memory per thread (spilled registers or local arrays), which lives in DRAM: "
                "compile with %s to see which.",
                name_text(scratch, hotspot), quantity_count(launch->local_per_thread).text,
                is_amd ? "-Rpass-analysis=kernel-resource-usage" : "-Xptxas -v");
}

static void tiny_grid_rule(struct analysis *analysis, const struct hotspot *hotspot, struct bytes *scratch)
{
    const struct launch_config *launch = hotspot->launch;
    if (!launch || !launch->grid[0] || hotspot->share < 0.1)
        return;
    const struct device_info *device = session_device(analysis->model, launch->device);
    uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1];
    blocks = blocks > UINT32_MAX ? blocks : blocks * launch->grid[2];
    if (!device || device->multiprocessors == ID_UNKNOWN || blocks >= device->multiprocessors)
        return;
    insight_add(analysis, "tiny_grid", INSIGHT_MEDIUM, hotspot->duration.total,
                "%s (%s of kernel time) launches %s block%s on a GPU with %u multiprocessors: "
                "the rest idles unless other streams fill it.",
                name_text(scratch, hotspot), quantity_percent(hotspot->share).text, quantity_count(blocks).text,
                blocks == 1 ? "" : "s", device->multiprocessors);
}

/* The time in which a GPU executed copies of the group: overlapping copies count once. */
struct copy_time {
    int64_t total_ns, end_ns;
};

/* Of the GPU with the most. by_device: scratch, [DEVICE_UNKNOWN + 1]. */
static int64_t copy_time_max(const struct analysis *analysis, const struct copy_group *group,
                             struct copy_time *by_device, uint16_t *device)
{
    const struct session_model *model = analysis->model;
    int64_t max_ns = 0;
    for (size_t i = 0; i < analysis->device_count; i++)
        by_device[analysis->devices[i].device] = (struct copy_time){0, analysis->start_ns};
    for (size_t i = 0; i < model->copy_count; i++) { /* in order of start */
        const struct gpu_copy *copy = &model->copies[i];
        if (copy->copy_kind != group->copy_kind || copy_host_memory(copy) != group->memory_kind)
            continue;
        struct copy_time *time = &by_device[copy->span.device];
        int64_t end_ns = copy->span.start_ns + copy->span.duration_ns;
        int64_t from_ns = copy->span.start_ns > time->end_ns ? copy->span.start_ns : time->end_ns;
        end_ns = end_ns < analysis->end_ns ? end_ns : analysis->end_ns;
        if (end_ns <= from_ns)
            continue;
        time->total_ns += end_ns - from_ns;
        time->end_ns = end_ns;
        if (time->total_ns > max_ns) {
            max_ns = time->total_ns;
            *device = copy->span.device;
        }
    }
    return max_ns;
}

/* A GPU that spends at least 1 % of the wall time in copies from or to pageable memory. */
static void pageable_rule(struct analysis *analysis)
{
    enum { pageable = 1, pinned = 2 };
    struct copy_time *by_device = calloc(DEVICE_UNKNOWN + 1, sizeof *by_device);
    for (size_t i = 0; by_device && i < analysis->copy_group_count; i++) {
        const struct copy_group *group = &analysis->copies[i];
        if (group->memory_kind != pageable)
            continue;
        uint16_t device = DEVICE_UNKNOWN;
        int64_t time_ns = copy_time_max(analysis, group, by_device, &device);
        if (of_wall(analysis, time_ns) < 0.01)
            continue;
        char comparison[96] = "";
        for (size_t k = 0; k < analysis->copy_group_count; k++) {
            const struct copy_group *other = &analysis->copies[k];
            if (other->copy_kind == group->copy_kind && other->memory_kind == pinned && other->total_ns > 0)
                snprintf(comparison, sizeof comparison, " (pinned copies of this run: %s)",
                         quantity_rate((double)other->bytes * 1e9 / (double)other->total_ns).text);
        }
        insight_add(analysis, "pageable_copies", INSIGHT_MEDIUM, time_ns,
                    "%s of %s copies use pageable memory at %s%s, %s of the run%s: "
                    "pinned memory (cudaHostAlloc, pin_memory=True) is faster and can overlap with kernels.",
                    quantity_bytes((double)group->bytes).text, schema_word("copy_kind", group->copy_kind),
                    group->total_ns > 0 ? quantity_rate((double)group->bytes * 1e9 / (double)group->total_ns).text
                                        : "?",
                    comparison, quantity_percent(of_wall(analysis, time_ns)).text, place_of(analysis, device).text);
    }
    free(by_device);
}

/* At least 10 % of the wall time with the GPU idle around synchronizing calls, or many short waits in one scope. */
static void sync_rule(struct analysis *analysis, struct bytes *scratch)
{
    int64_t idle_ns = 0;
    for (size_t i = 0; i < analysis->device_count; i++)
        idle_ns = sum_saturated(idle_ns, analysis->devices[i].wait_sync_ns + analysis->devices[i].wait_launch_ns);
    uint64_t calls = 0;
    for (unsigned type = 0; type < 5; type++)
        calls += type == 2 ? 0 : analysis->syncs[type].calls;
    const struct session_model *model = analysis->model;
    double kernels_per_call = calls ? (double)model->kernels.count / (double)calls : 0;
    /* Fewer than ten kernels between two waits: the queue runs empty each time. */
    if (calls < 100 || kernels_per_call >= 10 || !analysis->device_count ||
        of_wall(analysis, idle_ns) < 0.1 * (double)analysis->device_count)
        return;
    uint32_t worst = 0;
    for (uint32_t i = 1; i < analysis->scope_count; i++)
        if (analysis->scopes[i].sync_self_ns > analysis->scopes[worst].sync_self_ns || !worst)
            worst = analysis->scopes[i].sync_self_ns ? i : worst;
    bytes_clear(scratch);
    if (worst) {
        bytes_append_text(scratch, ", most of it in `");
        scope_tree_path(analysis, worst, scratch);
        bytes_append_text(scratch, "`");
    }
    insight_add(
        analysis, "sync_heavy", INSIGHT_MEDIUM, idle_ns,
        "The host waits for the GPU %s times, once every %.1f kernels (%s in all%s), and the GPU idled %s in those waits and before the next launch: "
        "wait less often, or with events on the stream.",
        quantity_count(calls).text, kernels_per_call, quantity_time((double)analysis->host_wait_ns).text,
        bytes_text(scratch), quantity_time((double)idle_ns).text);
}

/* A GPU without queued work for at least 20 % of the wall time. */
static void no_work_rule(struct analysis *analysis)
{
    for (size_t i = 0; i < analysis->device_count; i++) {
        const struct time_use *use = &analysis->devices[i];
        double share = of_wall(analysis, use->no_work_ns);
        if (share < 0.2)
            continue;
        char gpu[24] = "The GPU";
        if (analysis->device_count > 1 && use->device == DEVICE_UNKNOWN)
            snprintf(gpu, sizeof gpu, "A GPU not recorded");
        else if (analysis->device_count > 1)
            snprintf(gpu, sizeof gpu, "GPU %u", use->device);
        insight_add(analysis, "no_work_queued", share > 0.5 ? INSIGHT_HIGH : INSIGHT_MEDIUM, use->no_work_ns,
                    "%s had no work for %s (%s): look at what the program does on the CPU then "
                    "(start-up, loading data, waiting for input).",
                    gpu, quantity_time((double)use->no_work_ns).text, quantity_percent(share).text);
    }
}

static void throttle_rule(struct analysis *analysis)
{
    for (size_t i = 0; i < analysis->system_count; i++) {
        const struct device_use *use = &analysis->system[i];
        uint64_t known = use->metrics[DEVICE_METRIC_THROTTLE_REASONS].count;
        for (unsigned bit = 0; bit < throttle_bits; bit++) {
            if (!throttle_reasons[bit].is_limit || !known || use->throttle_samples[bit] * 20 < known)
                continue;
            double share = (double)use->throttle_samples[bit] / (double)known;
            insight_add(analysis, "throttled", INSIGHT_MEDIUM, (int64_t)(share * (double)analysis->wall_ns),
                        "GPU %lld ran below its clocks in %s of the samples: %s.", (long long)use->device,
                        quantity_percent(share).text, throttle_reasons[bit].words);
        }
    }
}

static int insight_compare(const void *left, const void *right)
{
    const struct insight *a = left, *b = right;
    if (a->severity != b->severity)
        return a->severity < b->severity ? -1 : 1;
    if (a->impact_ns != b->impact_ns)
        return a->impact_ns > b->impact_ns ? -1 : 1;
    return a->number < b->number ? -1 : 1; /* insights without a time: the rule adds the worst one first */
}

gpufl_status insights_make(struct analysis *analysis)
{
    analysis->insights = calloc(insights_max, sizeof *analysis->insights);
    if (!analysis->insights)
        return GPUFL_E_NO_MEMORY;
    struct bytes scratch = {0};
    launch_bound_rule(analysis, &scratch);
    no_work_rule(analysis);
    sync_rule(analysis, &scratch);
    pageable_rule(analysis);
    for (size_t i = 0; i < analysis->hotspot_count && i < hot_kernels; i++) {
        occupancy_rule(analysis, &analysis->hotspots[i], &scratch);
        tiny_grid_rule(analysis, &analysis->hotspots[i], &scratch);
        spill_rule(analysis, &analysis->hotspots[i], &scratch);
    }
    throttle_rule(analysis);
    code_insights_add(analysis);
    qsort(analysis->insights, analysis->insight_count, sizeof *analysis->insights, insight_compare);
    bytes_free(&scratch);
    return GPUFL_OK;
}
