/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/sass_counters.h"

#include "base/clock.h"
#include "base/log.h"
#include "capture/sass_results.h"
#include "driver/profiler_target.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { context_max = 64, device_max = 16, bytes_max_default = 64 << 20, patience_s = 2 };

/* A context. The lock guards all slots; while a slot is busy, CUPTI works on its context without the lock, because
 * CUPTI may call attach and detach from any thread. */
struct slot {
    enum { SLOT_FREE, SLOT_IDLE, SLOT_BUSY, SLOT_MEASURED } state;
    bool is_gone; /* destroyed while busy: the thread that set it busy frees it */
    struct gpu_context context;
    struct sass_device *device;
    int64_t start_ns; /* when counting began */
};

struct sass_counters {
    struct sass_metrics metrics;
    struct recorder *recorder;
    struct names *names;
    char *choice;
    const char *mode;
    bool is_eager, has_profiler;
    struct sass_budget budget;
    struct sass_device devices[device_max];
    atomic_uint device_count;
    atomic_bool is_open;
    pthread_mutex_t lock;
    pthread_cond_t slot_changed;
    /* Guarded by the lock. */
    struct slot slots[context_max];
    uint32_t window_id;
    struct sass_results *closing, *waiting; /* of the open window; for the collector */
    struct sass_window_summary summary;     /* of the open window */
    uint32_t unread;                        /* contexts of the open window whose counts could not be determined */
    struct sass_totals totals;
};

gpufl_status sass_counters_make(struct sass_counters **out, const struct sass_counters_options *options,
                                struct problem *problem)
{
    struct sass_metrics metrics;
    gpufl_status status = sass_choice_check(options->metrics, problem);
    if (status == GPUFL_OK)
        status = sass_metrics_bind(&metrics, options->cupti, problem);
    if (status != GPUFL_OK)
        return status;
    struct sass_counters *counters = calloc(1, sizeof *counters);
    char *choice = strdup(options->metrics ? options->metrics : "");
    if (!counters || !choice) {
        free(counters);
        free(choice);
        return problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory");
    }
    counters->metrics = metrics;
    counters->recorder = options->recorder;
    counters->names = options->names;
    counters->choice = choice;
    counters->mode = options->mode;
    counters->is_eager = options->is_eager;
    counters->budget.max = options->bytes_max ? options->bytes_max : bytes_max_default;
    pthread_mutex_init(&counters->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&counters->slot_changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    *out = counters;
    return GPUFL_OK;
}

static void results_free_all(struct sass_results **list)
{
    while (*list) {
        struct sass_results *first = *list;
        *list = first->next;
        sass_results_free(first);
    }
}

static void memory_free(struct sass_counters *counters)
{
    results_free_all(&counters->closing);
    results_free_all(&counters->waiting);
    for (unsigned i = 0; i < device_max; i++)
        sass_metric_list_free(&counters->devices[i].list);
    free(counters->choice);
    free(counters);
}

void sass_counters_free(struct sass_counters *counters)
{
    if (!counters)
        return;
    pthread_cond_destroy(&counters->slot_changed);
    pthread_mutex_destroy(&counters->lock);
    memory_free(counters);
}

void sass_counters_abandon(struct sass_counters *counters)
{
    /* The lock and the condition may be in any state. */
    if (counters)
        memory_free(counters);
}

/* ---- contexts ---- */

static struct slot *slot_find(struct sass_counters *counters, const void *handle)
{
    for (int i = 0; i < context_max; i++)
        if (counters->slots[i].state != SLOT_FREE && counters->slots[i].context.handle == handle &&
            !counters->slots[i].is_gone)
            return &counters->slots[i];
    return NULL;
}

gpufl_status sass_counters_attach(struct sass_counters *counters, const struct gpu_context *context,
                                  struct problem *problem)
{
    gpufl_status status = GPUFL_OK;
    pthread_mutex_lock(&counters->lock);
    int i = 0;
    while (i < context_max && counters->slots[i].state != SLOT_FREE)
        i++;
    if (slot_find(counters, context->handle))
        ; /* known already */
    else if (i < context_max)
        counters->slots[i] = (struct slot){.state = SLOT_IDLE, .context = *context};
    else
        status = problem_set(problem, GPUFL_E_LIMIT,
                             "instructions are counted in at most %d contexts at a time; context %u is left out",
                             context_max, context->id);
    pthread_mutex_unlock(&counters->lock);
    return status;
}

/* Waits, with the lock held, until the slot is not busy. Bounded, since the user's thread may be waiting in a
 * callback. False: it still is busy. */
static bool slot_wait(struct sass_counters *counters, const struct slot *slot)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += patience_s;
    while (slot->state == SLOT_BUSY)
        if (pthread_cond_timedwait(&counters->slot_changed, &counters->lock, &until) != 0)
            return slot->state != SLOT_BUSY;
    return true;
}

