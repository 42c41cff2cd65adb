/* SPDX-License-Identifier: Apache-2.0 */
/* Numbered tasks of a framework that runs them on its own threads, such as PyTorch's backward passes. A thread without
 * scopes that launches, or begins a scope or an operator, asks for the number of its task and works for the task's
 * scope. Needs no session. */
#ifndef GPUFL_CAPTURE_TASK_SCOPES_H
#define GPUFL_CAPTURE_TASK_SCOPES_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

extern int (*_Atomic task_scopes_current)(void);

/* current: the number of the calling thread's task, negative: none. It is called on the user's threads. NULL: no more. */
void task_scopes_follow(int (*current)(void));
/* The task works for the token's scope. */
void task_scopes_bind(int task, uint64_t token);
void task_scopes_enter(int (*current)(void));

/* Call on the user's thread before what is to belong to the task's scope. */
static inline void task_scopes_check(void)
{
    int (*current)(void) = atomic_load_explicit(&task_scopes_current, memory_order_relaxed);
    if (__builtin_expect(current != NULL, 0))
        task_scopes_enter(current);
}

#endif
