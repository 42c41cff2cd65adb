/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/system_sampler.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/own_thread.h"
#include "base/stages.h"
#include "base/queue.h"
#include "capture/system_records.h"

#define HOLD_ENTERED (UINT64_C(1) << 32)
#define HOLD_COUNT_MASK (HOLD_ENTERED - 1)

static const int64_t join_wait_ns = 10 * INT64_C(1000000000); /* where no session limits it */

enum { WINDOW_COUNT_MAX = 64, WINDOW_NAME_SIZE = 256 };

struct window_mark {
    int64_t wall_ns;
    bool is_start;
    char name[WINDOW_NAME_SIZE];
};

struct system_sampler {
    struct system_records records; /* used by the thread once it runs; describe shares it under `records_mutex` */
    pthread_mutex_t records_mutex;
    pthread_t thread;
    bool has_thread;
    int64_t interval_ns; /* 0: nothing is sampled */
    bool is_continuous;

    /* Written by any thread. */
    _Atomic uint32_t news; /* futex word: changes whenever the thread must wake up */
    _Atomic uint64_t
        holds; /* low half: threads inside a scope; high half: how often one entered, so that no entry is missed */
    _Atomic bool is_idle; /* the thread waits for a hold; whoever clears it wakes the thread */
    _Atomic bool is_stopping;
    _Atomic uint64_t lost_windows;
    struct queue free_marks, marks;
    struct queue_slot free_slots[WINDOW_COUNT_MAX], mark_slots[WINDOW_COUNT_MAX];
    struct window_mark mark_storage[WINDOW_COUNT_MAX];

    /* Used by the thread only. */
    bool is_active;
    uint64_t sampled_holds; /* `holds` at the last sample */
    uint64_t open_windows, ignored_stops, missed_ticks;
    int64_t deadline_ns; /* next tick, CLOCK_MONOTONIC */
    _Atomic int64_t cpu_ns;
};

