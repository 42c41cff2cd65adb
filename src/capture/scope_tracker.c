/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/scope_tracker.h"

#include "capture/scope_paths.h"

#include <stdlib.h>
#include <string.h>

struct open_scope {
    uint64_t id;
    int64_t start_ns;
    struct scope_place place;
    uint32_t tag_id, repeat, warmup, source;
};

struct thread_scopes { /* the collector's picture of one thread's stack */
    const struct thread_log *log;
    uint32_t thread_id;
    struct open_scope *open;
    uint32_t depth, capacity;
    uint32_t dropped_depth; /* open scopes that were too deep: their ends are still to come */
};

struct open_range {
    uint64_t range_id;
    uint32_t thread_id;
    struct open_scope scope;
};

struct scope_tracker {
    struct recorder *recorder;
    struct scope_history *history;
    const struct tick_scale *scale;
    struct thread_sink sink;
    bool by_thread_id, is_discarding;
    uint64_t next_id;
    uint64_t refused_seen[THREAD_LOSS_COUNT];
    struct scope_paths paths;
    struct thread_scopes threads[THREAD_LOG_COUNT_MAX];
    uint32_t thread_count;
    struct open_range ranges[256];
    uint32_t range_count;
};

enum { depth_max = 8192 };

static void use_open_paths(void *user)
{
    struct scope_tracker *tracker = user;
    for (uint32_t i = 0; i < tracker->thread_count; i++)
        for (uint32_t j = 0; j < tracker->threads[i].depth; j++)
            scope_paths_use(&tracker->paths, &tracker->threads[i].open[j].place);
}

gpufl_status scope_tracker_make(struct scope_tracker **out, struct recorder *recorder, const struct thread_sink *sink)
{
    struct scope_tracker *tracker = calloc(1, sizeof *tracker);
    if (!tracker)
        return GPUFL_E_NO_MEMORY;
    gpufl_status status = scope_history_make(&tracker->history);
    if (status != GPUFL_OK) {
        free(tracker);
        return status;
    }
    tracker->recorder = recorder;
    tracker->sink = *sink;
    tracker->by_thread_id = true;
    tracker->next_id = 1;
    for (int i = 0; i < THREAD_LOSS_COUNT; i++)
        tracker->refused_seen[i] = thread_logs_refused((enum thread_loss)i);
    scope_paths_open(&tracker->paths, recorder, use_open_paths, tracker);
    *out = tracker;
    return GPUFL_OK;
}

void scope_tracker_free(struct scope_tracker *tracker)
{
    if (!tracker)
        return;
    for (uint32_t i = 0; i < tracker->thread_count; i++)
        free(tracker->threads[i].open);
    scope_paths_close(&tracker->paths);
    scope_history_free(tracker->history);
    free(tracker);
}

void scope_tracker_set_key(struct scope_tracker *tracker, bool by_thread_id)
{
    tracker->by_thread_id = by_thread_id;
}

struct scope_history *scope_tracker_history(struct scope_tracker *tracker)
{
    return tracker->history;
}

size_t scope_tracker_bytes(const struct scope_tracker *tracker)
{
    size_t open = 0;
    for (uint32_t i = 0; i < tracker->thread_count; i++)
        open += tracker->threads[i].capacity;
    return sizeof *tracker + scope_paths_bytes(&tracker->paths) + open * sizeof(struct open_scope) +
           scope_history_bytes(tracker->history);
}

uint64_t scope_tracker_count(const struct scope_tracker *tracker)
{
    return tracker->next_id - 1;
}

