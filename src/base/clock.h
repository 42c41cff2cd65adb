/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks. wall = CLOCK_REALTIME, which can be set; mono = CLOCK_MONOTONIC; boot = CLOCK_BOOTTIME, which also counts
 * while the machine is suspended. log = the clock of the log: what the wall clock said at the start of the session,
 * continued by boot, so that no time in a session depends on the wall clock being set. ticks = the CPU's counter where
 * the kernel itself trusts it, else boot nanoseconds: a tick costs about a third of a clock_gettime, which is why scopes
 * are stamped with ticks and converted by the collector. */
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

/* Finds out which counter can be used; idempotent. clocksource: the file that names the kernel's; NULL: the usual one.
 * A counter that the kernel found unstable, or cannot see, is not used. */
void clock_setup(const char *clocksource);

/* The session begins: the log's clock is the wall clock from now on, and no step is known. Before the first call, the
 * log's clock is the wall clock itself. */
void clock_log_start(void);
/* The log's clock; any thread. */
int64_t clock_log_ns(void);
/* What the log's clock said when the wall clock said wall_ns: see wall_steps_log_ns. Any thread. */
int64_t clock_log_of_wall_ns(int64_t wall_ns, int64_t earliest_ns, bool *is_certain);
/* False: the wall clock was not set since clock_log_start, as far as was noticed; both clocks are then one. */
bool clock_has_steps(void);
/* Looks whether the wall clock was set: before times of it are converted. Our own threads. */
void clock_notice_step(void);
/* The same; by how much it was set since the last call of this function, 0 when it was not. */
int64_t clock_take_step(void);

/* In a forked child: whoever had the lock is not there. */
void clock_abandon(void);

/* One simultaneous reading of the clocks; the best of a few tries. */
struct clock_reading {
    int64_t wall_ns, mono_ns, boot_ns, log_ns;
    uint64_t ticks;
};

/* Ticks to the log's time by the line through two readings. The second reading is
 * renewed by tick_scale_update so that drift and slewing are followed. */
struct tick_scale {
    struct clock_reading last;
    double ns_per_tick;
};
void tick_scale_start(struct tick_scale *scale);
void tick_scale_update(struct tick_scale *scale);
int64_t tick_scale_log_ns(const struct tick_scale *scale, uint64_t ticks);

#endif
