/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/scope_history.h"

#include <stdlib.h>
#include <string.h>

enum {
    steps_first = 256,
    steps_max = 64 * 1024,        /* per thread: 1 MiB */
    steps_total_max = 512 * 1024, /* all threads: 8 MiB */
    threads_max = 4096
};

struct step {
    int64_t time_ns;
    uint64_t scope_id;
};

struct thread_steps {
    uint32_t thread_id;
    uint32_t capacity;     /* power of two */
    uint64_t first, count; /* ring: steps[(first + i) & (capacity - 1)] */
    struct step *steps;
    bool has_forgotten;
};

struct scope_history {
    struct thread_steps *threads; /* open addressing by thread id; thread_id 0 = free */
    uint32_t slot_count, thread_count;
    uint64_t steps_allocated, steps_since_relax;
};

gpufl_status scope_history_make(struct scope_history **out)
{
    struct scope_history *history = calloc(1, sizeof *history);
    if (!history)
        return GPUFL_E_NO_MEMORY;
    history->slot_count = threads_max * 2;
    history->threads = calloc(history->slot_count, sizeof *history->threads);
    if (!history->threads) {
        free(history);
        return GPUFL_E_NO_MEMORY;
    }
    *out = history;
    return GPUFL_OK;
}

void scope_history_free(struct scope_history *history)
{
    if (!history)
        return;
    for (uint32_t i = 0; i < history->slot_count; i++)
        free(history->threads[i].steps);
    free(history->threads);
    free(history);
}

static struct thread_steps *thread_slot(struct scope_history *history, uint32_t thread_id)
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

void scope_history_step(struct scope_history *history, uint32_t thread_id, int64_t time_ns, uint64_t scope_id)
{
    struct thread_steps *thread = thread_slot(history, thread_id);
    if (!thread->thread_id) {
        if (history->thread_count == threads_max)
            return; /* its kernels stay unattributed: find() knows no such thread */
        thread->thread_id = thread_id;
        history->thread_count++;
    }
    if (thread->count == thread->capacity && !steps_grow(history, thread)) {
        if (!thread->capacity)
            return;
        thread->first++;
        thread->count--;
        thread->has_forgotten = true;
    }
    thread->steps[(thread->first + thread->count++) & (thread->capacity - 1)] = (struct step){time_ns, scope_id};
    history->steps_since_relax++;
}

bool scope_history_find(struct scope_history *history, uint32_t thread_id, int64_t time_ns, uint64_t *scope_id)
{
    const struct thread_steps *thread = thread_slot(history, thread_id);
    *scope_id = 0;
    if (!thread->thread_id || !thread->count)
        return true;
    uint64_t low = 0, high = thread->count; /* first step after time_ns */
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (thread->steps[(thread->first + middle) & (thread->capacity - 1)].time_ns <= time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low)
        return !thread->has_forgotten;
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
    return sizeof *history + history->slot_count * sizeof *history->threads +
           history->steps_allocated * sizeof(struct step);
}
