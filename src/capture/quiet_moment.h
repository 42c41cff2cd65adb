/* SPDX-License-Identifier: Apache-2.0 */
/* A moment in which the program launches nothing and the GPU is idle: only then
 * can CUPTI's counters and samples be switched, it hangs otherwise. Launches are
 * kept out (launch_gate.h) and the GPU is waited for (gpu_waiter.h), both for a
 * bounded time; where that fails, the next tries become rare. There is none while
 * a graph is captured: to wait for the GPU would invalidate the capture. One
 * thread makes moments; launches, captures and contexts come from any. */
#ifndef GPUFL_CAPTURE_QUIET_MOMENT_H
#define GPUFL_CAPTURE_QUIET_MOMENT_H

#include "capture/deep_contexts.h"
#include "capture/launch_gate.h"

struct quiet_moment {
    struct launch_gate gate;
    struct deep_contexts contexts; /* whose work is waited for */
    uint32_t number;               /* from 1, in the process */
    uint32_t wait_ms;              /* most for each of its waits */
    uint32_t tries;                /* that failed, since the last reset */
    int64_t rest_until_ns;         /* no further one before */
    _Atomic int64_t first_ns;      /* the first launch since the last reset; 0: none */
    bool is_closed;
};

void quiet_moment_init(struct quiet_moment *moment, uint32_t wait_ms);
void quiet_moment_destroy(struct quiet_moment *moment);
/* Each launch, entered and left. */
void quiet_moment_launch(struct quiet_moment *moment, bool is_enter);
/* Each call that begins or ends a capture, entered and left; captures.h knows of it before. */
void quiet_moment_capture(struct quiet_moment *moment, bool is_enter);
/* What the program does from now on counts. */
void quiet_moment_reset(struct quiet_moment *moment);
/* The program has launched for that long since the last reset, so that an idle one does not use its windows up, and a
 * try may succeed. */
bool quiet_moment_is_due(struct quiet_moment *moment, uint32_t after_ms);
/* The earliest time, by clock_mono_ns, at which it can be; INT64_MAX: nothing was launched yet. */
int64_t quiet_moment_due_ns(struct quiet_moment *moment, uint32_t after_ms);
/* True: it is quiet until quiet_moment_end. False: a graph is captured; or a launch did not return in time, the GPU was at
 * work, or could not be waited for: then the next try is due in a multiple of after_ms. */
bool quiet_moment_begin(struct quiet_moment *moment, uint32_t after_ms);
/* The same, and false until the next try is due. is_before_captures: every thread that is about to capture a graph waits
 * for its end, so that those that are known have not begun. */
bool quiet_moment_begin_again(struct quiet_moment *moment, bool is_before_captures);
/* The last one of a session: waits longer, and keeps launches out also where the GPU is at work or a graph is captured.
 * True: it is idle. */
bool quiet_moment_begin_last(struct quiet_moment *moment);
const char *quiet_moment_last_refusal(const struct quiet_moment *moment); /* why it is not, before its end */
void quiet_moment_end(struct quiet_moment *moment);                       /* nothing to do where none has begun */

/* How long the waits of the last one are, and at most of one before. */
enum { QUIET_GATE_LAST_MS = 5000, QUIET_WAIT_MS = 2000 };

#endif
