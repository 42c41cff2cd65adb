/* SPDX-License-Identifier: Apache-2.0 */
/* The process's one session, for the other files of the SDK. */
#ifndef GPUFL_SDK_SESSION_H
#define GPUFL_SDK_SESSION_H

#include "base/status.h"

/* Where a step failed without words, as those that ran out of memory do: the status in words. */
void problem_complete(struct problem *problem, gpufl_status status);
/* Sets the calling thread's gpufl_last_error text and returns the status. */
gpufl_status session_fail(gpufl_status status, const struct problem *problem);
/* Whether the last init said that gpufl is to do nothing: then no other call does anything either. */
bool session_is_disabled(void);
/* Scopes of the public API and of NVTX: to the thread's ring, the sampler and the engine. */
struct scope_text;
/* The level of the scope in its stack, 0 the outermost; -1: none such, or it is not recorded. */
int scope_begin(const struct scope_text *text);
int scope_end(uint32_t stack); /* enum scope_stack */
void nvtx_abandon(void);       /* in a forked child */

/* Who started the session decides when it ends: in a program traced by `gpufl trace`, the program's
 * own init and shutdown only join and leave. An injected start does not wait for what another thread does with the
 * session: GPUFL_OK then, and that thread sees to it. */
gpufl_status session_start(const gpufl_options *given, bool is_injected);
/* Ends the session whoever still uses it; waits for a start or an end on another thread for two seconds. */
void session_end_with_process(void);
/* Calls the function with the collector of the running session, if there is one; it stays while the function runs.
 * False: the session was not to be had within two seconds, or this thread is just starting or ending it. */
struct collector;
bool session_with_collector(void (*function)(struct collector *collector, void *user), void *user);
/* HIP starts in a program traced from outside: starts the session, or adds AMD's part to it. */
void session_join_hip(void);

#endif
