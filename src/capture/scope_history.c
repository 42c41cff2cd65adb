/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/scope_history.h"

#include <stdlib.h>
#include <string.h>

enum {
    steps_first = 256,
    steps_max = 64 * 1024,        /* per thread: 1 MiB */
    steps_total_max = 512 * 1024, /* all threads: 8 MiB */
    threads_max = 4096,
    paths_max = 256 * 1024, /* scopes whose path is remembered, a power of two: 1 MiB, allocated on first use */
    forget_steps = 1024     /* between two scans of all threads */
};
#define IDLE_NS INT64_C(10000000000) /* by then a thread's API records have arrived */

struct step {
    int64_t time_ns;
    uint64_t scope_id;
};

struct thread_steps {
    uint32_t thread_id;
    uint32_t capacity;     /* power of two */
    uint64_t first, count; /* ring: steps[(first + i) & (capacity - 1)] */
    struct step *steps;
    struct step last; /* set even if there is no room for steps */
    bool has_forgotten;
};

struct scope_history {
    struct thread_steps *threads; /* open addressing by thread id; thread_id 0 = free */
    uint32_t slot_count, thread_count;
    uint64_t steps_allocated, steps_since_relax;
    uint64_t step_count, next_forget; /* steps so far, and the count at which idle threads are searched for again */
    uint32_t *paths;                  /* [id & (paths_max - 1)] */
    uint64_t last_named;              /* scope id */
    int64_t forgotten_ns;             /* latest step of a thread that was evicted */
    bool has_refused_threads;         /* the table was full */
};

gpufl_status scope_history_make(struct scope_history **out)
{
    struct scope_history *history = calloc(1, sizeof *history);
    if (!history)
        return GPUFL_E_NO_MEMORY;
    history->slot_count = threads_max * 2;
    history->forgotten_ns = INT64_MIN;
    history->threads = calloc(history->slot_count, sizeof *history->threads);
    history->paths = calloc(paths_max, sizeof *history->paths);
    if (!history->threads || !history->paths) {
        scope_history_free(history);
        return GPUFL_E_NO_MEMORY;
    }
    *out = history;
    return GPUFL_OK;
}

void scope_history_free(struct scope_history *history)
{
    if (!history)
        return;
    for (uint32_t i = 0; history->threads && i < history->slot_count; i++)
        free(history->threads[i].steps);
    free(history->threads);
    free(history->paths);
    free(history);
}

void scope_history_name(struct scope_history *history, uint64_t scope_id, uint32_t path_id)
{
    history->paths[scope_id & (paths_max - 1)] = path_id;
    history->last_named = scope_id;
}

uint32_t scope_history_path(const struct scope_history *history, uint64_t scope_id)
{
    bool is_remembered = scope_id && scope_id <= history->last_named && history->last_named - scope_id < paths_max;
    return is_remembered ? history->paths[scope_id & (paths_max - 1)] : 0;
}

static struct thread_steps *thread_slot(const struct scope_history *history, uint32_t thread_id)
{
    uint32_t at = (thread_id * 2654435761u) & (history->slot_count - 1);
    while (history->threads[at].thread_id && history->threads[at].thread_id != thread_id)
        at = (at + 1) & (history->slot_count - 1);
    return &history->threads[at];
}

static bool steps_grow(struct scope_history *history, struct thread_steps *thread)
{
    uint32_t capacity = thread->capacity ? thread->capacity * 2 : steps_first;
    if (capacity > steps_max || history->steps_allocated + capacity - thread->capacity > steps_total_max)
        return false;
    struct step *steps = malloc(capacity * sizeof *steps);
    if (!steps)
        return false;
    for (uint64_t i = 0; i < thread->count; i++)
        steps[i] = thread->steps[(thread->first + i) & (thread->capacity - 1)];
    free(thread->steps);
    history->steps_allocated += capacity - thread->capacity;
    thread->steps = steps;
    thread->first = 0;
    thread->capacity = capacity;
    return true;
}

/* Evicts threads that left their last scope long ago, usually because they exited. */
static void threads_forget(struct scope_history *history, int64_t now_ns)
{
    struct thread_steps *old = history->threads;
    struct thread_steps *threads = calloc(history->slot_count, sizeof *threads);
    history->next_forget = history->step_count + forget_steps;
    if (!threads)
        return;
    history->threads = threads;
    for (uint32_t i = 0; i < history->slot_count; i++) {
        if (!old[i].thread_id)
            continue;
        if (old[i].last.scope_id || now_ns - old[i].last.time_ns < IDLE_NS) {
            *thread_slot(history, old[i].thread_id) = old[i];
            continue;
        }
        if (old[i].last.time_ns > history->forgotten_ns)
            history->forgotten_ns = old[i].last.time_ns;
        history->steps_allocated -= old[i].capacity;
        history->thread_count--;
        free(old[i].steps);
    }
    free(old);
}

/* NULL: no room for another thread. */
static struct thread_steps *thread_make(struct scope_history *history, uint32_t thread_id, int64_t now_ns)
{
    bool is_full =
        history->thread_count == threads_max || history->steps_allocated + steps_first > (uint64_t)steps_total_max;
    if (is_full && history->step_count >= history->next_forget)
        threads_forget(history, now_ns);
    if (history->thread_count == threads_max) {
        history->has_refused_threads = true;
        return NULL;
    }
    struct thread_steps *thread = thread_slot(history, thread_id);
    thread->thread_id = thread_id;
    history->thread_count++;
    return thread;
}

void scope_history_step(struct scope_history *history, uint32_t thread_id, int64_t time_ns, uint64_t scope_id)
{
    struct thread_steps *thread = thread_slot(history, thread_id);
    history->step_count++;
    if (!thread->thread_id && !(thread = thread_make(history, thread_id, time_ns)))
        return;
    thread->last = (struct step){time_ns, scope_id};
    if (thread->count == thread->capacity && !steps_grow(history, thread)) {
        thread->has_forgotten = true;
        if (!thread->capacity)
            return;
        thread->first++;
        thread->count--;
    }
    thread->steps[(thread->first + thread->count++) & (thread->capacity - 1)] = thread->last;
    history->steps_since_relax++;
}

bool scope_history_find(struct scope_history *history, uint32_t thread_id, int64_t time_ns, uint64_t *scope_id)
{
    const struct thread_steps *thread = thread_slot(history, thread_id);
    *scope_id = 0;
    if (!thread->thread_id)
        return !history->has_refused_threads && time_ns >= history->forgotten_ns;
    if (time_ns >= thread->last.time_ns) {
        *scope_id = thread->last.scope_id;
        return true;
    }
    uint64_t low = 0, high = thread->count; /* first step after time_ns */
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (thread->steps[(thread->first + middle) & (thread->capacity - 1)].time_ns <= time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low)
        return !thread->has_forgotten && time_ns >= history->forgotten_ns;
    *scope_id = thread->steps[(thread->first + low - 1) & (thread->capacity - 1)].scope_id;
    return true;
}

bool scope_history_is_pressed(const struct scope_history *history)
{
    return history->steps_since_relax > steps_max / 2;
}

void scope_history_relax(struct scope_history *history)
{
    history->steps_since_relax = 0;
}

size_t scope_history_bytes(const struct scope_history *history)
{
    return sizeof *history + history->slot_count * sizeof *history->threads + paths_max * sizeof *history->paths +
           history->steps_allocated * sizeof(struct step);
}
