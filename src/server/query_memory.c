/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: totals by kind as in the report, memory held over time, and allocations that were never freed. */
#include "server/query_call.h"

#include <stdlib.h>

enum { steps_default = 400, steps_max = 4000, kept_max = 200 };

struct kept_block {
    const struct memory_event *event;
    uint64_t bytes;
};

struct history {
    int64_t from_ns, step_ns;
    size_t steps;
    uint64_t *held;                    /* [kind * steps + step]: maximum in the step; owned */
    uint64_t now[MEMORY_KIND_COUNT];   /* after the latest event */
    size_t reached[MEMORY_KIND_COUNT]; /* the step that contains it */
    struct kept_block kept[kept_max];  /* a heap with the smallest first */
    size_t kept_count, kept_left_out;
};

/* Memory stays held in steps without events. */
static void held_carry(struct history *history, unsigned kind, size_t step)
{
    uint64_t *held = &history->held[kind * history->steps];
    while (history->reached[kind] < step)
        held[++history->reached[kind]] = history->now[kind];
}

static void changed(void *user, const struct memory_event *event, const struct memory_group groups[MEMORY_KIND_COUNT])
{
    struct history *history = user;
    int64_t offset_ns = event->time_ns > history->from_ns ? event->time_ns - history->from_ns : 0;
    size_t step = (size_t)(offset_ns / history->step_ns);
    step = step < history->steps ? step : history->steps - 1;
    for (unsigned kind = 0; kind < MEMORY_KIND_COUNT; kind++) {
        if (groups[kind].held_bytes == history->now[kind])
            continue;
        held_carry(history, kind, step);
        history->now[kind] = groups[kind].held_bytes;
        uint64_t *most = &history->held[kind * history->steps + step];
        *most = *most > history->now[kind] ? *most : history->now[kind];
    }
}

static void heap_sift(struct kept_block *heap, size_t count, size_t at)
{
    for (;;) {
        size_t least = at, child = 2 * at + 1;
        if (child < count && heap[child].bytes < heap[least].bytes)
            least = child;
        if (child + 1 < count && heap[child + 1].bytes < heap[least].bytes)
            least = child + 1;
        if (least == at)
            return;
        struct kept_block other = heap[least];
        heap[least] = heap[at];
        heap[at] = other;
        at = least;
    }
}

static void kept(void *user, const struct memory_event *event, uint64_t bytes)
{
    struct history *history = user;
    struct kept_block *heap = history->kept;
    if (history->kept_count < kept_max) {
        heap[history->kept_count++] = (struct kept_block){event, bytes};
        if (history->kept_count == kept_max)
            for (size_t i = kept_max / 2; i-- > 0;)
                heap_sift(heap, kept_max, i);
        return;
    }
    history->kept_left_out++;
    if (bytes > heap[0].bytes) {
        heap[0] = (struct kept_block){event, bytes};
        heap_sift(heap, kept_max, 0);
    }
}

static int largest_first(const void *a, const void *b)
{
    const struct kept_block *left = a, *right = b;
    return left->bytes < right->bytes ? 1 : left->bytes > right->bytes ? -1 : 0;
}

static void history_write(struct bytes *out, const struct history *history, const struct analysis *analysis)
{
    list_open(out, "history");
    for (unsigned kind = 0; kind < MEMORY_KIND_COUNT; kind++) {
        if (!analysis->memory[kind].allocs && !analysis->memory[kind].frees)
            continue;
        element(out, '{');
        member_text(out, "kind", schema_word("memory_kind", kind));
        list_open(out, "held_bytes");
        for (size_t i = 0; i < history->steps; i++) {
            if (i)
                bytes_append_char(out, ',');
            json_uint(out, history->held[kind * history->steps + i]);
        }
        bytes_append_text(out, "]}");
    }
    bytes_append_char(out, ']');
}

static void kept_write(struct bytes *out, struct history *history, const struct session_model *model)
{
    qsort(history->kept, history->kept_count, sizeof *history->kept, largest_first);
    list_open(out, "kept");
    for (size_t i = 0; i < history->kept_count; i++) {
        const struct memory_event *event = history->kept[i].event;
        uint32_t scope = event->scope;
        element(out, '{');
        member_text(out, "kind", schema_word("memory_kind", event->memory_kind));
        member_uint(out, "bytes", history->kept[i].bytes);
        member_int(out, "time_ns", event->time_ns);
        member_device(out, event->device);
        member_id(out, "thread_id", event->thread_id);
        member_text(out, "scope",
                    scope < model->scope_count
                        ? session_text(model, DICTIONARY_SCOPE_NAME, model->scopes[scope].path_id)
                        : NULL);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
    member_uint(out, "kept_left_out", history->kept_left_out);
}

void query_allocations(struct query_call *call)
{
    const struct analysis *analysis = &call->session->analysis;
    struct memory_group groups[MEMORY_KIND_COUNT];
    int64_t steps = steps_default;
    if (!query_int(call, "steps", 1, steps_max, &steps))
        return;
    struct history *history = calloc(1, sizeof *history);
    uint64_t *held = calloc((size_t)steps * MEMORY_KIND_COUNT, sizeof *held);
    if (history && held) {
        *history = (struct history){.from_ns = analysis->start_ns == TIME_UNKNOWN ? 0 : analysis->start_ns,
                                    .step_ns = analysis->wall_ns / steps + 1,
                                    .steps = (size_t)steps,
                                    .held = held};
        const struct memory_observer observer = {changed, kept, history};
        if (memory_walk(analysis->model, groups, &observer) == GPUFL_OK) {
            for (unsigned kind = 0; kind < MEMORY_KIND_COUNT; kind++)
                held_carry(history, kind, history->steps - 1);
            bytes_append_char(&call->out, '{');
            json_memory(analysis, &call->out);
            member_int(&call->out, "from_ns", history->from_ns);
            member_int(&call->out, "to_ns", history->from_ns + history->step_ns * steps);
            member_int(&call->out, "step_ns", history->step_ns);
            history_write(&call->out, history, analysis);
            kept_write(&call->out, history, analysis->model);
            bytes_append_char(&call->out, '}');
        }
    }
    if (!call->out.size)
        query_fail(call, 503, "no_memory", "no memory to answer");
    free(held);
    free(history);
}