static void write_row(struct scope_tracker *tracker, const struct open_scope *scope, uint32_t thread_id,
                      int64_t time_ns, int event_type, uint32_t depth, uint64_t parent_id)
{
    int64_t *row = recorder_row(tracker->recorder, RECORD_SCOPE_EVENT_BATCH, time_ns);
    row[SCOPE_SCOPE_INSTANCE_ID] = (int64_t)scope->id;
    row[SCOPE_NAME_ID] = scope->place.path_id;
    row[SCOPE_EVENT_TYPE] = event_type;
    row[SCOPE_DEPTH] = depth;
    row[SCOPE_REPEAT] = scope->repeat;
    row[SCOPE_WARMUP] = scope->warmup;
    row[SCOPE_ORIGINAL_START_NS] = scope->start_ns;
    row[SCOPE_THREAD_ID] = thread_id;
    row[SCOPE_PARENT_ID] = (int64_t)parent_id;
    row[SCOPE_TAG_ID] = scope->tag_id;
    row[SCOPE_SOURCE] = scope->source;
}

static struct thread_scopes *thread_of(struct scope_tracker *tracker, const struct thread_log *log)
{
    struct thread_scopes *thread = &tracker->threads[log->number];
    if (log->number >= tracker->thread_count)
        tracker->thread_count = log->number + 1;
    if (thread->log != log || thread->thread_id != log->thread_id) { /* the ring went to another thread */
        thread->log = log;
        thread->thread_id = log->thread_id;
        thread->depth = thread->dropped_depth = 0;
    }
    return thread;
}

static const struct open_scope *innermost(const struct thread_scopes *thread)
{
    return thread->depth ? &thread->open[thread->depth - 1] : NULL;
}

static uint64_t innermost_id(const struct thread_scopes *thread)
{
    return thread->depth ? innermost(thread)->id : 0;
}

static struct open_scope scope_open(struct scope_tracker *tracker, const struct ring_record *record,
                                    const struct open_scope *outer)
{
    struct open_scope scope = {
        .id = tracker->next_id++,
        .start_ns = tick_scale_log_ns(tracker->scale, ((const struct thread_event *)record)->ticks),
    };
    const struct scope_place *place = outer ? &outer->place : NULL;
    if (record->kind == THREAD_SCOPE_BEGIN) {
        const struct scope_event *event = (const struct scope_event *)record;
        scope.place = scope_paths_place(&tracker->paths, place, event->name, event->name_size);
        scope.source = event->source;
        return scope;
    }
    const struct scope_meta_event *event = (const struct scope_meta_event *)record;
    scope.place = scope_paths_place(&tracker->paths, place, event->text, event->name_size);
    scope.tag_id = scope_paths_tag(&tracker->paths, event->text + event->name_size, event->tag_size);
    scope.repeat = event->repeat;
    scope.warmup = event->warmup;
    scope.source = event->source;
    return scope;
}

static bool has_room_inside(struct thread_scopes *thread)
{
    if (thread->depth < thread->capacity)
        return true;
    uint32_t capacity = thread->capacity ? thread->capacity * 2 : 16;
    struct open_scope *open = capacity <= depth_max ? realloc(thread->open, capacity * sizeof *open) : NULL;
    if (!open)
        return false;
    thread->open = open;
    thread->capacity = capacity;
    return true;
}

static void on_begin(struct scope_tracker *tracker, struct thread_scopes *thread, const struct ring_record *record)
{
    if (thread->dropped_depth || !has_room_inside(thread)) {
        thread->dropped_depth++;
        recorder_lose(tracker->recorder, LOSS_SCOPE_DEPTH, 1);
        return;
    }
    struct open_scope scope = scope_open(tracker, record, innermost(thread));
    write_row(tracker, &scope, thread->thread_id, scope.start_ns, 0, thread->depth, innermost_id(thread));
    thread->open[thread->depth++] = scope;
    scope_history_name(tracker->history, scope.id, scope.place.path_id);
    scope_history_step(tracker->history, tracker->by_thread_id ? thread->thread_id : thread->log->pthread_low,
                       scope.start_ns, scope.id);
}

static void on_end(struct scope_tracker *tracker, struct thread_scopes *thread, uint64_t ticks)
{
    if (thread->dropped_depth) {
        thread->dropped_depth--;
        return;
    }
    if (!thread->depth)
        return;
    int64_t time_ns = tick_scale_log_ns(tracker->scale, ticks);
    struct open_scope scope = thread->open[--thread->depth];
    if (time_ns < scope.start_ns)
        time_ns = scope.start_ns; /* the clock line was renewed between the two stamps */
    write_row(tracker, &scope, thread->thread_id, time_ns, 1, thread->depth, innermost_id(thread));
    scope_history_step(tracker->history, tracker->by_thread_id ? thread->thread_id : thread->log->pthread_low, time_ns,
                       innermost_id(thread));
}

