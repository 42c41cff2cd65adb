/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the scopes that the calling thread is in, outermost first, joined by '|'. Maintained only by engines
 * that count by scope. Each thread owns its path, allocated at its first scope and freed when it exits. */
#ifndef GPUFL_CAPTURE_SCOPE_PATH_H
#define GPUFL_CAPTURE_SCOPE_PATH_H

#include "capture/thread_log.h"

/* Enters a scope of one of the thread's stacks (enum scope_stack). Returns the path including it, truncated at 2
 * KiB, or "" when memory is exhausted. */
const char *scope_path_push(uint32_t stack, const char *name, size_t name_size);
/* Leaves the innermost scope of the stack. Returns how many scopes of the thread that began later are still open;
 * -1: the stack has no open scope. Scopes of other stacks keep the paths with which they began. */
int scope_path_pop(uint32_t stack);

#endif
