/* SPDX-License-Identifier: Apache-2.0 */
/* Consumers of scopes other than the thread's log: the system sampler, which may be on only inside scopes, and an
 * engine that counts by scope. Scopes reach them without the session's mutex. */
#ifndef GPUFL_SDK_SCOPE_LISTENERS_H
#define GPUFL_SDK_SCOPE_LISTENERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct system_sampler;
struct deep;

void scope_listeners_add_sampler(struct system_sampler *sampler);
void scope_listeners_add_engine(struct deep *deep);
/* Returns when no scope uses them any more, so that they may be freed. */
void scope_listeners_remove(void);
/* In a forked child. */
void scope_listeners_abandon(void);

/* A thread entered (or left) its outermost scope: sampling is on while any thread is inside one. */
void scope_listeners_hold(bool is_hold);
/* Passes every edge of every scope to an engine that counts by scope; costs one load when there is none. stack: enum
 * scope_stack. */
void scope_listeners_tell(bool is_begin, uint32_t stack, const char *name, size_t name_size);

#endif