static void on_counted_end(struct scope_tracker *tracker, struct thread_scopes *thread,
                           const struct counted_end_event *event)
{
    if (!thread->dropped_depth && thread->depth)
        thread->open[thread->depth - 1].repeat = event->iterations;
    on_end(tracker, thread, event->event.ticks);
}

static void on_exit_of_thread(struct scope_tracker *tracker, struct thread_scopes *thread, uint64_t ticks)
{
    thread->dropped_depth = 0;
    while (thread->depth)
        on_end(tracker, thread, ticks);
}

static void on_range_start(struct scope_tracker *tracker, uint32_t thread_id, const struct ring_record *record)
{
    if (tracker->range_count == sizeof tracker->ranges / sizeof *tracker->ranges) {
        recorder_lose(tracker->recorder, LOSS_SCOPE_RING, 1);
        return;
    }
    struct open_range *range = &tracker->ranges[tracker->range_count++];
    *range = (struct open_range){((const struct scope_meta_event *)record)->range_id, thread_id,
                                 scope_open(tracker, record, NULL)};
    write_row(tracker, &range->scope, thread_id, range->scope.start_ns, 0, 0, 0);
}

static void on_range_end(struct scope_tracker *tracker, const struct range_end_event *event)
{
    for (uint32_t i = 0; i < tracker->range_count; i++)
        if (tracker->ranges[i].range_id == event->range_id) {
            struct open_range range = tracker->ranges[i];
            tracker->ranges[i] = tracker->ranges[--tracker->range_count];
            int64_t time_ns = tick_scale_log_ns(tracker->scale, event->event.ticks);
            if (time_ns < range.scope.start_ns)
                time_ns = range.scope.start_ns;
            write_row(tracker, &range.scope, range.thread_id, time_ns, 1, 0, 0);
            return;
        }
}

static void on_call(struct scope_tracker *tracker, const struct thread_scopes *thread, const struct ring_record *record)
{
    const struct call_event *event = (const struct call_event *)record;
    const struct user_call plain = {.correlation_id = event->correlation_id, .has_kernel = event->has_kernel};
    const struct user_call *call = record->kind == THREAD_CALL ? &plain : &((const struct wait_event *)record)->user;
    const struct call_time time = {.start_ns = tick_scale_log_ns(tracker->scale, event->event.ticks),
                                   .end_ns = tick_scale_log_ns(tracker->scale, event->end_ticks),
                                   .scope_id = event->is_scope_lost ? SCOPE_UNKNOWN : innermost_id(thread),
                                   .thread_id = thread->thread_id};
    tracker->sink.on_call(tracker->sink.user, call, &time);
}

static void on_record(struct scope_tracker *tracker, struct thread_scopes *thread, const struct ring_record *record)
{
    switch (record->kind) {
    case THREAD_SCOPE_BEGIN:
    case THREAD_SCOPE_BEGIN_META:
        on_begin(tracker, thread, record);
        break;
    case THREAD_SCOPE_END:
        on_end(tracker, thread, ((const struct thread_event *)record)->ticks);
        break;
    case THREAD_SCOPE_END_COUNTED:
        on_counted_end(tracker, thread, (const struct counted_end_event *)record);
        break;
    case THREAD_EXIT:
        on_exit_of_thread(tracker, thread, ((const struct thread_event *)record)->ticks);
        break;
    case THREAD_RANGE_START:
        on_range_start(tracker, thread->thread_id, record);
        break;
    case THREAD_RANGE_END:
        on_range_end(tracker, (const struct range_end_event *)record);
        break;
    case THREAD_CALL_STACK:
        tracker->sink.on_stack(tracker->sink.user, (const struct stack_event *)record);
        break;
    case THREAD_CALL:
    case THREAD_WAIT:
        on_call(tracker, thread, record);
        break;
    case THREAD_LAUNCH: {
        const struct launch_event *launch = (const struct launch_event *)record;
        tracker->sink.on_launch(tracker->sink.user, launch, tick_scale_log_ns(tracker->scale, launch->event.ticks),
                                thread->thread_id, launch->is_scope_lost ? SCOPE_UNKNOWN : innermost_id(thread));
        break;
    }
    default:
        break;
    }
}

