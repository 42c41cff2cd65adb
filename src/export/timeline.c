/* SPDX-License-Identifier: Apache-2.0 */
#include "export/lanes.h"
#include "export/work_span.h"

#include "analysis/statistics.h"

#include <stdlib.h>
#include <string.h>

struct timeline {
    const struct export_filter *filter;
    const struct session_model *model;
    const struct timeline_visitor *visitor;
    struct lane_set lanes;
    uint64_t *flows; /* of the current call */
    size_t flow_count, flow_capacity;
};

/* Bits above the row distinguish the flows of the four kinds. */
enum { FLOW_KIND_SHIFT = 40 };

static bool timeline_goes_on(const struct timeline *timeline)
{
    return !timeline->lanes.is_stopped && !timeline->lanes.is_out_of_memory;
}

static void event_send(struct timeline *timeline, const struct timeline_event *event)
{
    if (timeline_goes_on(timeline) && !timeline->visitor->event(timeline->visitor->user, event))
        timeline->lanes.is_stopped = true;
}

static void event_name(const struct session_model *model, struct timeline_event *event, enum dictionary dictionary,
                       uint32_t id, const char *fallback)
{
    const char *text = session_text(model, dictionary, id);
    event->dictionary = dictionary;
    event->name_id = text ? id : 0;
    event->name = text ? text : fallback;
}

static struct gpu_span work_span(const struct session_model *model, enum event_kind kind, size_t row)
{
    if (kind == EVENT_COPY)
        return model->copies[row].span;
    if (kind == EVENT_MEMSET)
        return model->memsets[row].span;
    if (kind == EVENT_GRAPH)
        return model->graphs[row].span;
    return kernel_span(&model->kernels, row);
}

static size_t work_count(const struct session_model *model, enum event_kind kind)
{
    switch (kind) {
    case EVENT_KERNEL:
        return model->kernels.count;
    case EVENT_COPY:
        return model->copy_count;
    case EVENT_MEMSET:
        return model->memset_count;
    case EVENT_GRAPH:
        return model->graph_count;
    default:
        return 0;
    }
}

static void work_name(const struct session_model *model, struct timeline_event *event)
{
    const char *word = NULL;
    if (event->work == EVENT_KERNEL) {
        event_name(model, event, DICTIONARY_KERNEL, model->kernels.kernel_id[event->row], "(name not recorded)");
        return;
    }
    if (event->work == EVENT_COPY)
        word = schema_word("copy_kind", model->copies[event->row].copy_kind);
    event->name = event->work == EVENT_COPY ? (word ? word : "copy") : timeline_kind_name(event->work);
}

/* True if the call that requested the work is drawn. Work in a graph was requested by the graph's launch. */
static bool work_has_call(const struct session_model *model, enum event_kind kind, const struct gpu_span *span)
{
    return span->api_start_ns != TIME_UNKNOWN && span->thread_id != ID_UNKNOWN &&
           (kind == EVENT_GRAPH || !span->graph_id || !model->graph_count);
}

static uint64_t work_flow(enum event_kind kind, size_t row)
{
    return ((uint64_t)kind << FLOW_KIND_SHIFT) + row + 1;
}

static const struct timeline_lane *call_lane(struct timeline *timeline, const struct gpu_span *span)
{
    return lane_for(&timeline->lanes, LANE_CALLS, DEVICE_UNKNOWN, span->thread_id, 0, 0, LANE_SINGLE);
}

static bool flow_add(struct timeline *timeline, uint64_t flow)
{
    if (timeline->flow_count == timeline->flow_capacity) {
        size_t capacity = timeline->flow_capacity ? timeline->flow_capacity * 2 : 16;
        uint64_t *grown = realloc(timeline->flows, capacity * sizeof *grown);
        if (!grown) {
            timeline->lanes.is_out_of_memory = true;
            return false;
        }
        timeline->flows = grown;
        timeline->flow_capacity = capacity;
    }
    timeline->flows[timeline->flow_count++] = flow;
    return true;
}

static void call_send(struct timeline *timeline, enum event_kind kind, size_t row, const struct gpu_span *span)
{
    bool is_timed = span->api_duration_ns != API_DURATION_UNKNOWN;
    struct timeline_event event = {.kind = EVENT_CALL,
                                   .work = kind,
                                   .row = row,
                                   .lane = call_lane(timeline, span),
                                   .start_ns = span->api_start_ns,
                                   .end_ns = is_timed ? span->api_start_ns + span->api_duration_ns : TIME_UNKNOWN,
                                   .flow_ids = timeline->flows,
                                   .flow_count = timeline->flow_count};
    static const char *const names[] = {
        [EVENT_KERNEL] = "launch", [EVENT_COPY] = "copy", [EVENT_MEMSET] = "memset", [EVENT_GRAPH] = "graph launch"};
    event.name = names[kind];
    if (event.lane)
        event_send(timeline, &event);
    timeline->flow_count = 0;
}

