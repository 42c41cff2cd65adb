/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

int clock_has_invariant_ticks;

void clock_setup(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    if (__get_cpuid(0x80000007, &a, &b, &c, &d))
        clock_has_invariant_ticks = (d >> 8) & 1;
#elif defined(__aarch64__)
    clock_has_invariant_ticks = 1;
#endif
}

struct clock_reading clock_read_all(void)
{
    struct clock_reading best = {0};
    uint64_t best_span = UINT64_MAX;
    for (int attempt = 0; attempt < 5; attempt++) {
        uint64_t before = clock_ticks();
        int64_t wall_ns = clock_wall_ns();
        uint64_t after = clock_ticks();
        if (after - before < best_span) {
            best_span = after - before;
            best.wall_ns = wall_ns;
            best.mono_ns = clock_mono_ns();
            best.ticks = before + (after - before) / 2;
        }
    }
    return best;
}

void tick_scale_start(struct tick_scale *scale)
{
    scale->base = scale->last = clock_read_all();
    scale->wall_step_ns = 0;
    scale->ns_per_tick = 1.0;
    if (!clock_has_invariant_ticks)
        return;
    /* A short busy calibration; every later update has a far longer arm. */
    int64_t until_ns = scale->base.mono_ns + 2000000;
    while (clock_mono_ns() < until_ns) {
    }
    tick_scale_update(scale);
}

void tick_scale_update(struct tick_scale *scale)
{
    struct clock_reading now = clock_read_all();
    int64_t wall_ns = now.wall_ns - scale->last.wall_ns;
    int64_t mono_ns = now.mono_ns - scale->last.mono_ns;
    scale->wall_step_ns = wall_ns - mono_ns;
    /* Slewing moves wall against mono by at most 500 ppm; more is a step, and a
     * line across a step would bend every time between. */
    int64_t slew_ns = mono_ns / 1000 + 100000;
    if (scale->wall_step_ns > slew_ns || scale->wall_step_ns < -slew_ns)
        scale->base = now;
    else {
        scale->base = scale->last;
        scale->wall_step_ns = 0;
        if (clock_has_invariant_ticks && now.ticks > scale->base.ticks)
            scale->ns_per_tick = (double)(now.wall_ns - scale->base.wall_ns) / (double)(now.ticks - scale->base.ticks);
    }
    scale->last = now;
}

int64_t tick_scale_wall_ns(const struct tick_scale *scale, uint64_t ticks)
{
    if (!clock_has_invariant_ticks)
        return (int64_t)ticks;
    /* The signed difference keeps ticks before the last reading exact. */
    double ns = (double)(int64_t)(ticks - scale->last.ticks) * scale->ns_per_tick;
    return scale->last.wall_ns + (int64_t)(ns < 0 ? ns - 0.5 : ns + 0.5);
}