/* thread: NULL to throw the records away. */
static void drain(struct scope_tracker *tracker, struct thread_scopes *thread, struct ring *ring, uint64_t until)
{
    const struct ring_record *record;
    while (atomic_load_explicit(&ring->tail, memory_order_relaxed) != until && (record = ring_peek(ring))) {
        if (thread)
            on_record(tracker, thread, record);
        ring_release(ring, record);
    }
}

static void visit(void *user, struct thread_log *log)
{
    struct scope_tracker *tracker = user;
    struct thread_scopes *thread = tracker->is_discarding ? NULL : thread_of(tracker, log);
    /* Only up to here: a thread that opens scopes faster than we read must not hold us. */
    uint64_t until = atomic_load_explicit(&log->ring.head, memory_order_acquire);
    /* Stacks first: what a wait in the other ring refers to is then known. */
    drain(tracker, thread, &log->stacks, atomic_load_explicit(&log->stacks.head, memory_order_acquire));
    drain(tracker, thread, &log->ring, until);
    uint64_t lost_scopes = atomic_load(&log->lost_scopes), lost_stacks = atomic_load(&log->lost_stacks);
    uint64_t lost_launches = atomic_load(&log->lost_launches), lost_calls = atomic_load(&log->lost_calls);
    if (thread) {
        recorder_lose(tracker->recorder, LOSS_SCOPE_RING, lost_scopes - log->reported_lost_scopes);
        recorder_lose(tracker->recorder, LOSS_STACK_RING, lost_stacks - log->reported_lost_stacks);
        recorder_lose(tracker->recorder, LOSS_LAUNCH_RING, lost_launches - log->reported_lost_launches);
        recorder_lose(tracker->recorder, LOSS_CALL_RING, lost_calls - log->reported_lost_calls);
    }
    log->reported_lost_scopes = lost_scopes;
    log->reported_lost_stacks = lost_stacks;
    log->reported_lost_launches = lost_launches;
    log->reported_lost_calls = lost_calls;
}

void scope_tracker_drain(struct scope_tracker *tracker, const struct tick_scale *scale)
{
    tracker->scale = scale;
    thread_logs_visit(visit, tracker);
    static const enum loss_reason reasons[THREAD_LOSS_COUNT] = {LOSS_SCOPE_THREADS, LOSS_STACK_THREADS,
                                                                LOSS_LAUNCH_THREADS, LOSS_CALL_THREADS};
    for (int i = 0; i < THREAD_LOSS_COUNT; i++) {
        uint64_t refused = thread_logs_refused((enum thread_loss)i);
        recorder_lose(tracker->recorder, reasons[i], refused - tracker->refused_seen[i]);
        tracker->refused_seen[i] = refused;
    }
}

void scope_tracker_discard(struct scope_tracker *tracker)
{
    tracker->is_discarding = true;
    thread_logs_visit(visit, tracker);
    tracker->is_discarding = false;
}

void scope_tracker_close_open(struct scope_tracker *tracker, int64_t now_ns)
{
    for (uint32_t i = 0; i < tracker->thread_count; i++) {
        struct thread_scopes *thread = &tracker->threads[i];
        while (thread->depth) {
            struct open_scope scope = thread->open[--thread->depth];
            write_row(tracker, &scope, thread->thread_id, now_ns, 3, thread->depth, innermost_id(thread));
        }
    }
    while (tracker->range_count) {
        struct open_range *range = &tracker->ranges[--tracker->range_count];
        write_row(tracker, &range->scope, range->thread_id, now_ns, 3, 0, 0);
    }
}
