/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/counting_halt.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <time.h>

enum { wait_default_ms = 5000 };

void counting_halt_init(struct counting_halt *halt)
{
    halt->wait_ms = wait_default_ms;
    atomic_init(&halt->state, HALT_UNASKED);
    pthread_mutex_init(&halt->mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&halt->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

void counting_halt_destroy(struct counting_halt *halt)
{
    pthread_cond_destroy(&halt->changed);
    pthread_mutex_destroy(&halt->mutex);
}

void counting_halt_await(struct counting_halt *halt, struct turn_thread *takes_turns)
{
    if (atomic_load(&halt->state) >= HALT_OVERDUE)
        return;
    int unasked = HALT_UNASKED;
    if (atomic_compare_exchange_strong(&halt->state, &unasked, HALT_ASKED))
        turn_thread_hurry(takes_turns);
    int64_t until_ns = clock_mono_ns() + halt->wait_ms * INT64_C(1000000);
    const struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};
    bool is_in_time = true;
    pthread_mutex_lock(&halt->mutex);
    while (is_in_time && atomic_load(&halt->state) == HALT_ASKED)
        is_in_time = pthread_cond_timedwait(&halt->changed, &halt->mutex, &until) != ETIMEDOUT;
    int asked = HALT_ASKED;
    bool is_late = !is_in_time && atomic_compare_exchange_strong(&halt->state, &asked, HALT_OVERDUE);
    if (is_late)
        pthread_cond_broadcast(&halt->changed);
    pthread_mutex_unlock(&halt->mutex);
    if (is_late)
        log_message(GPUFL_LOG_WARNING,
                    "a graph was held for %u ms and continues while instructions are counted: the GPU was not idle",
                    halt->wait_ms);
}

bool counting_halt_is_asked(const struct counting_halt *halt)
{
    int state = atomic_load(&halt->state);
    return state == HALT_ASKED || state == HALT_OVERDUE;
}

bool counting_halt_is_awaited(const struct counting_halt *halt)
{
    return atomic_load(&halt->state) == HALT_ASKED;
}

void counting_halt_explain(struct problem *problem)
{
    (void)problem_set(problem, GPUFL_E_UNSUPPORTED,
                      "the program captures or launches CUDA graphs, beside which instructions cannot be counted; what "
                      "ran before the first one was");
    log_message(GPUFL_LOG_WARNING, "no more SASS counters: %s", problem->text);
}

void counting_halt_done(struct counting_halt *halt)
{
    pthread_mutex_lock(&halt->mutex);
    atomic_store(&halt->state, HALT_DONE);
    pthread_cond_broadcast(&halt->changed);
    pthread_mutex_unlock(&halt->mutex);
}
