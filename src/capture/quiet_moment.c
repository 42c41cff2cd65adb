/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/quiet_moment.h"

#include "base/clock.h"
#include "driver/captures.h"

enum {
    first_wait_ms = 100, /* for the GPU, on the first attempt; later it is known to be idle before launches are held
                          * back */
    rest_doublings_max = 6,
    rest_first_max_ms = 2000 /* however long the window is: two minutes at most in the end */
};

/* The number of the moment whose gate this thread has passed. */
static _Thread_local uint32_t launching_in;
static _Atomic uint32_t moments_made;

void quiet_moment_init(struct quiet_moment *moment, uint32_t wait_ms)
{
    moment->wait_ms = wait_ms < QUIET_WAIT_MS ? wait_ms : QUIET_WAIT_MS;
    moment->number = atomic_fetch_add(&moments_made, 1) + 1;
    launch_gate_init(&moment->gate);
    deep_contexts_init(&moment->contexts);
}

void quiet_moment_destroy(struct quiet_moment *moment)
{
    deep_contexts_destroy(&moment->contexts);
    launch_gate_destroy(&moment->gate);
}

static void enter(struct quiet_moment *moment)
{
    launch_gate_enter(&moment->gate);
    launching_in = moment->number;
}

static void leave(struct quiet_moment *moment)
{
    if (launching_in == moment->number)
        launch_gate_leave(&moment->gate);
    launching_in = 0;
}

void quiet_moment_launch(struct quiet_moment *moment, bool is_enter)
{
    if (!is_enter) {
        leave(moment);
        return;
    }
    enter(moment);
    if (!atomic_load(&moment->first_ns))
        atomic_store(&moment->first_ns, clock_mono_ns());
}

void quiet_moment_capture(struct quiet_moment *moment, bool is_enter)
{
    if (is_enter)
        enter(moment); /* so that none begins during a wait for the GPU */
    else
        leave(moment);
}

void quiet_moment_reset(struct quiet_moment *moment)
{
    moment->tries = 0;
    moment->rest_until_ns = 0;
    atomic_store(&moment->first_ns, 0);
}

int64_t quiet_moment_due_ns(struct quiet_moment *moment, uint32_t after_ms)
{
    int64_t first_ns = atomic_load(&moment->first_ns), due_ns = first_ns + after_ms * INT64_C(1000000);
    if (!first_ns)
        return INT64_MAX;
    return due_ns > moment->rest_until_ns ? due_ns : moment->rest_until_ns;
}

bool quiet_moment_is_due(struct quiet_moment *moment, uint32_t after_ms)
{
    /* While the wait of an earlier attempt is still running, launches need not be held back. */
    return clock_mono_ns() >= quiet_moment_due_ns(moment, after_ms) && !captures_any() &&
           !deep_contexts_are_awaited(&moment->contexts);
}

/* Each attempt holds launches back, and a kernel that waits for one of them uses up the whole timeout: after
 * failures, attempts become rare. */
static void rest(struct quiet_moment *moment, uint32_t after_ms)
{
    uint32_t first_ms = after_ms < rest_first_max_ms ? after_ms : rest_first_max_ms;
    uint32_t doublings = moment->tries < rest_doublings_max ? moment->tries : rest_doublings_max;
    moment->tries++;
    moment->rest_until_ns = clock_mono_ns() + ((INT64_C(1) << doublings) - 1) * first_ms * INT64_C(1000000);
}

static bool begin(struct quiet_moment *moment, uint32_t after_ms, bool is_before_captures)
{
    moment->is_closed = launch_gate_close(&moment->gate, false, moment->wait_ms);
    if (moment->is_closed && !is_before_captures && captures_any()) {
        quiet_moment_end(moment);
        return false; /* due again soon */
    }
    if (moment->is_closed &&
        deep_contexts_synchronize(&moment->contexts, moment->tries ? moment->wait_ms : first_wait_ms))
        return true;
    quiet_moment_end(moment);
    rest(moment, after_ms);
    return false;
}

bool quiet_moment_begin(struct quiet_moment *moment, uint32_t after_ms)
{
    return begin(moment, after_ms, false);
}

bool quiet_moment_begin_again(struct quiet_moment *moment, bool is_before_captures)
{
    enum { after_ms = 500 };
    return clock_mono_ns() >= moment->rest_until_ns && begin(moment, after_ms, is_before_captures);
}

bool quiet_moment_begin_last(struct quiet_moment *moment)
{
    moment->is_closed = launch_gate_close(&moment->gate, false, QUIET_GATE_LAST_MS);
    return moment->is_closed && !captures_any() && deep_contexts_synchronize(&moment->contexts, QUIET_WAIT_MS);
}

const char *quiet_moment_last_refusal(const struct quiet_moment *moment)
{
    return captures_any()                 ? "a graph was being captured at the end"
           : moment->contexts.has_refused ? "CUDA did not wait for the GPU at the end"
           : moment->is_closed            ? "the GPU was still busy when the session had to end"
                                          : "a launch did not return before the session had to end";
}

void quiet_moment_end(struct quiet_moment *moment)
{
    if (moment->is_closed)
        launch_gate_open(&moment->gate, false);
    moment->is_closed = false;
}
