/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include "base/wall_steps.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

_Atomic bool clock_has_counter;

static struct {
    pthread_mutex_t mutex; /* taken only by gpufl's threads */
    struct wall_steps steps;
    int64_t untaken_step_ns;
    _Atomic int64_t offset_ns;      /* log's clock minus CLOCK_BOOTTIME */
    _Atomic int64_t wall_offset_ns; /* wall clock minus CLOCK_BOOTTIME, at the last check */
    _Atomic bool is_started, has_steps;
} log_clock = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* The kernel watches the counter and stops using it when CPUs disagree or the counter stops. */
static bool is_trusted_by_kernel(const char *path, const char *name)
{
    char text[64];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (size <= 0)
        return false;
    text[size] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return !strcmp(text, name);
}

void clock_setup(const char *clocksource)
{
    const char *path = clocksource ? clocksource : "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    bool has_counter = false;
#if defined(__x86_64__)
    unsigned a, b, c, d;
    has_counter = __get_cpuid(0x80000007, &a, &b, &c, &d) && (d >> 8 & 1) && is_trusted_by_kernel(path, "tsc");
#elif defined(__aarch64__)
    has_counter = is_trusted_by_kernel(path, "arch_sys_counter");
#endif
    atomic_store_explicit(&clock_has_counter, has_counter, memory_order_relaxed);
}

static struct wall_reading wall_read(void)
{
    struct wall_reading best = {0, 0, INT64_MAX};
    for (int attempt = 0; attempt < 5; attempt++) {
        struct wall_reading now = {.before_boot_ns = clock_boot_ns()};
        now.wall_ns = clock_wall_ns();
        now.after_boot_ns = clock_boot_ns();
        if (now.after_boot_ns - now.before_boot_ns < best.after_boot_ns - best.before_boot_ns)
            best = now;
    }
    return best;
}

void clock_log_start(void)
{
    pthread_mutex_lock(&log_clock.mutex);
    wall_steps_start(&log_clock.steps, wall_read());
    log_clock.untaken_step_ns = 0;
    atomic_store(&log_clock.offset_ns, log_clock.steps.log_offset_ns);
    atomic_store(&log_clock.wall_offset_ns, log_clock.steps.log_offset_ns);
    atomic_store(&log_clock.has_steps, false);
    atomic_store(&log_clock.is_started, true);
    pthread_mutex_unlock(&log_clock.mutex);
}

int64_t clock_log_ns(void)
{
    if (!atomic_load_explicit(&log_clock.is_started, memory_order_acquire))
        return clock_wall_ns();
    return clock_boot_ns() + atomic_load_explicit(&log_clock.offset_ns, memory_order_relaxed);
}

bool clock_has_steps(void)
{
    return atomic_load_explicit(&log_clock.has_steps, memory_order_acquire);
}

int64_t clock_log_of_wall_ns(int64_t wall_ns, int64_t earliest_ns, bool *is_certain)
{
    *is_certain = true;
    if (!clock_has_steps() || wall_ns <= 0 || wall_ns > INT64_MAX / 2)
        return wall_ns;
    pthread_mutex_lock(&log_clock.mutex);
    int64_t log_ns = wall_steps_log_ns(&log_clock.steps, wall_ns, earliest_ns, is_certain);
    pthread_mutex_unlock(&log_clock.mutex);
    return log_ns;
}

/* With the mutex. */
static void notice_step(void)
{
    int64_t step_ns = wall_steps_note(&log_clock.steps, wall_read());
    if (!step_ns)
        return;
    log_clock.untaken_step_ns += step_ns;
    atomic_fetch_add(&log_clock.wall_offset_ns, step_ns);
    atomic_store(&log_clock.has_steps, true);
}

void clock_notice_step(void)
{
    pthread_mutex_lock(&log_clock.mutex);
    if (atomic_load(&log_clock.is_started))
        notice_step();
    pthread_mutex_unlock(&log_clock.mutex);
}

int64_t clock_take_step(void)
{
    clock_notice_step();
    pthread_mutex_lock(&log_clock.mutex);
    int64_t step_ns = log_clock.untaken_step_ns;
    log_clock.untaken_step_ns = 0;
    pthread_mutex_unlock(&log_clock.mutex);
    return step_ns;
}

void clock_abandon(void)
{
    pthread_mutex_init(&log_clock.mutex, NULL);
}

static struct clock_reading read_all(void)
{
    struct clock_reading best = {0};
    uint64_t best_span = UINT64_MAX;
    for (int attempt = 0; attempt < 5; attempt++) {
        uint64_t before = clock_ticks();
        int64_t boot_ns = clock_boot_ns();
        uint64_t after = clock_ticks();
        if (after - before < best_span) {
            best_span = after - before;
            best.boot_ns = boot_ns;
            best.mono_ns = clock_mono_ns();
            best.ticks = before + (after - before) / 2;
        }
    }
    bool is_started = atomic_load(&log_clock.is_started);
    best.wall_ns = is_started ? best.boot_ns + atomic_load(&log_clock.wall_offset_ns) : clock_wall_ns();
    best.log_ns = is_started ? best.boot_ns + atomic_load(&log_clock.offset_ns) : best.wall_ns;
    return best;
}

void tick_scale_start(struct tick_scale *scale)
{
    *scale = (struct tick_scale){.last = read_all(), .ns_per_tick = 1.0};
    if (!atomic_load(&clock_has_counter))
        return;
    /* A short busy calibration; every later update spans a much longer time. */
    int64_t until_ns = scale->last.mono_ns + 2000000;
    while (clock_mono_ns() < until_ns) {
    }
    tick_scale_update(scale);
}

void tick_scale_update(struct tick_scale *scale)
{
    enum { apart_ns = 1000000 };
    struct clock_reading last = scale->last, now = read_all();
    scale->last = now;
    int64_t boot_ns = now.boot_ns - last.boot_ns, suspended_ns = boot_ns - (now.mono_ns - last.mono_ns);
    /* The counter's behaviour during suspend is undefined: a line across a suspend would distort all times in
     * between. */
    bool was_suspended = suspended_ns > apart_ns || suspended_ns < -apart_ns;
    if (atomic_load(&clock_has_counter) && now.ticks > last.ticks && !was_suspended)
        scale->ns_per_tick = (double)boot_ns / (double)(now.ticks - last.ticks);
}

int64_t tick_scale_log_ns(const struct tick_scale *scale, uint64_t ticks)
{
    /* The signed difference keeps ticks before the last reading exact. */
    double ns = (double)(int64_t)(ticks - scale->last.ticks) * scale->ns_per_tick;
    return scale->last.log_ns + (int64_t)(ns < 0 ? ns - 0.5 : ns + 0.5);
}
