/* SPDX-License-Identifier: Apache-2.0 */
/* One sweep over all GPU work in order of start; analysis.h defines the parts. */
#include "analysis/analysis.h"
#include "analysis/launch_heat.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct interval {
    int64_t start_ns, end_ns;
};
/* In order and not adjacent. */
struct intervals {
    struct interval *items;
    size_t count;
};

struct work {
    int64_t start_ns, end_ns, api_start_ns;
    uint32_t api_duration_ns, scope;
    uint16_t device;
    bool is_kernel, is_copy;
    uint32_t thread_id; /* of a kernel */
};

struct path_wait {
    uint32_t path_id;
    int64_t wait_ns;
};

/* The series of short kernels that a device is in, and the totals of its earlier ones. */
struct launch_run {
    uint64_t kernel_count;
    int64_t wait_ns;
    struct path_wait *waits; /* the first kept_count are of earlier series */
    size_t wait_count, wait_capacity, kept_count;
    struct launch_bound ended; /* without wait_by_path */
};

struct sweep {
    struct analysis *analysis;
    struct intervals host_waits; /* the program was in a synchronizing call */
    struct intervals pauses;     /* kernel tracing was off: the GPU's work is unknown */
    uint16_t *device_index;      /* device id -> index */
    int64_t *busy_end_ns, *kernel_end_ns, *compute_end_ns, *last_api_ns; /* by device index */
    size_t last_bin; /* time advances: the next part is mostly in the same bin */
    struct launch_run *runs;
    struct launch_heat *heat;
    uint32_t path_count;
    bool has_failed;
};

static bool is_host_wait(const struct sync_wait *wait)
{
    return wait->sync_type != 2; /* "stream wait event" blocks the stream, not the caller */
}

