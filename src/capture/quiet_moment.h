/* SPDX-License-Identifier: Apache-2.0 */
/* A moment in which the program launches nothing and the GPU is idle: only then can CUPTI's counters and samples be
 * switched without a hang. Launches are held back (launch_gate.h) and the GPU is waited for (gpu_waiter.h), both for
 * a bounded time; after a failure the next attempts become rarer. There is no quiet moment while a graph is
 * captured, because waiting for the GPU would invalidate the capture. One thread makes quiet moments; launches,
 * captures and contexts come from any thread. */
#ifndef GPUFL_CAPTURE_QUIET_MOMENT_H
#define GPUFL_CAPTURE_QUIET_MOMENT_H

#include "capture/deep_contexts.h"
#include "capture/launch_gate.h"

struct quiet_moment {
    struct launch_gate gate;
    struct deep_contexts contexts; /* whose work is waited for */
    uint32_t number;               /* from 1, process-wide */
    uint32_t wait_ms;              /* the longest of its waits */
    uint32_t tries;                /* failed attempts since the last reset */
    int64_t rest_until_ns;         /* no new attempt before */
    _Atomic int64_t first_ns;      /* the first launch since the last reset; 0: none */
    bool is_closed;
};

void quiet_moment_init(struct quiet_moment *moment, uint32_t wait_ms);
void quiet_moment_destroy(struct quiet_moment *moment);
/* Call on entry to and exit from each launch. */
void quiet_moment_launch(struct quiet_moment *moment, bool is_enter);
/* Call on entry to and exit from each call that begins or ends a capture, after captures.h was notified. */
void quiet_moment_capture(struct quiet_moment *moment, bool is_enter);
/* Starts a new period: only later launches count. */
void quiet_moment_reset(struct quiet_moment *moment);
/* The program has been launching for that long since the last reset, and an attempt may succeed. An idle program
 * thus does not use up its windows. */
bool quiet_moment_is_due(struct quiet_moment *moment, uint32_t after_ms);
/* The earliest time, by clock_mono_ns, at which it is due; INT64_MAX: nothing was launched yet. */
int64_t quiet_moment_due_ns(struct quiet_moment *moment, uint32_t after_ms);
/* True: it is quiet until quiet_moment_end. False: a graph is captured, a launch did not return in time, or the GPU
 * was busy or could not be waited for; the next attempt is due after a multiple of after_ms. */
bool quiet_moment_begin(struct quiet_moment *moment, uint32_t after_ms);
/* The same, and false until the next attempt is due. is_before_captures: every thread that is about to capture a
 * graph waits for the end of this moment, so the known captures have not begun. */
bool quiet_moment_begin_again(struct quiet_moment *moment, bool is_before_captures);
/* The last one of a session: waits longer, and holds launches back even if the GPU is busy or a graph is captured.
 * True: the GPU is idle. */
bool quiet_moment_begin_last(struct quiet_moment *moment);
const char *quiet_moment_last_refusal(const struct quiet_moment *moment); /* why quiet_moment_begin_last returned
                                                                           * false; call it before quiet_moment_end */
void quiet_moment_end(struct quiet_moment *moment);                       /* a no-op if none has begun */

/* The waits of the last quiet moment, and the longest of an earlier one. */
enum { QUIET_GATE_LAST_MS = 5000, QUIET_WAIT_MS = 2000 };

#endif
