/* SPDX-License-Identifier: Apache-2.0 */
/* The mutex of the session. Whoever holds it may be deep inside a vendor's
 * library, which can call gpufl back, on this thread or on another that the first
 * then waits for, and can fork. So it is known who holds it, and neither a start
 * out of such a call nor a fork waits for it without end. */
#ifndef GPUFL_SDK_SESSION_MUTEX_H
#define GPUFL_SDK_SESSION_MUTEX_H

#include <stdbool.h>

void session_mutex_lock(void);
bool session_mutex_trylock(void);
bool session_mutex_lock_in_time(void); /* false: somebody has held it for two seconds */
void session_mutex_unlock(void);
/* On a thread that works for the one that holds it, and that this one waits for. */
void session_mutex_borrow(void);
void session_mutex_give_back(void);
bool session_mutex_is_own(void); /* this thread holds it */

/* The handlers of fork. Before: takes it, but not when this thread has it already, and not for ever. After: whether it
 * was taken, and is unlocked again; in the child it is a new one in any case. */
void session_mutex_before_fork(void);
bool session_mutex_after_fork_in_parent(void);
bool session_mutex_after_fork_in_child(void);

#endif