static int interval_compare(const void *left, const void *right)
{
    const struct interval *a = left, *b = right;
    return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

static void intervals_merge(struct intervals *intervals)
{
    size_t count = 0;
    if (intervals->count)
        qsort(intervals->items, intervals->count, sizeof *intervals->items, interval_compare);
    for (size_t i = 0; i < intervals->count; i++) {
        const struct interval next = intervals->items[i];
        struct interval *last = count ? &intervals->items[count - 1] : NULL;
        if (last && next.start_ns <= last->end_ns)
            last->end_ns = next.end_ns > last->end_ns ? next.end_ns : last->end_ns;
        else
            intervals->items[count++] = next;
    }
    intervals->count = count;
}

static bool host_waits_find(struct sweep *sweep)
{
    const struct session_model *model = sweep->analysis->model;
    struct intervals *waits = &sweep->host_waits;
    waits->items = malloc((model->sync_count + 1) * sizeof *waits->items);
    if (!waits->items)
        return false;
    for (size_t i = 0; i < model->sync_count; i++)
        if (is_host_wait(&model->syncs[i]))
            waits->items[waits->count++] =
                (struct interval){model->syncs[i].start_ns, model->syncs[i].start_ns + model->syncs[i].duration_ns};
    intervals_merge(waits);
    return true;
}

/* Instruction and range counters are available only while kernels are not traced. */
static bool is_pause(const struct deep_window *window)
{
    return window->source && (!strcmp(window->source, "sass_metrics") || !strcmp(window->source, "range_profiler"));
}

static bool pauses_find(struct sweep *sweep)
{
    const struct analysis *analysis = sweep->analysis;
    const struct session_deep *deep = &analysis->model->deep;
    struct intervals *pauses = &sweep->pauses;
    pauses->items = malloc((deep->window_count + 1) * sizeof *pauses->items);
    if (!pauses->items)
        return false;
    for (size_t i = 0; i < deep->window_count; i++)
        if (is_pause(&deep->windows[i]))
            pauses->items[pauses->count++] = (struct interval){deep->windows[i].start_ns, deep->windows[i].end_ns};
    if (deep->untimed_count && !analysis->model->kernels.count) /* throughout, whatever the windows contain */
        pauses->items[pauses->count++] = (struct interval){analysis->start_ns, analysis->end_ns};
    intervals_merge(pauses);
    sweep->analysis->has_pauses = pauses->count > 0;
    return true;
}

/* The first interval that ends after that time. */
static size_t interval_after(const struct intervals *intervals, int64_t from_ns)
{
    size_t low = 0, high = intervals->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (intervals->items[middle].end_ns <= from_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Parts are identified by their offset in struct time_use. */
#define PART(name) offsetof(struct time_use, name)

static int64_t *part_of(struct time_use *use, size_t part)
{
    return (int64_t *)(void *)((char *)use + part);
}

/* Adds a time span to a part of the device's time, in total and in the bins that it overlaps. */
static void part_add(struct sweep *sweep, size_t at, size_t part, int64_t from_ns, int64_t to_ns)
{
    struct analysis *analysis = sweep->analysis;
    if (to_ns <= from_ns)
        return;
    *part_of(&analysis->devices[at], part) += to_ns - from_ns;
    struct time_use *bins = &analysis->time_bins[at * TIME_BINS];
    int64_t bin_from_ns = from_ns - analysis->start_ns - (int64_t)sweep->last_bin * analysis->time_bin_ns;
    if (bin_from_ns < 0 || bin_from_ns >= analysis->time_bin_ns)
        sweep->last_bin = (size_t)((from_ns - analysis->start_ns) / analysis->time_bin_ns);
    size_t bin = sweep->last_bin;
    for (; from_ns < to_ns && bin < TIME_BINS; bin++) {
        int64_t end_ns = analysis->start_ns + (int64_t)(bin + 1) * analysis->time_bin_ns;
        end_ns = end_ns < to_ns ? end_ns : to_ns;
        *part_of(&bins[bin], part) += end_ns - from_ns;
        from_ns = end_ns;
    }
}

typedef void idle_fn(struct sweep *sweep, size_t at, size_t part, int64_t from_ns, int64_t to_ns);

/* Divides a time span: its overlap with the intervals goes to part `inside`, the rest to `outside`. */
static void stretch_cut(struct sweep *sweep, const struct intervals *intervals, idle_fn *add, size_t at, size_t inside,
                        size_t outside, int64_t from_ns, int64_t to_ns)
{
    for (size_t i = interval_after(intervals, from_ns); i < intervals->count && intervals->items[i].start_ns < to_ns;
         i++) {
        int64_t start_ns = intervals->items[i].start_ns, end_ns = intervals->items[i].end_ns;
        start_ns = start_ns > from_ns ? start_ns : from_ns;
        end_ns = end_ns < to_ns ? end_ns : to_ns;
        add(sweep, at, outside, from_ns, start_ns);
        add(sweep, at, inside, start_ns, end_ns);
        from_ns = end_ns;
    }
    add(sweep, at, outside, from_ns, to_ns);
}

/* A time span without recorded work: idle if kernels were traced. */
static void idle_add(struct sweep *sweep, size_t at, size_t part, int64_t from_ns, int64_t to_ns)
{
    stretch_cut(sweep, &sweep->pauses, part_add, at, PART(unknown_ns), part, from_ns, to_ns);
}

/* The same, except that time in a synchronizing call goes to wait_sync. */
static void host_wait_split(struct sweep *sweep, size_t at, int64_t from_ns, int64_t to_ns, size_t other)
{
    stretch_cut(sweep, &sweep->host_waits, idle_add, at, PART(wait_sync_ns), other, from_ns, to_ns);
}

/* Divides an idle gap; returns the part spent waiting for launches. */
static int64_t gap_split(struct sweep *sweep, size_t at, int64_t gap_ns, const struct work *next)
{
    const struct time_use *use = &sweep->analysis->devices[at];
    int64_t length_ns = next->start_ns - gap_ns, before_ns = use->wait_launch_ns;
    if (next->api_start_ns == TIME_UNKNOWN) {
        part_add(sweep, at, PART(unknown_ns), gap_ns, next->start_ns);
        return 0;
    }
    if (next->api_start_ns <= gap_ns) {
        int64_t launch_ns = 0;
        if (next->api_duration_ns != API_DURATION_UNKNOWN)
            launch_ns = next->api_start_ns + next->api_duration_ns - gap_ns;
        launch_ns = launch_ns < 0 ? 0 : launch_ns > length_ns ? length_ns : launch_ns;
        idle_add(sweep, at, PART(wait_launch_ns), gap_ns, gap_ns + launch_ns);
        idle_add(sweep, at, PART(queued_ns), gap_ns + launch_ns, next->start_ns);
        return use->wait_launch_ns - before_ns;
    }
    /* A clock step can put the call after the work it started. */
    int64_t call_ns = next->api_start_ns < next->start_ns ? next->api_start_ns : next->start_ns;
    bool is_late = call_ns - gap_ns > LAUNCH_LATE_NS;
    host_wait_split(sweep, at, gap_ns, call_ns, is_late ? PART(no_work_ns) : PART(wait_launch_ns));
    idle_add(sweep, at, PART(wait_launch_ns), call_ns, next->start_ns);
    return use->wait_launch_ns - before_ns;
}

static void run_end(struct launch_run *run)
{
    if (run->kernel_count > LAUNCH_RUN_MIN && run->wait_ns > 0) {
        run->ended.run_count++;
        run->ended.kernel_count += run->kernel_count;
        run->ended.wait_ns += run->wait_ns;
        run->kept_count = run->wait_count;
    }
    run->kernel_count = 0;
    run->wait_ns = 0;
    run->wait_count = run->kept_count;
}

static void launch_bound_choose(struct sweep *sweep)
{
    struct launch_bound *bound = &sweep->analysis->launch_bound;
    size_t longest = 0;
    for (size_t i = 1; i < sweep->analysis->device_count; i++)
        if (sweep->runs[i].ended.wait_ns > sweep->runs[longest].ended.wait_ns)
            longest = i;
    const struct launch_run *run = &sweep->runs[longest];
    bound->device = sweep->analysis->devices[longest].device;
    bound->run_count = run->ended.run_count;
    bound->kernel_count = run->ended.kernel_count;
    bound->wait_ns = run->ended.wait_ns;
    for (size_t i = 0; i < run->kept_count; i++)
        bound->wait_by_path[run->waits[i].path_id] += run->waits[i].wait_ns;
}

static void run_add_wait(struct sweep *sweep, struct launch_run *run, uint32_t scope, int64_t wait_ns)
{
    const struct session_model *model = sweep->analysis->model;
    uint32_t path_id = scope == ID_UNKNOWN ? 0 : model->scopes[scope].path_id;
    path_id = path_id < sweep->path_count ? path_id : 0;
    run->wait_ns += wait_ns;
    if (run->wait_count > run->kept_count && run->waits[run->wait_count - 1].path_id == path_id) {
        run->waits[run->wait_count - 1].wait_ns += wait_ns;
        return;
    }
    if (run->wait_count == run->wait_capacity) {
        size_t capacity = run->wait_capacity * 2 + 64;
        struct path_wait *grown = realloc(run->waits, capacity * sizeof *grown);
        if (!grown) {
            sweep->has_failed = true;
            return;
        }
        run->waits = grown;
        run->wait_capacity = capacity;
    }
    run->waits[run->wait_count++] = (struct path_wait){path_id, wait_ns};
}

/* busy_end_ns: of the GPU's earlier work. last_api_ns: launch time of the previous kernel. */
static void start_count(struct kernel_starts *starts, struct launch_heat *heat, const struct work *work,
                        int64_t busy_end_ns, int64_t *last_api_ns)
{
    bool is_known = work->api_start_ns != TIME_UNKNOWN;
    int64_t duration_ns = work->api_duration_ns == API_DURATION_UNKNOWN ? 0 : work->api_duration_ns;
    bool is_node = is_known && work->api_start_ns == *last_api_ns;
    bool is_awaited = is_known && !is_node && work->api_start_ns + duration_ns > busy_end_ns;
    double coldness = 0;
    if (is_known && !is_node)
        coldness = launch_heat_coldness(heat, work->thread_id, work->api_start_ns,
                                        work->api_duration_ns == API_DURATION_UNKNOWN ? -1 : duration_ns);
    starts->graph_nodes += is_node;
    starts->awaited += is_awaited;
    starts->queued += !is_node && !is_awaited;
    starts->cold += is_awaited ? coldness : 0;
    *last_api_ns = is_known ? work->api_start_ns : *last_api_ns;
}

/* Adds the part of the work after the end of all earlier work of its kind. */
static void union_add(struct sweep *sweep, size_t at, size_t part, int64_t *end_ns, const struct work *work)
{
    if (work->end_ns <= *end_ns)
        return;
    part_add(sweep, at, part, work->start_ns > *end_ns ? work->start_ns : *end_ns, work->end_ns);
    *end_ns = work->end_ns;
}

static void work_add(struct sweep *sweep, struct work work)
{
    struct analysis *analysis = sweep->analysis;
    size_t at = sweep->device_index[work.device];
    work.start_ns = work.start_ns > analysis->start_ns ? work.start_ns : analysis->start_ns;
    work.end_ns = work.end_ns < analysis->end_ns ? work.end_ns : analysis->end_ns;
    if (work.end_ns < work.start_ns)
        return;
    struct launch_run *run = &sweep->runs[at];
    int64_t busy_end_ns = sweep->busy_end_ns[at], launch_ns = 0, gap_ns = 0;
    if (work.start_ns > busy_end_ns) {
        gap_ns = work.start_ns - busy_end_ns;
        launch_ns = gap_split(sweep, at, busy_end_ns, &work);
    }
    if (work.end_ns > busy_end_ns) {
        part_add(sweep, at, PART(busy_ns), gap_ns ? work.start_ns : busy_end_ns, work.end_ns);
        sweep->busy_end_ns[at] = work.end_ns;
    }
    if (!work.is_copy)
        union_add(sweep, at, PART(compute_ns), &sweep->compute_end_ns[at], &work);
    if (!work.is_kernel)
        return;
    union_add(sweep, at, PART(kernel_ns), &sweep->kernel_end_ns[at], &work);
    start_count(&sweep->analysis->devices[at].starts, sweep->heat, &work, busy_end_ns, &sweep->last_api_ns[at]);
    bool is_short = work.end_ns - work.start_ns < LAUNCH_SHORT_NS;
    if (!is_short || gap_ns - launch_ns > LAUNCH_LATE_NS)
        run_end(run);
    if (is_short) {
        if (run->kernel_count++ && launch_ns)
            run_add_wait(sweep, run, work.scope, launch_ns);
    }
}

static struct work span_work(const struct gpu_span *span, bool is_copy)
{
    return (struct work){span->start_ns,
                         span->start_ns + span->duration_ns,
                         span->api_start_ns,
                         span->api_duration_ns,
                         span->scope,
                         span->device,
                         false,
                         is_copy,
                         0};
}

static struct work kernel_work(const struct kernel_columns *kernels, size_t at)
{
    return (struct work){kernels->start_ns[at],
                         kernels->start_ns[at] + kernels->duration_ns[at],
                         kernels->api_start_ns[at],
                         kernels->api_duration_ns[at],
                         kernels->scope[at],
                         kernels->device[at],
                         true,
                         false,
                         kernels->thread_id[at]};
}

static void alone_find(struct time_use *use)
{
    use->memsets_only_ns = use->compute_ns - use->kernel_ns;
    use->copies_only_ns = use->busy_ns - use->compute_ns;
}

static void sweep_all(struct sweep *sweep)
{
    const struct session_model *model = sweep->analysis->model;
    size_t kernel = 0, copy = 0, fill = 0;
    for (;;) {
        int64_t kernel_ns = kernel < model->kernels.count ? model->kernels.start_ns[kernel] : INT64_MAX;
        int64_t copy_ns = copy < model->copy_count ? model->copies[copy].span.start_ns : INT64_MAX;
        int64_t fill_ns = fill < model->memset_count ? model->memsets[fill].span.start_ns : INT64_MAX;
        if (kernel_ns == INT64_MAX && copy_ns == INT64_MAX && fill_ns == INT64_MAX)
            break;
        if (kernel_ns <= copy_ns && kernel_ns <= fill_ns)
            work_add(sweep, kernel_work(&model->kernels, kernel++));
        else if (copy_ns <= fill_ns)
            work_add(sweep, span_work(&model->copies[copy++].span, true));
        else
            work_add(sweep, span_work(&model->memsets[fill++].span, false));
    }
    for (size_t i = 0; i < sweep->analysis->device_count; i++) {
        struct time_use *use = &sweep->analysis->devices[i];
        struct time_use *bins = &sweep->analysis->time_bins[i * TIME_BINS];
        host_wait_split(sweep, i, sweep->busy_end_ns[i], sweep->analysis->end_ns, PART(no_work_ns));
        alone_find(use);
        for (size_t bin = 0; bin < TIME_BINS; bin++)
            alone_find(&bins[bin]);
        run_end(&sweep->runs[i]);
    }
    launch_bound_choose(sweep);
}

/* Devices with work, in order of id. */
static bool devices_find(struct analysis *analysis)
{
    const struct session_model *model = analysis->model;
    bool *is_used = calloc(DEVICE_UNKNOWN + 1, sizeof *is_used);
    if (!is_used)
        return false;
    for (size_t i = 0; i < model->kernels.count; i++)
        is_used[model->kernels.device[i]] = true;
    for (size_t i = 0; i < model->copy_count; i++)
        is_used[model->copies[i].span.device] = true;
    for (size_t i = 0; i < model->memset_count; i++)
        is_used[model->memsets[i].span.device] = true;
    size_t count = 0;
    for (size_t id = 0; id <= DEVICE_UNKNOWN; id++)
        count += is_used[id];
    analysis->devices = calloc(count + 1, sizeof *analysis->devices);
    for (size_t id = 0; analysis->devices && id <= DEVICE_UNKNOWN; id++)
        if (is_used[id])
            analysis->devices[analysis->device_count++].device = (uint16_t)id;
    free(is_used);
    analysis->time_bin_ns = analysis->wall_ns / TIME_BINS + 1;
    analysis->time_bins = calloc((count + 1) * TIME_BINS, sizeof *analysis->time_bins);
    return analysis->devices && analysis->time_bins;
}

gpufl_status time_use_make(struct analysis *analysis)
{
    struct sweep sweep = {.analysis = analysis};
    gpufl_status status = GPUFL_E_NO_MEMORY;
    if (!devices_find(analysis))
        return status;
    size_t count = analysis->device_count + 1;
    sweep.path_count = analysis->model->dictionaries[DICTIONARY_SCOPE_NAME].count;
    analysis->launch_bound.wait_by_path = calloc((size_t)sweep.path_count + 1, sizeof(int64_t));
    sweep.device_index = calloc(DEVICE_UNKNOWN + 1, sizeof *sweep.device_index);
    sweep.busy_end_ns = malloc(count * sizeof *sweep.busy_end_ns);
    sweep.kernel_end_ns = malloc(count * sizeof *sweep.kernel_end_ns);
    sweep.compute_end_ns = malloc(count * sizeof *sweep.compute_end_ns);
    sweep.last_api_ns = calloc(count, sizeof *sweep.last_api_ns);
    sweep.runs = calloc(count, sizeof *sweep.runs);
    sweep.heat = launch_heat_make(analysis->model);
    if (!host_waits_find(&sweep) || !pauses_find(&sweep) || !analysis->launch_bound.wait_by_path ||
        !sweep.device_index || !sweep.busy_end_ns || !sweep.kernel_end_ns || !sweep.compute_end_ns ||
        !sweep.last_api_ns || !sweep.runs || !sweep.heat)
        goto cleanup;
    for (size_t i = 0; i < analysis->device_count; i++)
        sweep.device_index[analysis->devices[i].device] = (uint16_t)i;
    for (size_t i = 0; i < count; i++)
        sweep.busy_end_ns[i] = sweep.kernel_end_ns[i] = sweep.compute_end_ns[i] = analysis->start_ns;
    sweep_all(&sweep);
    status = sweep.has_failed ? GPUFL_E_NO_MEMORY : GPUFL_OK;
cleanup:
    for (size_t i = 0; sweep.runs && i < count; i++)
        free(sweep.runs[i].waits);
    free(sweep.runs);
    launch_heat_free(sweep.heat);
    free(sweep.host_waits.items);
    free(sweep.pauses.items);
    free(sweep.device_index);
    free(sweep.busy_end_ns);
    free(sweep.kernel_end_ns);
    free(sweep.compute_end_ns);
    free(sweep.last_api_ns);
    return status;
}
