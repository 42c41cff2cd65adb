/* SPDX-License-Identifier: Apache-2.0 */
#include "base/stages.h"

#include "base/clock.h"
#include "base/own_thread.h"
#include "base/watch.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

enum { reserve_percent = 2, step_us_first = 20, step_us_max = 2000 };

struct stages {
    const struct stage_plan *plan;
    void *user;
    int64_t began_ns, budget_ns;
    _Atomic size_t index; /* of the current stage; the thread that increments it continues */
    bool is_left;
};

static _Atomic int64_t limit_ns = INT64_MAX; /* limits the waits of the current stage */

int64_t stages_until_ns(int64_t wait_ns)
{
    int64_t until_ns = clock_mono_ns() + wait_ns, limit = atomic_load(&limit_ns);
    return until_ns < limit ? until_ns : limit;
}

void stages_after_fork_in_child(void)
{
    atomic_store(&limit_ns, INT64_MAX);
}

static int64_t deadline_ns(const struct stages *stages, unsigned percent)
{
    return stages->began_ns + stages->budget_ns / 100 * percent;
}

static void *run(void *argument)
{
    struct stages *stages = argument;
    size_t index = atomic_load(&stages->index);
    while (index < stages->plan->count) {
        const struct stage *stage = &stages->plan->stages[index];
        atomic_store(&limit_ns, stage->hung_percent == STAGE_UNLIMITED
                                    ? INT64_MAX
                                    : deadline_ns(stages, stage->hung_percent - reserve_percent));
        stage->run(stages->user);
        if (!atomic_compare_exchange_strong(&stages->index, &index, index + 1))
            return NULL; /* abandoned; another thread continues */
        index++;
    }
    return NULL;
}

/* Waits until the thread has ended (true), or abandons its current stage so that the next one can begin. */
static bool await(struct stages *stages, pthread_t thread)
{
    const struct stage_plan *plan = stages->plan;
    useconds_t step_us = step_us_first;
    while (pthread_tryjoin_np(thread, NULL)) {
        size_t index = atomic_load(&stages->index);
        const char *call = NULL;
        int64_t now_ns = clock_mono_ns();
        bool is_hung = index < plan->count && now_ns >= deadline_ns(stages, plan->stages[index].hung_percent) &&
                       watch_abandon(thread, now_ns - plan->call_ns, &call);
        if (is_hung) /* possibly in a later stage; it cannot advance any more */
            index = atomic_fetch_add(&stages->index, 1);
        bool is_busy = !is_hung && index < plan->count && plan->stages[index].busy_percent != STAGE_UNLIMITED &&
                       now_ns >= deadline_ns(stages, plan->stages[index].busy_percent) &&
                       atomic_compare_exchange_strong(&stages->index, &index, index + 1);
        if (is_busy) {
            pthread_detach(thread);
            stages->is_left = true;
        }
        if (is_hung || is_busy) {
            plan->on_failure(stages->user, index, is_hung ? STAGE_HUNG : STAGE_BUSY, call);
            return false;
        }
        usleep(step_us);
        step_us = step_us < step_us_max ? step_us * 2 : step_us_max;
    }
    return true;
}

void stages_run(const struct stage_plan *plan, void *user, int64_t budget_ns)
{
    struct stages *stages = calloc(1, sizeof *stages);
    if (!stages) { /* without memory the time cannot be bounded */
        for (size_t i = 0; i < plan->count; i++)
            plan->stages[i].run(user);
        return;
    }
    *stages = (struct stages){.plan = plan, .user = user, .began_ns = clock_mono_ns(), .budget_ns = budget_ns};
    bool is_over = false;
    while (!is_over && atomic_load(&stages->index) < plan->count) {
        pthread_t thread;
        if (own_thread_start(&thread, plan->thread_name, OWN_THREAD_STACK_LARGE, run, stages))
            is_over = await(stages, thread);
        else
            (void)run(stages);
    }
    atomic_store(&limit_ns, INT64_MAX);
    if (!stages->is_left) /* otherwise a thread may still check whether it was abandoned */
        free(stages);
}
