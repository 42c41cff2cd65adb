/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/scope_tracker.h"

#include "capture/given_names.h"
#include "capture/nvtx_handles.h"
#include "capture/open_ranges.h"
#include "capture/scope_rows.h"
#include "capture/scope_tokens.h"

#include <stdlib.h>
#include <string.h>

struct thread_scopes { /* the collector's copy of one thread's open scopes, in the order of their beginning */
    const struct thread_log *log;
    uint32_t thread_id;
    struct open_scope *open;
    uint32_t depth, capacity;
    bool is_being_read;
    uint16_t dropped[SCOPE_STACK_COUNT]; /* open scopes that were too deep, by stack: their ends are still to arrive.
                                          * At most as many as have room for their ends in a ring, so the count fits. */
};
_Static_assert(THREAD_LOG_BYTES / sizeof(struct scope_end_event) < UINT16_MAX, "open scopes of a thread");

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
    struct open_ranges ranges;
    struct scope_tokens tokens;
    uint64_t names_written; /* of given_names */
    uint64_t nvtx_losses_seen[NVTX_LOSS_COUNT];
};

enum { depth_max = 8192 };

static void use_open_paths(void *user)
{
    struct scope_tracker *tracker = user;
    for (uint32_t i = 0; i < tracker->thread_count; i++)
        for (uint32_t j = 0; j < tracker->threads[i].depth; j++)
            scope_paths_use(&tracker->paths, &tracker->threads[i].open[j].place);
    for (struct open_range *range = NULL; (range = open_ranges_next(&tracker->ranges, range));)
        scope_paths_use(&tracker->paths, &range->scope.place);
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
    for (int i = 0; i < NVTX_LOSS_COUNT; i++)
        tracker->nvtx_losses_seen[i] = nvtx_lost((enum nvtx_loss)i);
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
    open_ranges_free(&tracker->ranges);
    scope_tokens_free(&tracker->tokens);
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
           scope_history_bytes(tracker->history) + open_ranges_bytes(&tracker->ranges) +
           scope_tokens_bytes(&tracker->tokens) + given_names_bytes() + nvtx_handles_bytes();
}

uint64_t scope_tracker_count(const struct scope_tracker *tracker)
{
    return tracker->next_id - 1;
}

