/* SPDX-License-Identifier: Apache-2.0 */
/* A forked child has the memory of all of the parent's threads but only one of them: locks and claims of the others
 * would be held forever. */
#ifndef GPUFL_DRIVER_FORK_H
#define GPUFL_DRIVER_FORK_H

#include <stdbool.h>

/* The fork handlers; none calls a vendor's library. Before: waits, at most 100 ms, until no thread of gpufl is
 * inside CUPTI. In the child, before anything else in this folder: resets the parent's locks, gates and claims.
 * is_whole: no thread of the parent was starting or stopping the session. */
void driver_before_fork(void);
void driver_after_fork_in_parent(void);
void driver_after_fork_in_child(bool is_whole);

#endif
