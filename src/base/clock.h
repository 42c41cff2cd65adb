/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks. wall = CLOCK_REALTIME, which can be set; mono = CLOCK_MONOTONIC; boot = CLOCK_BOOTTIME, which also runs while
 * the machine is suspended. log = the clock of the log: the wall clock at the start of the session, continued by boot,
 * so that setting the wall clock changes no time in a session. ticks = the CPU's counter if the kernel trusts it, else
 * boot nanoseconds: reading ticks costs about a third of a clock_gettime, so scopes are stamped with ticks and
 * converted by the collector. */
#ifndef GPUFL_BASE_CLOCK_H
#define GPUFL_BASE_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
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
static inline int64_t clock_boot_ns(void)
{
    return clock_read_ns(CLOCK_BOOTTIME);
}
static inline int64_t clock_thread_cpu_ns(void)
{
    return clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Set by clock_setup; read by any thread. */
extern _Atomic bool clock_has_counter;

static inline uint64_t clock_ticks(void)
{
#if defined(__x86_64__)
    if (__builtin_expect(atomic_load_explicit(&clock_has_counter, memory_order_relaxed), 1))
        return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    if (atomic_load_explicit(&clock_has_counter, memory_order_relaxed)) {
        uint64_t ticks;
        __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
        return ticks;
    }
#endif
    return (uint64_t)clock_boot_ns();
}

/* Determines which counter can be used; idempotent. clocksource: the file that names the kernel's clock source; NULL:
 * the default. A counter that the kernel considers unstable, or does not know, is not used. */
void clock_setup(const char *clocksource);

/* Starts the session: the log's clock equals the wall clock now, and no step is known. Before the first call, the log's
 * clock is the wall clock. */
void clock_log_start(void);
/* The log's clock; any thread. */
int64_t clock_log_ns(void);
/* The log's time at which the wall clock showed wall_ns: see wall_steps_log_ns. Any thread. */
int64_t clock_log_of_wall_ns(int64_t wall_ns, int64_t earliest_ns, bool *is_certain);
/* False: no change of the wall clock since clock_log_start was noticed, so both clocks are equal. */
bool clock_has_steps(void);
/* Checks whether the wall clock was set; call before converting its times. gpufl's threads only. */
void clock_notice_step(void);
/* The same; returns by how much it was set since the last call of this function, or 0. */
int64_t clock_take_step(void);

/* In a forked child: the thread that held the lock does not exist. */
void clock_abandon(void);

/* Simultaneous readings of the clocks, the best of a few tries. */
struct clock_reading {
    int64_t wall_ns, mono_ns, boot_ns, log_ns;
    uint64_t ticks;
};

/* Converts ticks to the log's time by the line through two readings. tick_scale_update renews the second reading, so
 * that drift and slewing are followed. */
struct tick_scale {
    struct clock_reading last;
    double ns_per_tick;
};
void tick_scale_start(struct tick_scale *scale);
void tick_scale_update(struct tick_scale *scale);
int64_t tick_scale_log_ns(const struct tick_scale *scale, uint64_t ticks);

#endif
