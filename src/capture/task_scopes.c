/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/task_scopes.h"

#include "capture/thread_log_own.h"

int (*_Atomic task_scopes_current)(void);

enum { task_slots = 256 }; /* tasks that run at the same time: more than a program has */

/* Direct-mapped by number. Written by the thread that begins a task, read by the threads that work on it. */
static struct {
    _Atomic uint64_t task; /* + 1; 0: none */
    _Atomic uint64_t token;
} tasks[task_slots];

void task_scopes_follow(int (*current)(void))
{
    atomic_store(&task_scopes_current, current);
}

void task_scopes_bind(int task, uint64_t token)
{
    if (task < 0)
        return;
    unsigned slot = (unsigned)task % task_slots;
    atomic_store(&tasks[slot].task, 0);
    atomic_store(&tasks[slot].token, token);
    atomic_store(&tasks[slot].task, (uint64_t)task + 1);
}

static uint64_t token_of(int task)
{
    unsigned slot = (unsigned)task % task_slots;
    if (atomic_load(&tasks[slot].task) != (uint64_t)task + 1)
        return 0;
    uint64_t token = atomic_load(&tasks[slot].token);
    return atomic_load(&tasks[slot].task) == (uint64_t)task + 1 ? token : 0;
}

static bool has_open(const struct thread_log *log, enum scope_stack stack)
{
    return log->stacks_open[stack].kept || log->stacks_open[stack].dropped;
}

void task_scopes_enter(int (*current)(void))
{
    int task = current();
    if (task < 0)
        return; /* between two nodes of a task: still working for it */
    struct thread_log *log = thread_log_own;
    bool is_of_session = log && log->epoch == atomic_load_explicit(&thread_log_state.epoch, memory_order_acquire);
    if (is_of_session && log->task == (uint64_t)task + 1)
        return;
    if (is_of_session && (has_open(log, SCOPE_STACK_API) || has_open(log, SCOPE_STACK_ADOPTED)))
        return; /* the program says itself what this thread works for */
    uint64_t token = token_of(task);
    bool is_known = thread_logs_is_token(token) && !(log && token_ring(token) == log->number);
    if (is_of_session && log->task)
        (void)thread_log_scope_end(SCOPE_STACK_TASK);
    if (is_of_session)
        log->task = 0;
    if (!is_known || thread_log_adopt(SCOPE_STACK_TASK, token).level < 0)
        return;
    thread_log_own->task = (uint64_t)task + 1;
}
