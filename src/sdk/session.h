/* SPDX-License-Identifier: Apache-2.0 */
/* The process's single session, for the other files of the SDK. */
#ifndef GPUFL_SDK_SESSION_H
#define GPUFL_SDK_SESSION_H

#include "base/status.h"

/* If a step failed without a problem text, for example when memory was exhausted: sets the text for the status. */
void problem_complete(struct problem *problem, gpufl_status status);
/* Sets the calling thread's gpufl_last_error text and returns the status. */
gpufl_status session_fail(gpufl_status status, const struct problem *problem);
/* Whether the last init disabled gpufl: then all other calls are no-ops. */
bool session_is_disabled(void);
/* Scopes of the public API and of NVTX: recorded in the thread's ring and passed to the sampler and the engine. */
struct scope_text;
/* The level of the scope in its stack, 0 the outermost; -1: no such scope, or it is not recorded. */
int scope_begin(const struct scope_text *text);
int scope_end(uint32_t stack); /* enum scope_stack */
void nvtx_abandon(void);       /* in a forked child */

/* The session ends with whoever started it: in a program traced by `gpufl trace`, the program's own init and
 * shutdown only join and leave. An injected start does not wait for another thread that is using the session: it
 * returns GPUFL_OK, and that thread completes the start. */
gpufl_status session_start(const gpufl_options *given, bool is_injected);
/* Ends the session even if it is in use; waits up to two seconds for a start or an end on another thread. */
void session_end_with_process(void);
/* Calls the function with the collector of the running session, if there is one; it stays valid while the function
 * runs. False: the session was locked for two seconds, or this thread is starting or ending it. */
struct collector;
bool session_with_collector(void (*function)(struct collector *collector, void *user), void *user);
/* HIP starts in a program traced from outside: starts the session, or adds AMD's part to it. */
void session_join_hip(void);

#endif
