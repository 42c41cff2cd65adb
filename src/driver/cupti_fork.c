/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/cupti_fork.h"

#include "base/timed_lock.h"
#include "driver/cuda.h"
#include "driver/cupti_subscription.h"
#include "driver/cupti_table.h"

enum { fork_wait_ms = 100 }; /* a flush takes about one millisecond */

enum inheritance {
    INHERITANCE_NONE,  /* CUPTI was never started, or was finalized since the fork */
    INHERITANCE_WHOLE, /* the parent's subscription, and no thread was inside CUPTI */
    INHERITANCE_BUSY   /* a thread of the parent was inside CUPTI */
};

static pthread_mutex_t use_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool is_used; /* by this process */
static _Thread_local bool is_locked_for_fork;
static enum inheritance inheritance; /* written in the child while it is single-threaded */

void cupti_use_begin(void)
{
    pthread_mutex_lock(&use_lock);
}

void cupti_use_end(void)
{
    pthread_mutex_unlock(&use_lock);
}

void cupti_use_noted(void)
{
    atomic_store(&is_used, true);
}

void cupti_before_fork(void)
{
    /* With a hanging call every fork would wait for the whole timeout. */
    is_locked_for_fork = cupti_trace_is_stuck() ? pthread_mutex_trylock(&use_lock) == 0
                                                : mutex_lock_in_time(&use_lock, fork_wait_ms * INT64_C(1000000));
}

void cupti_after_fork_in_parent(void)
{
    if (is_locked_for_fork)
        pthread_mutex_unlock(&use_lock);
}

void cupti_after_fork_in_child(bool is_whole)
{
    pthread_mutex_init(&use_lock, NULL);
    if (atomic_exchange(&is_used, false))
        inheritance = is_whole && is_locked_for_fork ? INHERITANCE_WHOLE : INHERITANCE_BUSY;
}

gpufl_status cupti_start_afresh(struct cupti *cupti, struct problem *problem)
{
    if (inheritance == INHERITANCE_NONE)
        return GPUFL_OK;
    if (cuda_is_of_parent())
        return problem_set(
            problem, GPUFL_E_UNSUPPORTED,
            "CUDA was initialized before this process was forked, so it cannot be used here; fork before "
            "the first CUDA call, or start children with exec (Python: the 'spawn' start method)");
    if (inheritance == INHERITANCE_BUSY || !cupti->call.finalize)
        return problem_set(problem, GPUFL_E_UNSUPPORTED,
                           "this process was forked while its parent was recording%s, so CUPTI cannot be started here; "
                           "start the session in the children only",
                           cupti->call.finalize ? " and a thread was inside CUPTI" : "");
    int result = cupti_note(cupti, "cuptiFinalize", cupti->call.finalize());
    if (result != CUPTI_ABI_SUCCESS)
        return cupti_refusal(cupti, "cuptiFinalize", result, problem);
    inheritance = INHERITANCE_NONE;
    return GPUFL_OK;
}
