/* SPDX-License-Identifier: Apache-2.0 */
/* The process's one session, for the other files of the SDK. */
#ifndef GPUFL_SDK_SESSION_H
#define GPUFL_SDK_SESSION_H

#include "base/status.h"

/* Sets the calling thread's gpufl_last_error text and returns the status. */
gpufl_status session_fail(gpufl_status status, const struct problem *problem);
/* Whether the last init said that gpufl is to do nothing: then no other call does anything either. */
bool session_is_disabled(void);
/* A thread entered (or left) its outermost scope: sampling is on while any is inside. */
void session_hold_sampler(bool is_hold);

/* Who started the session decides when it ends: in a program traced by `gpufl trace`, the program's
 * own init and shutdown only join and leave. */
gpufl_status session_start(const gpufl_options *given, bool is_injected);

#endif
