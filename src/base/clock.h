/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks. wall = CLOCK_REALTIME, the clock of the log and of CUPTI; mono =
 * CLOCK_MONOTONIC; ticks = the CPU's invariant counter where there is one,
 * else wall nanoseconds. A tick costs about a third of a clock_gettime, which
 * is why scopes are stamped with ticks and converted by the collector. */
#ifndef GPUFL_BASE_CLOCK_H
#define GPUFL_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_read_ns(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
static inline struct timespec clock_timespec(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}
static inline int64_t clock_wall_ns(void)
{
    return clock_read_ns(CLOCK_REALTIME);
}
static inline int64_t clock_mono_ns(void)
{
    return clock_read_ns(CLOCK_MONOTONIC);
}
static inline int64_t clock_thread_cpu_ns(void)
{
    return clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Set once by clock_setup before any other thread reads it. */
extern int clock_has_invariant_ticks;

static inline uint64_t clock_ticks(void)
{
#if defined(__x86_64__)
    if (__builtin_expect(clock_has_invariant_ticks, 1))
        return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    if (clock_has_invariant_ticks) {
        uint64_t ticks;
        __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
        return ticks;
    }
#endif
    return (uint64_t)clock_wall_ns();
}

/* Finds out which counter can be used; idempotent. */
void clock_setup(void);

/* One simultaneous reading of the clocks; the best of a few tries. */
struct clock_reading {
    int64_t wall_ns;
    int64_t mono_ns;
    uint64_t ticks;
};
struct clock_reading clock_read_all(void);

/* Ticks to wall time by the line through two readings. The second reading is
 * renewed by tick_scale_update so that drift and slewing are followed. */
struct tick_scale {
    struct clock_reading base, last;
    double ns_per_tick;
    int64_t wall_step_ns; /* how much the wall clock jumped against mono at the last update */
};
void tick_scale_start(struct tick_scale *scale);
void tick_scale_update(struct tick_scale *scale);
int64_t tick_scale_wall_ns(const struct tick_scale *scale, uint64_t ticks);

#endif