static void futex_wake(struct system_sampler *sampler)
{
    int saved_errno = errno;
    atomic_fetch_add(&sampler->news, 1);
    syscall(SYS_futex, &sampler->news, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = saved_errno;
}

/* Returns when `news` differs from `seen` or the deadline (0: none) has passed. */
static void futex_wait(struct system_sampler *sampler, uint32_t seen, int64_t deadline_ns)
{
    struct timespec deadline = {deadline_ns / 1000000000, deadline_ns % 1000000000};
    syscall(SYS_futex, &sampler->news, FUTEX_WAIT_BITSET_PRIVATE, seen, deadline_ns ? &deadline : NULL, NULL,
            FUTEX_BITSET_MATCH_ANY);
}

static bool is_wanted(const struct system_sampler *sampler)
{
    uint64_t holds = atomic_load(&sampler->holds);
    return sampler->interval_ns && (sampler->is_continuous || sampler->open_windows || holds & HOLD_COUNT_MASK ||
                                    (holds ^ sampler->sampled_holds) & ~HOLD_COUNT_MASK);
}

static void sample(struct system_sampler *sampler)
{
    if (!sampler->is_active) {
        sampler->is_active = true;
        sampler->deadline_ns = clock_mono_ns() + sampler->interval_ns;
        /* Otherwise the shares of the first row would be averages that include the idle time before it. */
        host_metrics_reset(&sampler->records.host);
    }
    sampler->sampled_holds = atomic_load(&sampler->holds);
    system_records_sample(&sampler->records);
}

static void deactivate(struct system_sampler *sampler)
{
    sampler->is_active = false;
    system_records_flush(&sampler->records, INT64_MAX);
}

static void mark_write(struct system_sampler *sampler, const struct window_mark *mark)
{
    if (!mark->is_start && !sampler->open_windows) {
        if (!sampler->ignored_stops++)
            log_message(GPUFL_LOG_WARNING, "ignored system stop '%s' without a start", mark->name);
        return;
    }
    if (mark->is_start)
        sampler->open_windows++;
    if (sampler->interval_ns)
        sample(sampler);
    system_records_window(&sampler->records, mark->is_start, mark->name, mark->wall_ns, sampler->interval_ns > 0);
    if (!mark->is_start)
        sampler->open_windows--;
    if (sampler->is_active && !is_wanted(sampler))
        deactivate(sampler);
}

static void marks_write(struct system_sampler *sampler)
{
    struct window_mark *mark;
    while ((mark = queue_pop(&sampler->marks))) {
        mark_write(sampler, mark);
        queue_push(&sampler->free_marks, mark);
    }
}

static void tick(struct system_sampler *sampler)
{
    if (!is_wanted(sampler)) { /* the last scope has ended since, so a sample would not belong to one */
        deactivate(sampler);
        return;
    }
    sample(sampler);
    int64_t late_ns = clock_mono_ns() - sampler->deadline_ns;
    int64_t missed = late_ns / sampler->interval_ns;
    sampler->missed_ticks += (uint64_t)missed;
    sampler->deadline_ns += (missed + 1) * sampler->interval_ns;
}

static void wait_idle(struct system_sampler *sampler, uint32_t seen)
{
    atomic_store(&sampler->is_idle, true);
    /* A hold before the store did not see is_idle, so check again; one after it clears is_idle and changes `news`. */
    if (!is_wanted(sampler))
        futex_wait(sampler, seen, 0);
    atomic_store(&sampler->is_idle, false);
}

static void losses_write(struct system_sampler *sampler)
{
    /* No loss record: the times of the rows show the gaps, and no event is missing. */
    if (sampler->missed_ticks)
        log_message(GPUFL_LOG_INFO, "missed %llu samples: a sample took longer than the interval",
                    (unsigned long long)sampler->missed_ticks);
    uint64_t lost_windows = atomic_load(&sampler->lost_windows);
    if (lost_windows)
        system_records_loss(&sampler->records, "window_queue_full", "system_start", (int64_t)lost_windows,
                            "system windows were opened and closed faster than they could be written");
}

static void *sampler_main(void *argument)
{
    struct system_sampler *sampler = argument;
    for (;;) {
        uint32_t seen = atomic_load(&sampler->news);
        pthread_mutex_lock(&sampler->records_mutex);
        marks_write(sampler);
        if (!sampler->is_active && is_wanted(sampler))
            sample(sampler);
        else if (sampler->is_active && clock_mono_ns() >= sampler->deadline_ns)
            tick(sampler);
        system_records_flush(&sampler->records, sampler->deadline_ns);
        pthread_mutex_unlock(&sampler->records_mutex);
        atomic_store(&sampler->cpu_ns, clock_thread_cpu_ns());
        if (atomic_load(&sampler->is_stopping))
            break;
        if (sampler->is_active)
            futex_wait(sampler, seen, sampler->deadline_ns);
        else
            wait_idle(sampler, seen);
    }
    pthread_mutex_lock(&sampler->records_mutex);
    marks_write(sampler);
    if (sampler->is_active && is_wanted(sampler))
        sample(sampler);
    system_records_flush(&sampler->records, INT64_MAX);
    losses_write(sampler);
    pthread_mutex_unlock(&sampler->records_mutex);
    atomic_store(&sampler->cpu_ns, clock_thread_cpu_ns());
    return NULL;
}

gpufl_status system_sampler_start(struct system_sampler **out, const struct system_sampler_options *options,
                                  struct problem *gpu_problem)
{
    struct system_sampler *sampler = calloc(1, sizeof *sampler);
    if (!sampler)
        return GPUFL_E_NO_MEMORY;
    struct system_records_options records_options = {
        .writer = options->writer,
        .session_id = options->session_id,
        .app_name = options->app_name,
        .root = "",
        .gpus = {.vendors = (options->use_nvidia ? 1u << GPU_VENDOR_NVIDIA : 0) |
                            (options->use_amd ? 1u << GPU_VENDOR_AMD : 0)},
    };
    gpufl_status status = system_records_open(&sampler->records, &records_options, gpu_problem);
    if (status != GPUFL_OK) {
        free(sampler);
        return status;
    }
    pthread_mutex_init(&sampler->records_mutex, NULL);
    sampler->interval_ns = (int64_t)options->interval_ms * 1000000;
    sampler->is_continuous = options->is_continuous;
    queue_init(&sampler->free_marks, sampler->free_slots, WINDOW_COUNT_MAX);
    queue_init(&sampler->marks, sampler->mark_slots, WINDOW_COUNT_MAX);
    for (size_t i = 0; i < WINDOW_COUNT_MAX; i++)
        queue_push(&sampler->free_marks, &sampler->mark_storage[i]);
    *out = sampler;
    return GPUFL_OK;
}

gpufl_status system_sampler_run(struct system_sampler *sampler)
{
    sampler->has_thread =
        own_thread_start(&sampler->thread, "gpufl-sampler", OWN_THREAD_STACK_LARGE, sampler_main, sampler);
    return sampler->has_thread ? GPUFL_OK : GPUFL_E_NO_MEMORY;
}

enum watch_end system_sampler_stop(struct system_sampler *sampler)
{
    if (!sampler)
        return WATCH_ENDED;
    if (sampler->has_thread) {
        atomic_store(&sampler->is_stopping, true);
        futex_wake(sampler);
        const char *call;
        int64_t now_ns = clock_mono_ns(), until_ns = stages_until_ns(join_wait_ns);
        int64_t hung_ns = now_ns + (until_ns - now_ns) / 2; /* the rest of the end needs time, too */
        enum watch_end end = watch_join(sampler->thread, hung_ns, until_ns, &call);
        if (end != WATCH_ENDED)
            return end;
    }
    system_records_close(&sampler->records);
    pthread_mutex_destroy(&sampler->records_mutex);
    free(sampler);
    return WATCH_ENDED;
}

void system_sampler_abandon(struct system_sampler *sampler)
{
    if (!sampler)
        return;
    system_records_abandon(&sampler->records);
    free(sampler);
}

/* Copies what fits, without splitting UTF-8 characters. */
static void name_copy(char *out, const char *name)
{
    size_t size = strnlen(name, WINDOW_NAME_SIZE);
    if (size == WINDOW_NAME_SIZE) {
        size--;
        while (size && ((unsigned char)name[size] & 0xc0) == 0x80)
            size--;
    }
    memcpy(out, name, size);
    out[size] = '\0';
}

void system_sampler_window(struct system_sampler *sampler, const char *name, bool is_start)
{
    struct window_mark *mark = queue_pop(&sampler->free_marks);
    if (!mark) {
        atomic_fetch_add(&sampler->lost_windows, 1);
        return;
    }
    mark->wall_ns = clock_log_ns();
    mark->is_start = is_start;
    name_copy(mark->name, name ? name : "");
    queue_push(&sampler->marks, mark);
    futex_wake(sampler);
}

void system_sampler_hold(struct system_sampler *sampler)
{
    uint64_t before = atomic_fetch_add(&sampler->holds, HOLD_ENTERED + 1);
    if (!(before & HOLD_COUNT_MASK) && atomic_load(&sampler->is_idle) && atomic_exchange(&sampler->is_idle, false))
        futex_wake(sampler);
}

void system_sampler_release(struct system_sampler *sampler)
{
    uint64_t holds = atomic_load(&sampler->holds);
    /* A release whose hold preceded the sampler changes nothing. */
    while (holds & HOLD_COUNT_MASK && !atomic_compare_exchange_weak(&sampler->holds, &holds, holds - 1)) {
    }
}

int64_t system_sampler_cpu_ns(const struct system_sampler *sampler)
{
    return atomic_load(&sampler->cpu_ns);
}

void system_sampler_describe(struct system_sampler *sampler, struct bytes *out)
{
    pthread_mutex_lock(&sampler->records_mutex);
    system_records_describe(&sampler->records, out);
    pthread_mutex_unlock(&sampler->records_mutex);
}

const char *system_sampler_driver_version(const struct system_sampler *sampler)
{
    const struct gpu_telemetry *gpu = &sampler->records.gpu;
    return gpu_telemetry_driver_version(gpu, gpu->nvml ? GPU_VENDOR_NVIDIA : GPU_VENDOR_AMD);
}

int system_sampler_cuda_version(const struct system_sampler *sampler)
{
    return sampler->records.gpu.nvml ? nvml_cuda_driver_version(sampler->records.gpu.nvml) : 0;
}

bool system_sampler_find_amd(struct system_sampler *sampler, const struct amd_place *place, uint32_t *device_id)
{
    bool is_found = false;
    /* Without the mutex, which the thread holds during driver calls: the values read here do not change. */
    const struct gpu_telemetry *gpu = &sampler->records.gpu;
    *device_id = gpu->device_count;
    for (uint32_t i = 0; i < gpu->device_count && !is_found; i++) {
        unsigned domain = 0, bus = 0, device = 0;
        is_found = gpu->devices[i].info.vendor == GPU_VENDOR_AMD &&
                   sscanf(gpu->devices[i].info.pci_bus_id, "%x:%x:%x", &domain, &bus, &device) == 3 &&
                   domain == place->domain && bus == place->bus && device == place->device &&
                   gpu->devices[i].info.partition == place->partition;
        if (is_found)
            *device_id = gpu->devices[i].info.index;
    }
    return is_found;
}
