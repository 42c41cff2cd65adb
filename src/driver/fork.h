/* SPDX-License-Identifier: Apache-2.0 */
/* A forked child has the memory of all of the parent's threads and only one of
 * them: what the others held here would stay held. */
#ifndef GPUFL_DRIVER_FORK_H
#define GPUFL_DRIVER_FORK_H

/* In the child, before anything else of this folder: forgets locks, gates and claims of the parent. Calls no vendor's
 * library. */
void driver_abandon(void);

#endif
