/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/scope_tracker.h"

#include "base/intern.h"

#include <stdlib.h>
#include <string.h>

struct open_scope {
    uint64_t id;
    int64_t start_ns;
    uint32_t path_id, tag_id, repeat, warmup, source;
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

struct path_part { /* key of a scope path: where it hangs and what it is called */
    uint32_t parent_path_id, name_id;
};

struct path {
    struct path_part part;
    uint32_t bytes; /* of its text */
    uint16_t levels;
    bool is_ellipsis; /* stands for all levels that were too many to be told apart */
};

struct scope_tracker {
    struct recorder *recorder;
    struct scope_history *history;
    const struct tick_scale *scale;
    struct thread_sink sink;
    bool by_thread_id, is_discarding;
    uint64_t next_id;
    uint64_t refused_seen;
    struct intern names, tags, paths;
    struct bytes path_text;
    struct path *path_list; /* [path_id]: for spelling out new paths */
    uint32_t path_capacity;
    size_t path_bytes; /* of all texts */
    struct thread_scopes threads[THREAD_LOG_COUNT_MAX];
    uint32_t thread_count;
    struct open_range ranges[256];
    uint32_t range_count;
};

enum {
    text_bytes_max = 4 << 20,
    depth_max = 8192,
    /* A path has its parent's text in it, so texts grow with the square of the depth. What lies below a path that has
     * this much is told by its name alone: "outer|...|inner" with U+2026. */
    path_levels_max = 250, /* readers tell 256 apart */
    path_bytes_max = 4096,
    paths_bytes_max = 16 << 20
};
static const char ellipsis[] = "\u2026";

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
    tracker->refused_seen = thread_logs_refused();
    tracker->names.text_bytes_max = tracker->tags.text_bytes_max = text_bytes_max;
    tracker->paths.text_bytes_max = text_bytes_max;
    *out = tracker;
    return GPUFL_OK;
}

