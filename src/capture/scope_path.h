/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the scopes that the calling thread is in, from the outside in,
 * joined by '|'. Kept only by engines that count by scope. Each thread owns its
 * path, made at its first scope and freed when it exits. */
#ifndef GPUFL_CAPTURE_SCOPE_PATH_H
#define GPUFL_CAPTURE_SCOPE_PATH_H

#include "capture/thread_log.h"

/* Enters a scope of one of the thread's stacks (enum scope_stack); the path with it, cut at 2 KiB, "" when there is no
 * memory for it. */
const char *scope_path_push(uint32_t stack, const char *name, size_t name_size);
/* Leaves the innermost scope of the stack: how many scopes of the thread that began later are still open; -1: the stack
 * has none open. Scopes of other stacks keep the paths that they began with. */
int scope_path_pop(uint32_t stack);

#endif
