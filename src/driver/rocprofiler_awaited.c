/* SPDX-License-Identifier: Apache-2.0 */
/* GPU work whose records have not arrived yet. HSA's signal handler writes a kernel's or a copy's record to the
 * buffer some time after the work has ended, and after the call that waited for it has returned. At the end of a
 * trace every started piece of work is therefore awaited, for a bounded time, and missing records are counted. */
#include "base/clock.h"
#include "base/stages.h"
#include "driver/rocprofiler_table.h"

#include <time.h>

enum {
    wait_ms = 2000,
    quiet_ms = 100, /* if starts are not reported: this long after the last record no more are expected */
    first_pause_us = 100,
    longest_pause_us = 5000
};

void rocprofiler_awaited_begin(struct rocprofiler *rocprofiler)
{
    for (int i = 0; i < ROCPROFILER_AWAITED_KINDS; i++) {
        struct rocprofiler_awaited *awaited = &rocprofiler->awaited[i];
        awaited->earlier_id = atomic_load(&awaited->last_id);
        atomic_store(&awaited->started, 0);
        atomic_store(&awaited->delivered, 0);
    }
}

void rocprofiler_awaited_start(struct rocprofiler_awaited *awaited, uint64_t id)
{
    uint64_t last = atomic_load(&awaited->last_id);
    while (id > last && !atomic_compare_exchange_weak(&awaited->last_id, &last, id)) {
    }
    atomic_fetch_add(&awaited->started, 1);
}

bool rocprofiler_awaited_deliver(struct rocprofiler_awaited *awaited, uint64_t id)
{
    if (id && id <= awaited->earlier_id)
        return false;
    atomic_fetch_add(&awaited->delivered, 1);
    return true;
}

static uint64_t missing(const struct rocprofiler_awaited *awaited)
{
    uint64_t started = atomic_load(&awaited->started), delivered = atomic_load(&awaited->delivered);
    return awaited->is_reported && started > delivered ? started - delivered : 0;
}

/* True when every buffer was flushed; a busy one must be tried again. */
static bool flush_all(struct rocprofiler *rocprofiler)
{
    bool is_done = true;
    for (int lane = 0; lane < ROCPROFILER_LANES; lane++)
        if (rocprofiler->buffers[lane].handle)
            is_done &= rocprofiler->call.flush_buffer(rocprofiler->buffers[lane]) == ROCPROFILER_ABI_SUCCESS;
    return is_done;
}

static uint64_t delivered_of_unreported(const struct rocprofiler *rocprofiler, bool *are_all_reported)
{
    uint64_t sum = 0;
    *are_all_reported = true;
    for (int i = 0; i < ROCPROFILER_AWAITED_KINDS; i++) {
        *are_all_reported &= rocprofiler->awaited[i].is_reported;
        sum += rocprofiler->awaited[i].is_reported ? 0 : atomic_load(&rocprofiler->awaited[i].delivered);
    }
    return sum;
}

bool rocprofiler_await(struct rocprofiler *rocprofiler)
{
    const int64_t begin_ns = clock_mono_ns(), deadline_ns = stages_until_ns((int64_t)wait_ms * 1000000);
    int64_t quiet_since_ns = begin_ns;
    uint64_t seen = 0;
    for (long pause_us = first_pause_us;;
         pause_us = pause_us * 2 < longest_pause_us ? pause_us * 2 : longest_pause_us) {
        bool is_flushed = flush_all(rocprofiler), are_all_reported = true;
        int64_t now_ns = clock_mono_ns();
        uint64_t delivered = delivered_of_unreported(rocprofiler, &are_all_reported);
        if (delivered != seen)
            quiet_since_ns = now_ns;
        seen = delivered;
        bool is_quiet = are_all_reported || now_ns - quiet_since_ns >= (int64_t)quiet_ms * 1000000;
        bool is_complete = is_flushed && is_quiet;
        for (int i = 0; i < ROCPROFILER_AWAITED_KINDS; i++)
            is_complete &= !missing(&rocprofiler->awaited[i]);
        if (is_complete || now_ns >= deadline_ns)
            return is_flushed;
        nanosleep(&(struct timespec){0, pause_us * 1000}, NULL);
    }
}

uint64_t rocprofiler_late(const struct rocprofiler *rocprofiler, enum rocprofiler_awaited_kind kind)
{
    return missing(&rocprofiler->awaited[kind]);
}
