/* SPDX-License-Identifier: Apache-2.0 */
/* The session's mutex. Its holder may be deep inside a vendor's library, which can call gpufl back on the same
 * thread, or on another thread that the first one then waits for, and can fork. The mutex therefore records its
 * holder, and neither a start from such a call nor a fork waits for it indefinitely. */
#ifndef GPUFL_SDK_SESSION_MUTEX_H
#define GPUFL_SDK_SESSION_MUTEX_H

#include <stdbool.h>

void session_mutex_lock(void);
bool session_mutex_trylock(void);
bool session_mutex_lock_in_time(void); /* false: it was held for two seconds */
void session_mutex_unlock(void);
/* Call on a thread that works for the holder, which waits for this thread. */
void session_mutex_borrow(void);
void session_mutex_give_back(void);
bool session_mutex_is_own(void); /* this thread holds it */

/* The fork handlers. Before: takes the mutex, unless this thread already has it, and with a timeout. After: returns
 * whether it was taken, and unlocks it; the child always gets a new mutex. */
void session_mutex_before_fork(void);
bool session_mutex_after_fork_in_parent(void);
bool session_mutex_after_fork_in_child(void);

#endif