static void slot_release(struct sass_counters *counters, struct slot *slot, int state)
{
    pthread_mutex_lock(&counters->lock);
    slot->state = slot->is_gone ? SLOT_FREE : state;
    pthread_cond_broadcast(&counters->slot_changed);
    pthread_mutex_unlock(&counters->lock);
}

static void first_problem_keep(struct problem *first, const struct problem *problem)
{
    if (!first->text[0])
        *first = *problem;
}

static void on_count(void *user, const struct sass_count *count)
{
    sass_results_add(user, count);
}

static void results_keep(struct sass_counters *counters, struct sass_results *results)
{
    struct sass_window_summary *summary = &counters->summary;
    summary->executed += results->executed;
    summary->not_executed += results->not_executed;
    summary->counts += results->count;
    results->window_id = counters->window_id;
    results->next = counters->closing;
    counters->closing = results;
}

/* Reads what CUPTI counted in a busy slot's context since start_ns; with is_last also stops counting there. */
static void slot_flush(struct sass_counters *counters, struct slot *slot, int64_t now_ns, bool is_last)
{
    struct problem problem = {""}, ignored;
    struct sass_results *results = sass_results_make(&counters->budget, slot->device, &slot->context);
    struct sass_flush flush = {.bytes_max = counters->budget.max, .on_count = on_count, .user = results};
    gpufl_status flushed = results ? sass_metrics_flush(&counters->metrics, slot->context.handle, &flush, &problem)
                                   : problem_set(&problem, GPUFL_E_LIMIT, "no memory left for instruction counts");
    gpufl_status disabled = GPUFL_OK;
    uint64_t lost = 0;
    if (is_last)
        disabled = sass_metrics_disable(&counters->metrics, slot->context.handle, &lost,
                                        flushed == GPUFL_OK ? &problem : &ignored);
    bool is_flushed = results && flushed == GPUFL_OK, is_whole = is_flushed && !results->refused;
    bool is_memory = (is_flushed && !is_whole) || flushed == GPUFL_E_LIMIT || flushed == GPUFL_E_NO_MEMORY;
    if (is_flushed && !is_whole)
        lost = results->refused + results->count;
    else if (!is_flushed && !lost && is_last) /* otherwise CUPTI still has them, and the next flush may get them */
        lost = flush.values;
    bool is_unread = !is_flushed && !lost && is_last;
    if (lost || is_unread) /* unread contexts are counted with the window */
        recorder_lose_because(counters->recorder, lost && is_memory ? LOSS_SASS_MEMORY : LOSS_SASS_DROPPED, lost,
                              is_flushed && !is_whole ? "" : problem.text);
    if (is_whole) {
        sass_results_settle(results);
        results->start_ns = slot->start_ns;
        results->end_ns = now_ns;
    }
    if (is_flushed)
        slot->start_ns = now_ns;
    pthread_mutex_lock(&counters->lock);
    counters->summary.lost += lost;
    counters->unread += is_unread;
    if (!is_flushed || disabled != GPUFL_OK)
        first_problem_keep(&counters->summary.problem, &problem);
    if (is_whole)
        results_keep(counters, results);
    pthread_mutex_unlock(&counters->lock);
    if (!is_whole)
        sass_results_free(results);
}

void sass_counters_detach(struct sass_counters *counters, void *context_handle)
{
    pthread_mutex_lock(&counters->lock);
    struct slot *slot = slot_find(counters, context_handle);
    if (slot && !slot_wait(counters, slot)) {
        slot->is_gone = true;
        slot = NULL;
    }
    bool is_measured = slot && slot->state == SLOT_MEASURED;
    if (is_measured)
        slot->state = SLOT_BUSY;
    else if (slot)
        slot->state = SLOT_FREE;
    pthread_mutex_unlock(&counters->lock);
    if (!is_measured)
        return;
    slot_flush(counters, slot, clock_log_ns(), true);
    slot_release(counters, slot, SLOT_FREE);
}

/* ---- devices ---- */

static gpufl_status device_prepare(struct sass_counters *counters, struct sass_device *device, struct problem *problem)
{
    struct cupti *cupti = counters->metrics.cupti;
    gpufl_status status = profiler_target_check(cupti, device->id, PROFILER_API_SASS_METRICS, problem);
    if (status == GPUFL_OK)
        status = profiler_target_chip(cupti, device->id, device->chip, problem);
    if (status == GPUFL_OK)
        status = sass_metrics_list(&counters->metrics, device->chip, &device->list, problem);
    if (status == GPUFL_OK)
        status = sass_choice_make(&device->choice, &device->list, device->chip, counters->choice, problem);
    if (status != GPUFL_OK) {
        sass_metric_list_free(&device->list);
        return status;
    }
    device->is_ready = true;
    atomic_store(&device->has_news, true);
    return GPUFL_OK;
}

