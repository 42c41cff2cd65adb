/* SPDX-License-Identifier: Apache-2.0 */
/* Scopes, ranges and marks of the user's threads. */
#include "capture/thread_log_own.h"

static bool is_plain(const struct scope_text *text)
{
    const struct scope_details *details = &text->details;
    return !text->tag_size && !text->repeat && !text->warmup && !details->category && !details->has_color &&
           !details->payload_type;
}

static size_t begin_bytes(const struct scope_text *text)
{
    return is_plain(text) ? sizeof(struct scope_event) + text->name_size
                          : sizeof(struct scope_meta_event) + text->name_size + text->tag_size;
}

static void fill_plain(struct ring_record *record, const struct scope_text *text)
{
    struct scope_event *event = (struct scope_event *)record;
    record->kind = THREAD_SCOPE_BEGIN;
    event->name_size = (uint32_t)text->name_size;
    event->source = (uint16_t)text->source;
    event->stack = (uint16_t)text->stack;
    memcpy(event->name, text->name, text->name_size);
    event->event.ticks = clock_ticks();
}

static void fill_meta(struct ring_record *record, enum thread_event_kind kind, const struct scope_text *text,
                      uint64_t range_id)
{
    struct scope_meta_event *event = (struct scope_meta_event *)record;
    record->kind = kind;
    event->range_id = range_id;
    event->repeat = text->repeat;
    event->warmup = text->warmup;
    event->name_size = (uint32_t)text->name_size;
    event->tag_size = (uint32_t)text->tag_size;
    event->source = (uint16_t)text->source;
    event->stack = (uint16_t)text->stack;
    event->details = text->details;
    memcpy(event->text, text->name, text->name_size);
    if (text->tag_size)
        memcpy(event->text + text->name_size, text->tag, text->tag_size);
    event->event.ticks = clock_ticks();
}

/* Tasks are adopted and left unnoticed, also inside of scopes. */
static bool is_in_no_scope(const struct thread_log *log)
{
    uint32_t tasks = log->stacks_open[SCOPE_STACK_TASK].kept + log->stacks_open[SCOPE_STACK_TASK].dropped;
    return log->depth + log->dropped_depth == tasks;
}

struct scope_edge thread_log_scope_begin(const struct scope_text *text)
{
    struct thread_log *log = log_of_thread(THREAD_LOSS_SCOPE);
    if (!log)
        return (struct scope_edge){.level = -1};
    uint32_t *kept = &log->stacks_open[text->stack].kept, *dropped = &log->stacks_open[text->stack].dropped;
    struct scope_edge edge = {(int)(*kept + *dropped), is_in_no_scope(log)};
    /* Space is reserved for the end of every open scope, so an end is never lost if its begin is in the log. */
    size_t spare = (size_t)(log->depth + 3) * SCOPE_END_BYTES;
    struct ring_record *record = NULL;
    if (!*dropped && text->name_size + text->tag_size <= SCOPE_TEXT_BYTES_MAX)
        record = ring_reserve(&log->ring, begin_bytes(text), spare);
    if (__builtin_expect(!record, 0)) {
        log->dropped_depth++;
        ++*dropped;
        atomic_fetch_add_explicit(&log->lost_scopes, 1, memory_order_relaxed);
        return edge;
    }
    if (is_plain(text))
        fill_plain(record, text);
    else
        fill_meta(record, THREAD_SCOPE_BEGIN_META, text, 0);
    log->depth++;
    log->token = 0;
    ++*kept;
    log_commit(log, record);
    return edge;
}

uint64_t thread_log_token(void)
{
    struct thread_log *log = thread_log_own;
    if (!log || log->epoch != atomic_load_explicit(&thread_log_state.epoch, memory_order_acquire) || !log->depth ||
        log->dropped_depth)
        return 0;
    if (log->token)
        return log->token;
    struct ring_record *record =
        ring_reserve(&log->ring, sizeof(struct token_event), (size_t)(log->depth + 2) * SCOPE_END_BYTES);
    if (!record) {
        atomic_fetch_add_explicit(&log->lost_scopes, 1, memory_order_relaxed);
        return 0;
    }
    struct token_event *event = (struct token_event *)record;
    record->kind = THREAD_SCOPE_TOKEN;
    log->token_count++;
    event->token = (uint64_t)token_epoch_now() << (TOKEN_COUNT_BITS + TOKEN_NUMBER_BITS) |
                   (uint64_t)log->number << TOKEN_COUNT_BITS |
                   (log->token_count & ((UINT64_C(1) << TOKEN_COUNT_BITS) - 1));
    event->event.ticks = clock_ticks();
    log->token = event->token;
    log_commit(log, record);
    return log->token;
}