static struct thread_scopes *thread_of(struct scope_tracker *tracker, const struct thread_log *log)
{
    struct thread_scopes *thread = &tracker->threads[log->number];
    if (log->number >= tracker->thread_count)
        tracker->thread_count = log->number + 1;
    if (thread->log != log || thread->thread_id != log->thread_id) { /* the ring was reused by another thread */
        thread->log = log;
        thread->thread_id = log->thread_id;
        thread->depth = 0;
        memset(thread->dropped, 0, sizeof thread->dropped);
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
        .parent_id = outer ? outer->id : 0,
        .depth = outer ? outer->depth + 1 : 0,
    };
    const struct scope_place *place = outer ? &outer->place : NULL;
    if (record->kind == THREAD_SCOPE_BEGIN) {
        const struct scope_event *event = (const struct scope_event *)record;
        scope.place = scope_paths_place(&tracker->paths, place, event->name, event->name_size);
        scope.source = event->source;
        scope.stack = event->stack;
        return scope;
    }
    const struct scope_meta_event *event = (const struct scope_meta_event *)record;
    scope.place = scope_paths_place(&tracker->paths, place, event->text, event->name_size);
    scope.tag_id = scope_paths_tag(&tracker->paths, event->text + event->name_size, event->tag_size);
    scope.repeat = event->repeat;
    scope.warmup = event->warmup;
    scope.source = event->source;
    scope.stack = event->stack;
    scope.details = event->details;
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

static uint32_t key_of(const struct scope_tracker *tracker, const struct thread_scopes *thread)
{
    return tracker->by_thread_id ? thread->thread_id : thread->log->pthread_low;
}

static void on_begin(struct scope_tracker *tracker, struct thread_scopes *thread, const struct ring_record *record)
{
    uint32_t stack = record->kind == THREAD_SCOPE_BEGIN ? ((const struct scope_event *)record)->stack
                                                        : ((const struct scope_meta_event *)record)->stack;
    if (thread->dropped[stack] || !has_room_inside(thread)) {
        thread->dropped[stack]++;
        recorder_lose(tracker->recorder, LOSS_SCOPE_DEPTH, 1);
        return;
    }
    struct open_scope scope = scope_open(tracker, record, innermost(thread));
    scope_row_write(tracker->recorder, &scope, thread->thread_id, scope.start_ns, 0);
    thread->open[thread->depth++] = scope;
    scope_history_name(tracker->history, scope.id, scope.place.path_id);
    scope_history_step(tracker->history, key_of(tracker, thread), scope.start_ns, scope.id);
}

/* The innermost open scope of the stack; NULL: it has none. */
static struct open_scope *innermost_of_stack(struct thread_scopes *thread, uint32_t stack)
{
    for (uint32_t i = thread->depth; i > 0; i--)
        if (thread->open[i - 1].stack == stack)
            return &thread->open[i - 1];
    return NULL;
}

/* Scopes of other stacks that began in it stay open, with the path, parent and depth that they began with. */
static void end_scope(struct scope_tracker *tracker, struct thread_scopes *thread, struct open_scope *open,
                      uint64_t ticks)
{
    int64_t time_ns = tick_scale_log_ns(tracker->scale, ticks);
    if (time_ns < open->start_ns && !scope_stack_is_adopted(open->stack))
        time_ns = open->start_ns; /* the tick conversion was renewed between the two stamps */
    scope_end_row_write(tracker->recorder, open, thread->thread_id, time_ns, 1);
    size_t later = (size_t)(thread->open + thread->depth - (open + 1));
    memmove(open, open + 1, later * sizeof *open);
    thread->depth--;
    if (!later)
        scope_history_step(tracker->history, key_of(tracker, thread), time_ns, innermost_id(thread));
}

static void on_end(struct scope_tracker *tracker, struct thread_scopes *thread, const struct scope_end_event *event)
{
    if (thread->dropped[event->stack]) {
        thread->dropped[event->stack]--;
        return;
    }
    struct open_scope *open = innermost_of_stack(thread, event->stack);
    if (!open)
        return;
    if (event->event.record.kind == THREAD_SCOPE_END_COUNTED)
        open->repeat = event->iterations;
    end_scope(tracker, thread, open, event->event.ticks);
}

static void on_exit_of_thread(struct scope_tracker *tracker, struct thread_scopes *thread, uint64_t ticks)
{
    memset(thread->dropped, 0, sizeof thread->dropped);
    while (thread->depth)
        end_scope(tracker, thread, &thread->open[thread->depth - 1], ticks);
}

static void on_token(struct scope_tracker *tracker, struct thread_scopes *thread, const struct token_event *event)
{
    struct token_scope scope = {.token = event->token};
    const struct open_scope *open = innermost(thread);
    if (open) {
        scope.id = open->id;
        scope.parent_id = open->parent_id;
        scope.start_ns = open->start_ns;
        scope.place = open->place;
        scope.depth = open->depth;
    }
    if (!scope_tokens_add(&tracker->tokens, &scope))
        recorder_lose(tracker->recorder, LOSS_SCOPE_TOKENS, 1);
}

static void read_rings(struct scope_tracker *tracker, struct thread_scopes *thread, struct thread_log *log,
                       uint64_t token);

/* Whoever adopts a token got it after it was taken, so it is in the ring of the scope's thread at least. */
static const struct token_scope *scope_of_token(struct scope_tracker *tracker, uint64_t token)
{
    const struct token_scope *scope = scope_tokens_find(&tracker->tokens, token);
    if (scope || !thread_logs_is_token(token))
        return scope;
    struct thread_log *log = thread_logs_find(token_ring(token));
    struct thread_scopes *owner = log ? thread_of(tracker, log) : NULL;
    if (owner && !owner->is_being_read)
        read_rings(tracker, owner, log, token);
    scope = scope_tokens_find(&tracker->tokens, token);
    if (!scope)
        recorder_lose(tracker->recorder, LOSS_SCOPE_TOKENS, 1);
    return scope;
}

/* The thread works for the token's scope, or goes on with its own if there is none. */
static void on_adopt(struct scope_tracker *tracker, struct thread_scopes *thread, const struct token_event *event)
{
    const struct token_scope *scope = scope_of_token(tracker, event->token);
    if (thread->dropped[event->stack] || !has_room_inside(thread)) {
        thread->dropped[event->stack]++;
        recorder_lose(tracker->recorder, LOSS_SCOPE_DEPTH, 1);
        return;
    }
    struct open_scope adopted = {0};
    if (scope && scope->id) {
        adopted =
            (struct open_scope){.id = scope->id,
                                .parent_id = scope->parent_id,
                                .start_ns = scope->start_ns,
                                .place = scope->place,
                                .depth = scope->depth,
                                .adoption = event->stack == SCOPE_STACK_TASK ? ADOPTION_OF_TASK : ADOPTION_BY_TOKEN};
    } else if (innermost(thread)) {
        adopted = *innermost(thread);
        adopted.adoption = ADOPTION_NONE;
    }
    adopted.stack = event->stack;
    adopted.adopted_ns = tick_scale_log_ns(tracker->scale, event->event.ticks);
    thread->open[thread->depth++] = adopted;
    scope_history_step(tracker->history, key_of(tracker, thread), adopted.adopted_ns, adopted.id);
}

static void on_range_start(struct scope_tracker *tracker, uint32_t thread_id, const struct ring_record *record)
{
    const struct open_range range = {((const struct scope_meta_event *)record)->range_id, thread_id,
                                     scope_open(tracker, record, NULL)};
    if (open_ranges_add(&tracker->ranges, &range) != OPEN_RANGE_ADDED)
        recorder_lose(tracker->recorder, LOSS_OPEN_RANGES, 1); /* its end will be lost, or that of the range it
                                                                * displaced */
    scope_row_write(tracker->recorder, &range.scope, thread_id, range.scope.start_ns, 0);
}

static void on_range_end(struct scope_tracker *tracker, const struct range_end_event *event)
{
    struct open_range range;
    if (!open_ranges_take(&tracker->ranges, event->range_id, &range))
        return;
    int64_t time_ns = tick_scale_log_ns(tracker->scale, event->event.ticks);
    if (time_ns < range.scope.start_ns)
        time_ns = range.scope.start_ns;
    scope_row_write(tracker->recorder, &range.scope, range.thread_id, time_ns, 1);
}

/* A scope of zero length that contains nothing. */
static void on_mark(struct scope_tracker *tracker, const struct thread_scopes *thread, const struct ring_record *record)
{
    struct open_scope mark = scope_open(tracker, record, innermost(thread));
    scope_row_write(tracker->recorder, &mark, thread->thread_id, mark.start_ns, 0);
    scope_row_write(tracker->recorder, &mark, thread->thread_id, mark.start_ns, 1);
}

static void on_call(struct scope_tracker *tracker, const struct thread_scopes *thread, const struct ring_record *record)
{
    const struct call_event *event = (const struct call_event *)record;
    const struct user_call plain = {.correlation_id = event->correlation_id, .has_kernel = event->has_kernel};
    const struct user_call *call = record->kind == THREAD_CALL ? &plain : &((const struct wait_event *)record)->user;
    const struct call_time time = {.start_ns = tick_scale_log_ns(tracker->scale, event->event.ticks),
                                   .end_ns = tick_scale_log_ns(tracker->scale, event->end_ticks),
                                   .scope_id = event->is_scope_lost ? SCOPE_UNKNOWN : innermost_id(thread),
                                   .thread_id = thread->thread_id,
                                   .state = (enum call_state)event->state};
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
    case THREAD_SCOPE_END_COUNTED:
        on_end(tracker, thread, (const struct scope_end_event *)record);
        break;
    case THREAD_SCOPE_TOKEN:
        on_token(tracker, thread, (const struct token_event *)record);
        break;
    case THREAD_SCOPE_ADOPT:
        on_adopt(tracker, thread, (const struct token_event *)record);
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
    case THREAD_MARK:
        on_mark(tracker, thread, record);
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

/* thread: NULL to discard the records. token: where to stop, unless 0. */
static void drain(struct scope_tracker *tracker, struct thread_scopes *thread, struct ring *ring, uint64_t until,
                  uint64_t token)
{
    const struct ring_record *record;
    bool is_found = false;
    while (!is_found && atomic_load_explicit(&ring->tail, memory_order_relaxed) != until &&
           (record = ring_peek(ring))) {
        if (thread)
            on_record(tracker, thread, record);
        is_found = token && record->kind == THREAD_SCOPE_TOKEN && ((const struct token_event *)record)->token == token;
        ring_release(ring, record);
    }
}

static void read_rings(struct scope_tracker *tracker, struct thread_scopes *thread, struct thread_log *log,
                       uint64_t token)
{
    /* Stop here: a thread may open scopes faster than they are read. */
    uint64_t until = atomic_load_explicit(&log->ring.head, memory_order_acquire);
    if (thread)
        thread->is_being_read = true;
    /* Stacks first: waits in the other ring refer to them. */
    drain(tracker, thread, &log->stacks, atomic_load_explicit(&log->stacks.head, memory_order_acquire), 0);
    drain(tracker, thread, &log->ring, until, token);
    if (thread)
        thread->is_being_read = false;
}

static void visit(void *user, struct thread_log *log)
{
    struct scope_tracker *tracker = user;
    struct thread_scopes *thread = tracker->is_discarding ? NULL : thread_of(tracker, log);
    read_rings(tracker, thread, log, 0);
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
    given_names_write(tracker->recorder, &tracker->names_written);
    thread_logs_visit(visit, tracker);
    static const enum loss_reason reasons[THREAD_LOSS_COUNT] = {LOSS_SCOPE_THREADS, LOSS_STACK_THREADS,
                                                                LOSS_LAUNCH_THREADS, LOSS_CALL_THREADS};
    for (int i = 0; i < THREAD_LOSS_COUNT; i++) {
        uint64_t refused = thread_logs_refused((enum thread_loss)i);
        recorder_lose(tracker->recorder, reasons[i], refused - tracker->refused_seen[i]);
        tracker->refused_seen[i] = refused;
    }
    static const enum loss_reason nvtx_reasons[NVTX_LOSS_COUNT] = {LOSS_NVTX_STRINGS, LOSS_NVTX_DOMAINS};
    for (int i = 0; i < NVTX_LOSS_COUNT; i++) {
        uint64_t lost = nvtx_lost((enum nvtx_loss)i);
        recorder_lose(tracker->recorder, nvtx_reasons[i], lost - tracker->nvtx_losses_seen[i]);
        tracker->nvtx_losses_seen[i] = lost;
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
        while (thread->depth)
            scope_end_row_write(tracker->recorder, &thread->open[--thread->depth], thread->thread_id, now_ns, 3);
    }
    for (struct open_range *range = NULL; (range = open_ranges_next(&tracker->ranges, range));)
        scope_row_write(tracker->recorder, &range->scope, range->thread_id, now_ns, 3);
    open_ranges_free(&tracker->ranges);
}