/* Returns the device, with its metrics chosen and set in CUPTI. */
static gpufl_status device_configure(struct sass_counters *counters, uint32_t id, struct sass_device **out,
                                     struct problem *problem)
{
    unsigned count = atomic_load(&counters->device_count), i = 0;
    while (i < count && counters->devices[i].id != id)
        i++;
    if (i == device_max)
        return problem_set(problem, GPUFL_E_LIMIT, "instructions are counted on at most %d GPUs", device_max);
    struct sass_device *device = &counters->devices[i];
    if (i == count) { /* the collector reads only devices below this count */
        device->id = id;
        atomic_store(&counters->device_count, count + 1);
    }
    *out = device;
    if (device->is_configured)
        return GPUFL_OK;
    gpufl_status status = device->is_ready ? GPUFL_OK : device_prepare(counters, device, problem);
    if (status != GPUFL_OK)
        return status;
    status = sass_metrics_configure(&counters->metrics, id, &device->list, &device->choice, problem);
    device->is_configured = status == GPUFL_OK;
    return status;
}

/* ---- windows ---- */

static gpufl_status slot_open(struct sass_counters *counters, struct slot *slot, struct problem *problem)
{
    gpufl_status status = device_configure(counters, slot->context.device_id, &slot->device, problem);
    if (status == GPUFL_OK)
        status = sass_metrics_enable(&counters->metrics, slot->context.handle, !counters->is_eager, problem);
    return status;
}

/* Marks the slots in state `from` busy; returns how many. */
static int slots_take(struct sass_counters *counters, int from, struct slot *taken[context_max])
{
    int count = 0;
    pthread_mutex_lock(&counters->lock);
    for (int i = 0; i < context_max; i++) {
        struct slot *slot = &counters->slots[i];
        if (!slot_wait(counters, slot) || (int)slot->state != from)
            continue;
        slot->state = SLOT_BUSY;
        taken[count++] = slot;
    }
    pthread_mutex_unlock(&counters->lock);
    return count;
}

/* Starts counting in every context that does not count yet; returns how many there were. status and first: of the
 * first context in which it could not be started. */
static int slots_open(struct sass_counters *counters, int64_t now_ns, gpufl_status *status, struct problem *first)
{
    struct slot *taken[context_max];
    uint32_t measured = 0;
    int count = slots_take(counters, SLOT_IDLE, taken);
    for (int i = 0; i < count; i++) {
        struct problem here = {""};
        gpufl_status opened = slot_open(counters, taken[i], &here);
        taken[i]->start_ns = now_ns;
        measured += opened == GPUFL_OK;
        if (opened != GPUFL_OK) {
            *status = *status == GPUFL_OK ? opened : *status;
            first_problem_keep(first, &here);
        }
        slot_release(counters, taken[i], opened == GPUFL_OK ? SLOT_MEASURED : SLOT_IDLE);
    }
    pthread_mutex_lock(&counters->lock);
    counters->summary.contexts += measured;
    first_problem_keep(&counters->summary.problem, first);
    pthread_mutex_unlock(&counters->lock);
    return count;
}

gpufl_status sass_counters_open(struct sass_counters *counters, uint32_t window_id, int64_t now_ns,
                                struct problem *problem)
{
    struct problem first = {""};
    gpufl_status status = GPUFL_OK;
    if (atomic_load(&counters->is_open))
        return problem_set(problem, GPUFL_E_BUSY, "instructions are being counted in window %u already",
                           counters->window_id);
    if (!counters->has_profiler && (status = profiler_target_acquire(counters->metrics.cupti, problem)) != GPUFL_OK)
        return status;
    counters->has_profiler = true;

    pthread_mutex_lock(&counters->lock);
    counters->window_id = window_id;
    memset(&counters->summary, 0, sizeof counters->summary);
    counters->summary.window_id = window_id;
    counters->unread = 0;
    pthread_mutex_unlock(&counters->lock);

    int known = slots_open(counters, now_ns, &status, &first);
    if (!counters->summary.contexts)
        return known ? problem_set(problem, status, "%s", first.text)
                     : problem_set(problem, GPUFL_E_NOT_FOUND, "the program has no CUDA context yet");
    atomic_store(&counters->is_open, true);
    (void)problem_set(problem, GPUFL_OK, "%s", first.text);
    return GPUFL_OK;
}

gpufl_status sass_counters_join(struct sass_counters *counters, int64_t now_ns, struct problem *problem)
{
    struct problem first = {""};
    gpufl_status status = GPUFL_OK;
    if (atomic_load(&counters->is_open))
        (void)slots_open(counters, now_ns, &status, &first);
    return status == GPUFL_OK ? GPUFL_OK : problem_set(problem, status, "%s", first.text);
}