/* One event per call, however much work it requested; order: rows by the call's start. */
static void calls_send(struct timeline *timeline, enum event_kind kind, const uint32_t *order, size_t count)
{
    const struct session_model *model = timeline->model;
    struct gpu_span pending = {0};
    size_t pending_row = SIZE_MAX;
    for (size_t i = 0; i < count && timeline_goes_on(timeline); i++) {
        size_t row = order ? order[i] : i;
        struct gpu_span span = work_span(model, kind, row);
        if (!work_has_call(model, kind, &span) ||
            !filter_takes(timeline->filter, span.scope, span.start_ns, span.duration_ns))
            continue;
        bool is_same =
            pending_row != SIZE_MAX && span.api_start_ns == pending.api_start_ns && span.thread_id == pending.thread_id;
        if (!is_same && pending_row != SIZE_MAX)
            call_send(timeline, kind, pending_row, &pending);
        if (!is_same) {
            pending = span;
            pending_row = row;
        }
        flow_add(timeline, work_flow(kind, row));
    }
    if (pending_row != SIZE_MAX)
        call_send(timeline, kind, pending_row, &pending);
}

static bool calls_walk(struct timeline *timeline, enum event_kind kind)
{
    size_t count = work_count(timeline->model, kind);
    if (!count)
        return true;
    int64_t *gathered = kind == EVENT_KERNEL ? NULL : malloc(count * sizeof *gathered);
    for (size_t i = 0; gathered && i < count; i++)
        gathered[i] = work_span(timeline->model, kind, i).api_start_ns;
    const int64_t *keys = kind == EVENT_KERNEL ? timeline->model->kernels.api_start_ns : gathered;
    bool is_done = keys != NULL;
    uint32_t *order = NULL, *scratch = NULL;
    if (is_done && !keys_are_ordered(keys, count)) {
        order = malloc(count * sizeof *order);
        scratch = malloc(count * sizeof *scratch);
        is_done = order && scratch;
        if (is_done)
            keys_order(keys, count, order, scratch);
    }
    free(scratch);
    if (is_done)
        calls_send(timeline, kind, order, count);
    free(order);
    free(gathered);
    return is_done;
}

static void work_send(struct timeline *timeline, enum event_kind kind, size_t row)
{
    struct gpu_span span = work_span(timeline->model, kind, row);
    if (!filter_takes(timeline->filter, span.scope, span.start_ns, span.duration_ns))
        return;
    struct timeline_event event = {
        .kind = kind, .work = kind, .row = row, .start_ns = span.start_ns, .end_ns = span.start_ns + span.duration_ns};
    work_name(timeline->model, &event);
    event.lane = lane_for(&timeline->lanes, kind == EVENT_GRAPH ? LANE_GRAPHS : LANE_STREAM, span.device,
                          kind == EVENT_GRAPH ? ID_UNKNOWN : span.stream_id, event.start_ns, event.end_ns, LANE_FLAT);
    if (work_has_call(timeline->model, kind, &span)) {
        event.call_lane = call_lane(timeline, &span);
        event.call_start_ns = span.api_start_ns;
        event.flow_id = event.call_lane ? work_flow(kind, row) : 0;
    }
    if (event.lane)
        event_send(timeline, &event);
}

/* Kernels, copies and memsets share streams, so they are merged by start. */
static void work_walk(struct timeline *timeline)
{
    static const enum event_kind kinds[] = {EVENT_KERNEL, EVENT_COPY, EVENT_MEMSET};
    enum { kind_count = sizeof kinds / sizeof *kinds };
    size_t at[kind_count] = {0};
    int64_t starts[kind_count];
    for (unsigned i = 0; i < kind_count; i++)
        starts[i] =
            work_count(timeline->model, kinds[i]) ? work_span(timeline->model, kinds[i], 0).start_ns : INT64_MAX;
    while (timeline_goes_on(timeline)) {
        unsigned first = 0;
        for (unsigned i = 1; i < kind_count; i++)
            first = starts[i] < starts[first] ? i : first;
        if (starts[first] == INT64_MAX)
            break;
        work_send(timeline, kinds[first], at[first]++);
        bool is_more = at[first] < work_count(timeline->model, kinds[first]);
        starts[first] = is_more ? work_span(timeline->model, kinds[first], at[first]).start_ns : INT64_MAX;
    }
    for (size_t i = 0; i < timeline->model->graph_count && timeline_goes_on(timeline); i++)
        work_send(timeline, EVENT_GRAPH, i);
}