struct scope_edge thread_log_adopt(uint32_t stack, uint64_t token)
{
    struct thread_log *log = log_of_thread(THREAD_LOSS_SCOPE);
    if (!log)
        return (struct scope_edge){.level = -1};
    uint32_t *kept = &log->stacks_open[stack].kept, *dropped = &log->stacks_open[stack].dropped;
    struct scope_edge edge = {(int)(*kept + *dropped), stack != SCOPE_STACK_TASK && is_in_no_scope(log)};
    struct ring_record *record = NULL;
    if (!*dropped)
        record = ring_reserve(&log->ring, sizeof(struct token_event), (size_t)(log->depth + 3) * SCOPE_END_BYTES);
    if (__builtin_expect(!record, 0)) {
        log->dropped_depth++;
        ++*dropped;
        atomic_fetch_add_explicit(&log->lost_scopes, 1, memory_order_relaxed);
        return edge;
    }
    struct token_event *event = (struct token_event *)record;
    record->kind = THREAD_SCOPE_ADOPT;
    event->token = token;
    event->stack = stack;
    event->event.ticks = clock_ticks();
    log->depth++;
    log->token = thread_logs_is_token(token) ? token : 0;
    ++*kept;
    log_commit(log, record);
    return edge;
}

static struct scope_edge scope_end(uint32_t stack, const uint32_t *iterations)
{
    struct thread_log *log = thread_log_own;
    if (!log || log->epoch != atomic_load_explicit(&thread_log_state.epoch, memory_order_acquire))
        return (struct scope_edge){.level = -1}; /* it began before this session, or never */
    uint32_t *kept = &log->stacks_open[stack].kept, *dropped = &log->stacks_open[stack].dropped;
    int level = (int)(*kept + *dropped) - 1;
    if (level < 0)
        return (struct scope_edge){.level = -1};
    if (*dropped) {
        log->dropped_depth--;
        --*dropped;
    } else {
        uint64_t ticks = clock_ticks();
        struct ring_record *record = ring_reserve(&log->ring, SCOPE_END_BYTES, 0);
        if (record) {
            struct scope_end_event *event = (struct scope_end_event *)record;
            record->kind = iterations ? THREAD_SCOPE_END_COUNTED : THREAD_SCOPE_END;
            event->event.ticks = ticks;
            event->stack = stack;
            event->iterations = iterations ? *iterations : 0;
            log_commit(log, record);
        }
        log->depth--;
        log->token = 0;
        --*kept;
    }
    return (struct scope_edge){level, stack != SCOPE_STACK_TASK && is_in_no_scope(log)};
}

struct scope_edge thread_log_scope_end(uint32_t stack)
{
    return scope_end(stack, NULL);
}

struct scope_edge thread_log_scope_end_counted(uint32_t stack, uint32_t iterations)
{
    return scope_end(stack, &iterations);
}

/* Events that do not nest: a range that any thread may end, or a mark. */
static void log_single(enum thread_event_kind kind, const struct scope_text *text, uint64_t range_id)
{
    struct thread_log *log = log_of_thread(THREAD_LOSS_SCOPE);
    if (!log)
        return;
    size_t spare = (size_t)(log->depth + 1) * SCOPE_END_BYTES, size = text->name_size + text->tag_size;
    struct ring_record *record =
        size > SCOPE_TEXT_BYTES_MAX ? NULL : ring_reserve(&log->ring, sizeof(struct scope_meta_event) + size, spare);
    if (!record) {
        atomic_fetch_add_explicit(&log->lost_scopes, 1, memory_order_relaxed);
        return;
    }
    fill_meta(record, kind, text, range_id);
    log_commit(log, record);
}

void thread_log_range_start(const struct scope_text *text, uint64_t range_id)
{
    log_single(THREAD_RANGE_START, text, range_id);
}

void thread_log_mark(const struct scope_text *text)
{
    log_single(THREAD_MARK, text, 0);
}

void thread_log_range_end(uint64_t range_id)
{
    struct thread_log *log = log_of_thread(THREAD_LOSS_SCOPE);
    if (!log)
        return;
    struct ring_record *record =
        ring_reserve(&log->ring, sizeof(struct range_end_event), (size_t)(log->depth + 1) * SCOPE_END_BYTES);
    if (!record) {
        atomic_fetch_add_explicit(&log->lost_scopes, 1, memory_order_relaxed);
        return;
    }
    record->kind = THREAD_RANGE_END;
    struct range_end_event *event = (struct range_end_event *)record;
    event->event.ticks = clock_ticks();
    event->range_id = range_id;
    log_commit(log, record);
}