/* Passes the results to the collector; with the lock held. */
static void results_hand_over(struct sass_counters *counters)
{
    struct sass_results **end = &counters->waiting;
    while (*end)
        end = &(*end)->next;
    *end = counters->closing;
    counters->closing = NULL;
}

void sass_counters_collect(struct sass_counters *counters, int64_t now_ns)
{
    struct slot *taken[context_max];
    if (!atomic_load(&counters->is_open))
        return;
    int count = slots_take(counters, SLOT_MEASURED, taken);
    for (int i = 0; i < count; i++) {
        slot_flush(counters, taken[i], now_ns, false);
        slot_release(counters, taken[i], SLOT_MEASURED);
    }
    pthread_mutex_lock(&counters->lock);
    results_hand_over(counters); /* zeros need no check here: instructions that were not executed have no row */
    pthread_mutex_unlock(&counters->lock);
}

/* Decides, with the lock held, whether the window's counts are plausible, and passes them to the collector. */
static void window_publish(struct sass_counters *counters, uint64_t launches_covered)
{
    struct sass_window_summary *summary = &counters->summary;
    counters->totals.windows++;
    counters->totals.lost += summary->lost;
    if (launches_covered && !summary->executed && !summary->lost && !counters->unread) {
        /* Every kernel executes instructions: all counts are zero when kernel tracing was on. */
        uint64_t zeros = summary->counts + summary->not_executed;
        recorder_lose(counters->recorder, LOSS_SASS_INVALID, zeros ? zeros : 1);
        results_free_all(&counters->closing);
        summary->close_reason = "counts_invalid";
        summary->counts = summary->not_executed = 0;
        counters->totals.windows_invalid++;
        return;
    }
    if (launches_covered && counters->unread) /* an unknown number of counts, at least one */
        recorder_lose(counters->recorder, LOSS_SASS_DROPPED, counters->unread);
    counters->totals.counts += summary->counts;
    counters->totals.not_executed += summary->not_executed;
    results_hand_over(counters);
}

void sass_counters_close(struct sass_counters *counters, int64_t now_ns, uint64_t launches_covered,
                         struct sass_window_summary *summary)
{
    struct slot *taken[context_max];
    memset(summary, 0, sizeof *summary);
    if (!atomic_load(&counters->is_open))
        return;
    int count = slots_take(counters, SLOT_MEASURED, taken);
    for (int i = 0; i < count; i++) {
        slot_flush(counters, taken[i], now_ns, true);
        slot_release(counters, taken[i], SLOT_IDLE);
    }
    atomic_store(&counters->is_open, false);
    pthread_mutex_lock(&counters->lock);
    window_publish(counters, launches_covered);
    *summary = counters->summary;
    pthread_mutex_unlock(&counters->lock);
    if (summary->close_reason)
        log_message(GPUFL_LOG_WARNING,
                    "instruction counts of window %u are all zero although kernels ran; they are not recorded",
                    summary->window_id);
}

bool sass_counters_is_open(const struct sass_counters *counters)
{
    return atomic_load(&counters->is_open);
}

void sass_counters_stop(struct sass_counters *counters, int64_t now_ns)
{
    struct sass_window_summary summary;
    sass_counters_close(counters, now_ns, 0, &summary);
    bool is_configured = false;
    for (unsigned i = 0; i < atomic_load(&counters->device_count); i++)
        is_configured |= counters->devices[i].is_configured;
    if (counters->has_profiler && !is_configured)
        profiler_target_release(counters->metrics.cupti);
    counters->has_profiler = false;
}

/* ---- the log ---- */

void sass_counters_write(struct sass_counters *counters)
{
    for (unsigned i = 0; i < atomic_load(&counters->device_count); i++)
        if (atomic_exchange(&counters->devices[i].has_news, false))
            sass_device_write(&counters->devices[i], counters->recorder, !counters->is_eager, counters->mode);
    pthread_mutex_lock(&counters->lock);
    struct sass_results *waiting = counters->waiting;
    counters->waiting = NULL;
    pthread_mutex_unlock(&counters->lock);
    for (const struct sass_results *results = waiting; results; results = results->next)
        sass_results_write(results, counters->recorder, counters->names);
    results_free_all(&waiting);
}

void sass_counters_totals(struct sass_counters *counters, struct sass_totals *totals)
{
    pthread_mutex_lock(&counters->lock);
    *totals = counters->totals;
    pthread_mutex_unlock(&counters->lock);
}

size_t sass_counters_bytes(const struct sass_counters *counters)
{
    return sizeof *counters + atomic_load(&counters->budget.used);
}
