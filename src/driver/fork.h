/* SPDX-License-Identifier: Apache-2.0 */
/* A forked child has the memory of all of the parent's threads and only one of
 * them: what the others held here would stay held. */
#ifndef GPUFL_DRIVER_FORK_H
#define GPUFL_DRIVER_FORK_H

#include <stdbool.h>

/* The handlers of fork; none calls a vendor's library. Before: waits, at most 100 ms, until no thread of gpufl's is
 * inside CUPTI. In the child, before anything else of this folder: forgets locks, gates and claims of the parent.
 * is_whole: no thread of the parent was starting or stopping the session. */
void driver_before_fork(void);
void driver_after_fork_in_parent(void);
void driver_after_fork_in_child(bool is_whole);

#endif