static void scope_send(struct timeline *timeline, size_t row)
{
    const struct scope_instance *scope = &timeline->model->scopes[row];
    if (scope->is_attribution_only || scope->begin_ns == TIME_UNKNOWN ||
        !filter_takes_entry(timeline->filter, (uint32_t)row))
        return;
    bool has_end = scope->end_ns != TIME_UNKNOWN && scope->end_ns >= scope->begin_ns;
    struct timeline_event event = {.kind = EVENT_SCOPE,
                                   .work = EVENT_SCOPE,
                                   .row = row,
                                   .start_ns = scope->begin_ns,
                                   .end_ns = has_end ? scope->end_ns : TIME_UNKNOWN};
    event_name(timeline->model, &event, DICTIONARY_SCOPE_NAME, scope->path_id, "(name not recorded)");
    const char *last = strrchr(event.name, '|');
    event.name = last ? last + 1 : event.name;
    event.lane = lane_for(&timeline->lanes, LANE_SCOPES, DEVICE_UNKNOWN, scope->thread_id, event.start_ns,
                          has_end ? event.end_ns : INT64_MAX, LANE_NESTED);
    if (event.lane)
        event_send(timeline, &event);
}

static bool scopes_walk(struct timeline *timeline)
{
    const struct session_model *model = timeline->model;
    size_t count = model->scope_count;
    int64_t *keys = calloc(count + 1, sizeof *keys);
    uint32_t *order = malloc((count + 1) * sizeof *order), *scratch = malloc((count + 1) * sizeof *scratch);
    bool is_done = keys && order && scratch;
    for (size_t i = 0; is_done && i < count; i++)
        keys[i] = model->scopes[i].begin_ns == TIME_UNKNOWN ? 0 : model->scopes[i].begin_ns;
    if (is_done)
        keys_order(keys, count, order, scratch);
    free(keys);
    free(scratch);
    for (size_t i = 0; is_done && i < count && timeline_goes_on(timeline); i++)
        scope_send(timeline, order[i]);
    free(order);
    return is_done;
}

static void waits_walk(struct timeline *timeline)
{
    const struct session_model *model = timeline->model;
    for (size_t i = 0; i < model->sync_count && timeline_goes_on(timeline); i++) {
        const struct sync_wait *wait = &model->syncs[i];
        if (!filter_takes(timeline->filter, wait->scope, wait->start_ns, wait->duration_ns))
            continue;
        const char *word = schema_word("sync_type", wait->sync_type);
        struct timeline_event event = {.kind = EVENT_WAIT,
                                       .work = EVENT_WAIT,
                                       .row = i,
                                       .start_ns = wait->start_ns,
                                       .end_ns = wait->start_ns + wait->duration_ns,
                                       .name = word ? word : "wait"};
        event.lane = lane_for(&timeline->lanes, LANE_WAITS, DEVICE_UNKNOWN, wait->thread_id, event.start_ns,
                              event.end_ns, LANE_FLAT);
        if (event.lane)
            event_send(timeline, &event);
    }
}

static void windows_walk(struct timeline *timeline)
{
    const struct session_deep *deep = &timeline->model->deep;
    for (size_t i = 0; i < deep->window_count && timeline_goes_on(timeline); i++) {
        const struct deep_window *window = &deep->windows[i];
        bool has_end = window->end_ns != TIME_UNKNOWN && window->end_ns >= window->start_ns;
        if (window->start_ns == TIME_UNKNOWN ||
            !filter_takes_time(timeline->filter, window->start_ns, has_end ? window->end_ns - window->start_ns : 0))
            continue;
        struct timeline_event event = {.kind = EVENT_WINDOW,
                                       .work = EVENT_WINDOW,
                                       .row = i,
                                       .start_ns = window->start_ns,
                                       .end_ns = has_end ? window->end_ns : TIME_UNKNOWN,
                                       .name = *window->source ? window->source : "window"};
        event.lane = lane_for(&timeline->lanes, LANE_WINDOWS, DEVICE_UNKNOWN, ID_UNKNOWN, event.start_ns,
                              has_end ? event.end_ns : INT64_MAX, LANE_FLAT);
        if (event.lane)
            event_send(timeline, &event);
    }
}

gpufl_status timeline_walk(const struct export_filter *filter, const struct timeline_visitor *visitor)
{
    struct timeline timeline = {
        .filter = filter, .model = filter->model, .visitor = visitor, .lanes = {.visitor = visitor}};
    bool is_done = scopes_walk(&timeline) && calls_walk(&timeline, EVENT_KERNEL) && calls_walk(&timeline, EVENT_COPY) &&
                   calls_walk(&timeline, EVENT_MEMSET) && calls_walk(&timeline, EVENT_GRAPH);
    if (is_done) {
        waits_walk(&timeline);
        windows_walk(&timeline);
        work_walk(&timeline);
    }
    is_done = is_done && !timeline.lanes.is_out_of_memory;
    lane_set_free(&timeline.lanes);
    free(timeline.flows);
    return is_done ? GPUFL_OK : GPUFL_E_NO_MEMORY;
}