void scope_tracker_free(struct scope_tracker *tracker)
{
    if (!tracker)
        return;
    for (uint32_t i = 0; i < tracker->thread_count; i++)
        free(tracker->threads[i].open);
    intern_free(&tracker->names);
    intern_free(&tracker->tags);
    intern_free(&tracker->paths);
    bytes_free(&tracker->path_text);
    free(tracker->path_list);
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

uint64_t scope_tracker_count(const struct scope_tracker *tracker)
{
    return tracker->next_id - 1;
}

static void spell_path(struct scope_tracker *tracker, uint32_t path_id)
{
    const struct path_part *part = &tracker->path_list[path_id].part;
    if (part->parent_path_id) {
        spell_path(tracker, part->parent_path_id);
        bytes_append_char(&tracker->path_text, '|');
    }
    bytes_append_text(&tracker->path_text, intern_text(&tracker->names, part->name_id));
}

/* Room for one more path in the list, of which ids count up. */
static bool paths_reserve(struct scope_tracker *tracker)
{
    if (tracker->paths.count + 1 < tracker->path_capacity)
        return true;
    uint32_t capacity = tracker->path_capacity ? tracker->path_capacity * 2 : 256;
    struct path *list = realloc(tracker->path_list, capacity * sizeof *list);
    if (!list)
        return false;
    tracker->path_list = list;
    tracker->path_capacity = capacity;
    return true;
}

/* 0 when there is no room for one more. */
static uint32_t path_make(struct scope_tracker *tracker, struct path_part part, size_t name_size)
{
    const struct path *parent = part.parent_path_id ? &tracker->path_list[part.parent_path_id] : NULL;
    struct path path = {.part = part,
                        .bytes = (uint32_t)(parent ? parent->bytes + 1 + name_size : name_size),
                        .levels = (uint16_t)(parent ? parent->levels + 1 : 1)};
    if (tracker->path_bytes + path.bytes > paths_bytes_max || !paths_reserve(tracker))
        return 0;
    uint32_t path_id = intern_id(&tracker->paths, &part, sizeof part, NULL);
    if (!path_id)
        return 0;
    tracker->path_bytes += path.bytes;
    tracker->path_list[path_id] = path;
    bytes_clear(&tracker->path_text);
    spell_path(tracker, path_id);
    recorder_define(tracker->recorder, DICTIONARY_SCOPE_NAME, path_id, tracker->path_text.data,
                    tracker->path_text.size);
    return path_id;
}

/* The dictionary id of "<parent path>|<name>"; 0 when the tables are full. */
static uint32_t path_find(struct scope_tracker *tracker, uint32_t parent_path_id, const char *name, size_t size)
{
    struct path_part part = {parent_path_id, intern_id(&tracker->names, name, size, NULL)};
    if (!part.name_id)
        return 0;
    uint32_t path_id = intern_find(&tracker->paths, &part, sizeof part);
    return path_id ? path_id : path_make(tracker, part, size);
}

/* Where the paths of the scopes inside a path hang: at itself, or at the ellipsis when it is deep. 0: no room. */
static uint32_t path_inside(struct scope_tracker *tracker, uint32_t path_id)
{
    const struct path *path = &tracker->path_list[path_id];
    uint32_t above_id = path->part.parent_path_id;
    if (above_id && tracker->path_list[above_id].is_ellipsis)
        return above_id;
    if (path->levels < path_levels_max && path->bytes < path_bytes_max)
        return path_id;
    uint32_t ellipsis_id = path_find(tracker, path_id, ellipsis, sizeof ellipsis - 1);
    if (ellipsis_id)
        tracker->path_list[ellipsis_id].is_ellipsis = true;
    return ellipsis_id;
}

/* The path of a scope; outer: the scope it is in, or NULL. 0, and counted, when it has no name. */
static uint32_t path_of(struct scope_tracker *tracker, const struct open_scope *outer, const char *name, size_t size)
{
    uint32_t parent_path_id = 0, path_id = 0;
    if (outer && outer->path_id)
        parent_path_id = path_inside(tracker, outer->path_id);
    /* Inside a nameless scope nothing has a name: it would stand at the outside. */
    if (!outer || parent_path_id)
        path_id = path_find(tracker, parent_path_id, name, size);
    if (!path_id)
        recorder_lose(tracker->recorder, LOSS_NAMES, 1);
    return path_id;
}

static uint32_t tag_find(struct scope_tracker *tracker, const char *tag, size_t size)
{
    if (!size)
        return 0;
    bool is_new;
    uint32_t tag_id = intern_id(&tracker->tags, tag, size, &is_new);
    if (is_new)
        recorder_define(tracker->recorder, DICTIONARY_TAG, tag_id, tag, size);
    return tag_id;
}

static void write_row(struct scope_tracker *tracker, const struct open_scope *scope, uint32_t thread_id,
                      int64_t time_ns, int event_type, uint32_t depth, uint64_t parent_id)
{
    int64_t *row = recorder_row(tracker->recorder, RECORD_SCOPE_EVENT_BATCH, time_ns);
    row[SCOPE_SCOPE_INSTANCE_ID] = (int64_t)scope->id;
    row[SCOPE_NAME_ID] = scope->path_id;
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
    for (uint32_t i = 0; i < tracker->thread_count; i++) {
        struct thread_scopes *thread = &tracker->threads[i];
        if (thread->log != log)
            continue;
        if (thread->thread_id != log->thread_id) { /* the ring went to another thread */
            thread->thread_id = log->thread_id;
            thread->depth = thread->dropped_depth = 0;
        }
        return thread;
    }
    /* As many slots as rings exist, so there is always one left. */
    struct thread_scopes *thread = &tracker->threads[tracker->thread_count++];
    *thread = (struct thread_scopes){.log = log, .thread_id = log->thread_id};
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
        .start_ns = tick_scale_wall_ns(tracker->scale, ((const struct thread_event *)record)->ticks),
    };
    if (record->kind == THREAD_SCOPE_BEGIN) {
        const struct scope_event *event = (const struct scope_event *)record;
        scope.path_id = path_of(tracker, outer, event->name, event->name_size);
        scope.source = event->source;
        return scope;
    }
    const struct scope_meta_event *event = (const struct scope_meta_event *)record;
    scope.path_id = path_of(tracker, outer, event->text, event->name_size);
    scope.tag_id = tag_find(tracker, event->text + event->name_size, event->tag_size);
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
    int64_t time_ns = tick_scale_wall_ns(tracker->scale, ticks);
    struct open_scope scope = thread->open[--thread->depth];
    if (time_ns < scope.start_ns)
        time_ns = scope.start_ns; /* the clock line was renewed between the two stamps */
    write_row(tracker, &scope, thread->thread_id, time_ns, 1, thread->depth, innermost_id(thread));
    scope_history_step(tracker->history, tracker->by_thread_id ? thread->thread_id : thread->log->pthread_low, time_ns,
                       innermost_id(thread));
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
            int64_t time_ns = tick_scale_wall_ns(tracker->scale, event->event.ticks);
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
    const struct call_time time = {.start_ns = tick_scale_wall_ns(tracker->scale, event->event.ticks),
                                   .end_ns = tick_scale_wall_ns(tracker->scale, event->end_ticks),
                                   .scope_id = innermost_id(thread),
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
        tracker->sink.on_launch(tracker->sink.user, launch, tick_scale_wall_ns(tracker->scale, launch->event.ticks),
                                thread->thread_id, innermost_id(thread));
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
    uint64_t refused = thread_logs_refused();
    recorder_lose(tracker->recorder, LOSS_SCOPE_THREADS, refused - tracker->refused_seen);
    tracker->refused_seen = refused;
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
