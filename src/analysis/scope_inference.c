/* SPDX-License-Identifier: Apache-2.0 */
/* Work of threads that have no scopes, launched while exactly one thread is inside a scope and waits there: it gets that
 * scope, marked as inferred. The log does not say who waits, so it is read from the order of launches in each stretch in
 * which the innermost scope stays the same and no other thread is inside one:
 *
 *   waits          the thread in the scope launches nothing between the other thread's first and last launch, and that
 *                  thread launches at least 8 times, or the one in the scope not at all
 *   takes turns    the same several times over: long rows of launches of each. Rows of two threads that run independently
 *                  are short for at least one of them: the product of their mean lengths beyond one launch is about 1
 *   anything else  is ambiguous and stays outside of scopes */
#include "analysis/scope_kind.h"
#include "analysis/session_loader.h"
#include "analysis/statistics.h"

#include <stdlib.h>

enum { launches_min = 8, turns_product_min = 16, others_max = 64 };
enum { source_user = 0, source_nvtx_push = 1, source_roctx_push = 3 }; /* schema enum scope_source */

/* Of one other thread in one stretch. */
struct other_thread {
    uint32_t thread_id;
    uint64_t launches, rows, waiter_first,
        waiter_last; /* the waiter's launches before the first and the last of these */
    int64_t last_ns;
};

struct inference {
    struct session_model *model;
    uint32_t *thread_ids; /* with scopes or adoptions, ascending */
    size_t thread_count;
    uint32_t *innermost; /* by thread: scope, ID_UNKNOWN */
    uint32_t *outer;     /* by scope: the one that was innermost before it */
    int64_t *keys;       /* of events */
    uint32_t *events;    /* work, numbered through kernels, copies and memsets; then scopes' begins, then their ends */
    size_t event_count, work_count;
    uint32_t *order;
    size_t inside_count; /* threads in a scope */
    uint32_t waiter;     /* the one of them, if there is exactly one */
    size_t stretch_begin;
    struct other_thread others[others_max];
    size_t other_count;
    bool has_too_many_others;
    uint64_t waiter_launches;
    int64_t waiter_last_ns;
};

static bool is_entered(const struct scope_instance *scope)
{
    return scope->kind == SCOPE_OF_USER &&
           (scope->source == source_user || scope->source == source_nvtx_push || scope->source == source_roctx_push) &&
           scope->begin_ns != TIME_UNKNOWN && !scope->is_attribution_only && scope->thread_id != ID_UNKNOWN;
}

struct launched_work {
    int64_t api_start_ns;
    uint32_t thread_id, *scope;
};

static struct launched_work work_of(struct session_model *model, uint32_t number)
{
    if (number < model->kernels.count)
        return (struct launched_work){model->kernels.api_start_ns[number], model->kernels.thread_id[number],
                                      &model->kernels.scope[number]};
    number -= (uint32_t)model->kernels.count;
    struct gpu_span *span =
        number < model->copy_count ? &model->copies[number].span : &model->memsets[number - model->copy_count].span;
    return (struct launched_work){span->api_start_ns, span->thread_id, &span->scope};
}

static int id_compare(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

/* ID_UNKNOWN: the thread has no scopes. */
static uint32_t thread_find(const struct inference *inference, uint32_t thread_id)
{
    const uint32_t *found =
        bsearch(&thread_id, inference->thread_ids, inference->thread_count, sizeof thread_id, id_compare);
    return found ? (uint32_t)(found - inference->thread_ids) : ID_UNKNOWN;
}

static bool threads_make(struct inference *inference)
{
    const struct session_model *model = inference->model;
    uint32_t *ids = malloc((model->scope_count + model->adoption_count + 1) * sizeof *ids), last = ID_UNKNOWN;
    size_t count = 0, kept = 0;
    for (size_t i = 0; ids && i < model->scope_count; i++)
        if (is_entered(&model->scopes[i]) && model->scopes[i].thread_id != last)
            ids[count++] = last = model->scopes[i].thread_id;
    for (size_t i = 0; ids && i < model->adoption_count; i++)
        ids[count++] = model->adoptions[i].thread_id;
    if (count)
        qsort(ids, count, sizeof *ids, id_compare);
    for (size_t i = 0; i < count; i++)
        if (!kept || ids[kept - 1] != ids[i])
            ids[kept++] = ids[i];
    inference->thread_ids = ids;
    inference->thread_count = kept;
    inference->innermost = malloc((kept + 1) * sizeof *ids);
    if (ids && inference->innermost)
        memset(inference->innermost, 0xff, kept * sizeof *ids);
    return ids && inference->innermost;
}

/* Whether it can be somebody's: launched on a thread without scopes, at a known time. */
static bool is_unclaimed(const struct inference *inference, const struct launched_work *work)
{
    return *work->scope == ID_UNKNOWN && work->api_start_ns != TIME_UNKNOWN && work->thread_id != ID_UNKNOWN &&
           thread_find(inference, work->thread_id) == ID_UNKNOWN;
}

static bool has_unclaimed(const struct inference *inference)
{
    for (size_t i = 0; i < inference->work_count; i++) {
        const struct launched_work work = work_of(inference->model, (uint32_t)i);
        if (is_unclaimed(inference, &work))
            return true;
    }
    return false;
}

static void event_add(struct inference *inference, int64_t time_ns, size_t number)
{
    inference->keys[inference->event_count] = time_ns;
    inference->events[inference->event_count++] = (uint32_t)number;
}

static bool events_make(struct inference *inference)
{
    struct session_model *model = inference->model;
    size_t room = inference->work_count + 2 * model->scope_count + 1;
    if (room >= ID_UNKNOWN)
        return true; /* more than can be numbered: nothing is inferred */
    inference->keys = malloc(room * sizeof *inference->keys);
    inference->events = malloc(room * sizeof *inference->events);
    inference->order = malloc(2 * room * sizeof *inference->order);
    inference->outer = malloc((model->scope_count + 1) * sizeof *inference->outer);
    if (!inference->keys || !inference->events || !inference->order || !inference->outer)
        return false;
    for (size_t i = 0; i < inference->work_count; i++) {
        const struct launched_work work = work_of(model, (uint32_t)i);
        if (work.api_start_ns != TIME_UNKNOWN && work.thread_id != ID_UNKNOWN)
            event_add(inference, work.api_start_ns, i);
    }
    for (size_t i = 0; i < model->scope_count; i++) {
        if (!is_entered(&model->scopes[i]))
            continue;
        event_add(inference, model->scopes[i].begin_ns, inference->work_count + i);
        if (model->scopes[i].end_ns != TIME_UNKNOWN)
            event_add(inference, model->scopes[i].end_ns, inference->work_count + model->scope_count + i);
    }
    keys_order(inference->keys, inference->event_count, inference->order, inference->order + room);
    return true;
}

static bool is_waited_for(const struct inference *inference, const struct other_thread *other)
{
    uint64_t between = other->waiter_last - other->waiter_first;
    if (other->rows == 1)
        return other->launches >= launches_min || !inference->waiter_launches;
    double row = (double)other->launches / (double)other->rows;
    double waiter_row = (double)between / (double)(other->rows - 1);
    return row >= launches_min && (row - 1) * (waiter_row - 1) >= turns_product_min;
}

/* The event at `end` is the first one after the stretch. False: no memory. */
static bool stretch_end(struct inference *inference, size_t end)
{
    struct session_model *model = inference->model;
    bool is_done = true;
    for (size_t i = 0; i < inference->other_count && !inference->has_too_many_others && is_done; i++) {
        const struct other_thread *other = &inference->others[i];
        if (!is_waited_for(inference, other))
            continue;
        if (!model->inferred && !(model->inferred = calloc(inference->work_count, 1)))
            return false;
        for (size_t at = inference->stretch_begin; at < end; at++) {
            uint32_t number = inference->events[inference->order[at]];
            struct launched_work work = work_of(model, number);
            if (work.thread_id != other->thread_id || *work.scope != ID_UNKNOWN)
                continue;
            *work.scope = inference->innermost[inference->waiter];
            model->inferred[number] = 1;
        }
    }
    inference->other_count = 0;
    inference->has_too_many_others = false;
    inference->waiter_launches = 0;
    inference->waiter_last_ns = TIME_UNKNOWN;
    return is_done;
}

static void on_work(struct inference *inference, uint32_t number)
{
    const struct launched_work work = work_of(inference->model, number);
    if (inference->inside_count != 1)
        return;
    if (work.thread_id == inference->thread_ids[inference->waiter]) {
        /* Several kernels of one launch, of a graph, count once. */
        inference->waiter_launches += work.api_start_ns != inference->waiter_last_ns;
        inference->waiter_last_ns = work.api_start_ns;
        return;
    }
    if (!is_unclaimed(inference, &work))
        return;
    struct other_thread *other = inference->others, *end = other + inference->other_count;
    while (other < end && other->thread_id != work.thread_id)
        other++;
    if (other == end) {
        if (inference->other_count == others_max) {
            inference->has_too_many_others = true;
            return;
        }
        inference->other_count++;
        *other = (struct other_thread){
            .thread_id = work.thread_id, .waiter_first = inference->waiter_launches, .last_ns = TIME_UNKNOWN};
    }
    other->rows += !other->rows || other->waiter_last != inference->waiter_launches;
    other->waiter_last = inference->waiter_launches;
    other->launches += work.api_start_ns != other->last_ns;
    other->last_ns = work.api_start_ns;
}

static void thread_enter(struct inference *inference, uint32_t thread, uint32_t scope)
{
    inference->outer[scope] = inference->innermost[thread];
    inference->inside_count += inference->innermost[thread] == ID_UNKNOWN;
    inference->innermost[thread] = scope;
}

/* Scopes of different NVTX domains need not nest. */
static void thread_leave(struct inference *inference, uint32_t thread, uint32_t scope)
{
    uint32_t *at = &inference->innermost[thread];
    while (*at != ID_UNKNOWN && *at != scope)
        at = &inference->outer[*at];
    if (*at == ID_UNKNOWN)
        return;
    *at = inference->outer[scope];
    inference->inside_count -= inference->innermost[thread] == ID_UNKNOWN;
}

static void waiter_find(struct inference *inference)
{
    for (uint32_t i = 0; inference->inside_count == 1 && i < inference->thread_count; i++)
        if (inference->innermost[i] != ID_UNKNOWN)
            inference->waiter = i;
}

static bool sweep(struct inference *inference)
{
    const struct session_model *model = inference->model;
    for (size_t at = 0; at < inference->event_count; at++) {
        uint32_t number = inference->events[inference->order[at]];
        if (number < inference->work_count) {
            on_work(inference, number);
            continue;
        }
        if (!stretch_end(inference, at))
            return false;
        uint32_t edge = number - (uint32_t)inference->work_count;
        bool is_begin = edge < model->scope_count;
        uint32_t scope = is_begin ? edge : edge - (uint32_t)model->scope_count;
        uint32_t thread = thread_find(inference, model->scopes[scope].thread_id);
        (is_begin ? thread_enter : thread_leave)(inference, thread, scope);
        if (inference->inside_count == 1 && inference->innermost[thread] != ID_UNKNOWN)
            inference->waiter = thread;
        else
            waiter_find(inference);
        inference->stretch_begin = at + 1;
    }
    return stretch_end(inference, inference->event_count);
}

bool loader_scopes_infer(struct session_loader *loader)
{
    struct inference inference = {.model = loader->model,
                                  .work_count = loader->model->kernels.count + loader->model->copy_count +
                                                loader->model->memset_count,
                                  .waiter_last_ns = TIME_UNKNOWN};
    bool is_done = threads_make(&inference);
    if (is_done && inference.thread_count && has_unclaimed(&inference))
        is_done = events_make(&inference) && sweep(&inference);
    free(inference.thread_ids);
    free(inference.innermost);
    free(inference.outer);
    free(inference.keys);
    free(inference.events);
    free(inference.order);
    return is_done;
}
