/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/pc_engine.h"

#include "base/clock.h"
#include "base/own_thread.h"
#include "base/stages.h"
#include "base/timed_lock.h"
#include "base/watch.h"
#include "driver/gpu_claim.h"
#include "driver/profiler_target.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

enum {
    RATE_DEFAULT_HZ = 4000,
    HARDWARE_DEFAULT_BYTES = 32 << 20,
    DETACH_WAIT_S = 1,
    JOIN_WAIT_S = 5, /* a read takes milliseconds */
};

gpufl_status pc_sampler_make(struct pc_sampler **out, const struct pc_sampler_options *options, struct problem *problem)
{
    struct pc_sampler *sampler = calloc(1, sizeof *sampler);
    if (!sampler)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "not enough memory for PC sampling");
    sampler->options = *options;
    atomic_init(&sampler->activity, PC_ACTIVITY_READING);
    if (!options->rate_hz)
        sampler->options.rate_hz = RATE_DEFAULT_HZ;
    if (!options->hardware_buffer_bytes)
        sampler->options.hardware_buffer_bytes = HARDWARE_DEFAULT_BYTES;
    pthread_mutex_init(&sampler->lock, NULL);
    pthread_mutex_init(&sampler->acquire_lock, NULL);
    pc_breaks_init(&sampler->breaks, options->share_percent, options->cycle_ms);
    if (!options->drain_ms)
        sampler->options.drain_ms = pc_sampler_usual_drain_ms(sampler);
    sampler->options.drain_ms = pc_breaks_tick_ms(&sampler->breaks, sampler->options.drain_ms);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&sampler->news, &attributes);
    pthread_condattr_destroy(&attributes);
    for (int i = 0; i < PC_CONTEXTS_MAX; i++)
        pthread_mutex_init(&sampler->contexts[i].mutex, NULL);
    gpufl_status status = pc_ring_make(&sampler->ring, options->attribution.recorder);
    if (status == GPUFL_OK)
        status = pc_attribution_make(&sampler->attribution, &options->attribution);
    if (status != GPUFL_OK) {
        problem_set(problem, status, "not enough memory for PC sampling");
        goto failed;
    }
    if (options->period_exponent &&
        (options->period_exponent < PC_PERIOD_MIN || options->period_exponent > PC_PERIOD_MAX)) {
        status = problem_set(problem, GPUFL_E_INVALID, "PC sampling: the period's exponent must be %d to %d, not %u",
                             PC_PERIOD_MIN, PC_PERIOD_MAX, options->period_exponent);
        goto failed;
    }
    *out = sampler;
    return GPUFL_OK;
failed:
    pc_sampler_free(sampler);
    return status;
}

/* The tick after that one: drain_ms later, or earlier when a break is due. */
static int64_t next_tick_ns(struct pc_sampler *sampler, int64_t tick_ns)
{
    int64_t now_ns = clock_mono_ns(), due_ns = pc_breaks_due_ns(&sampler->breaks);
    /* After a wake-up the previous tick may still be in the future. */
    tick_ns = (tick_ns < now_ns ? tick_ns : now_ns) + (int64_t)sampler->options.drain_ms * 1000000;
    tick_ns = tick_ns < now_ns ? now_ns : tick_ns;
    return now_ns < due_ns && due_ns < tick_ns ? due_ns : tick_ns;
}

static bool is_anything_on(struct pc_sampler *sampler)
{
    bool is_on = false;
    for (int i = 0; i < PC_CONTEXTS_MAX; i++) {
        struct pc_context *context = &sampler->contexts[i];
        pthread_mutex_lock(&context->mutex);
        is_on |= atomic_load(&context->state) == PC_CONTEXT_OPEN && pc_sampling_is_on(context->sampling);
        pthread_mutex_unlock(&context->mutex);
    }
    return is_on;
}

/* Samples that CUPTI's thread has not decoded yet cannot be read: CUPTI delivers them when sampling is switched off,
 * in a quiet moment. If launches are not reported there is no quiet moment, and the next decoding round is awaited
 * instead. True: it is quiet. */
static bool last_samples_await(struct pc_sampler *sampler)
{
    if (!is_anything_on(sampler))
        return false;
    if (sampler->breaks.has_breaks && quiet_moment_begin_last(&sampler->breaks.quiet))
        return true;
    quiet_moment_end(&sampler->breaks.quiet);
    int64_t round_ns = (int64_t)pc_sampler_worker_ms(sampler) * 1250000; /* plus the time it takes */
    int64_t left_ns = stages_until_ns(INT64_MAX / 2) - clock_mono_ns(), most_ns = left_ns / 4 * 3;
    int64_t wait_ns = round_ns < most_ns ? round_ns : most_ns > 0 ? most_ns : 0;
    if (wait_ns < round_ns)
        recorder_lose_because(sampler->options.attribution.recorder, LOSS_PC_FAILED, 1,
                              "the session had too little time to end (exit_timeout_ms) to wait for the last samples");
    const struct timespec wait = {(time_t)(wait_ns / 1000000000), (long)(wait_ns % 1000000000)};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, NULL);
    return false;
}

/* Reads the last samples of all contexts. */
static void contexts_end(struct pc_sampler *sampler, bool is_quiet)
{
    bool is_all_off = true;
    pc_breaks_stop(sampler);
    atomic_store(&sampler->activity, "switching sampling off");
    for (int i = 0; i < PC_CONTEXTS_MAX && !atomic_load(&sampler->is_stuck); i++) {
        struct pc_context *context = &sampler->contexts[i];
        pthread_mutex_lock(&context->mutex);
        if (atomic_load(&context->state) != PC_CONTEXT_FREE)
            is_all_off &= pc_context_end(sampler, context, is_quiet);
        pthread_mutex_unlock(&context->mutex);
    }
    pthread_mutex_lock(&sampler->acquire_lock);
    if (sampler->is_acquired && is_all_off && !atomic_load(&sampler->is_stuck)) /* enabled sampling needs the
                                                                                 * profiler */
        profiler_target_release(sampler->options.cupti);
    sampler->is_acquired = false;
    pthread_mutex_unlock(&sampler->acquire_lock);
}

/* Runs on the sampler's thread, so that the program does not hang if CUPTI does. */
static void thread_end(struct pc_sampler *sampler, bool is_quiet)
{
    if (atomic_load(&sampler->is_stuck)) /* it returned too late: launches are no longer reported */
        return;
    is_quiet = is_quiet || last_samples_await(sampler);
    contexts_end(sampler, is_quiet);
    quiet_moment_end(&sampler->breaks.quiet);
    atomic_store(&sampler->cpu_ns, clock_thread_cpu_ns());
}

static void *run(void *argument)
{
    struct pc_sampler *sampler = argument;
    int64_t deadline_ns = clock_mono_ns();
    for (;;) {
        deadline_ns = next_tick_ns(sampler, deadline_ns);
        const struct timespec deadline = {deadline_ns / 1000000000, deadline_ns % 1000000000};
        pthread_mutex_lock(&sampler->lock);
        int result = 0;
        while (!sampler->is_stopping && !sampler->has_news && result != ETIMEDOUT)
            result = pthread_cond_timedwait(&sampler->news, &sampler->lock, &deadline);
        bool is_stopping = sampler->is_stopping, is_quiet = sampler->is_stop_quiet;
        sampler->has_news = false;
        pthread_mutex_unlock(&sampler->lock);
        if (is_stopping) {
            thread_end(sampler, is_quiet);
            return NULL;
        }
        pc_breaks_turn(sampler);
        for (int i = 0; i < PC_CONTEXTS_MAX && !atomic_load(&sampler->is_stuck); i++) {
            struct pc_context *context = &sampler->contexts[i];
            if (atomic_load(&context->state) == PC_CONTEXT_FREE)
                continue;
            pthread_mutex_lock(&context->mutex);
            if (atomic_load(&context->state) != PC_CONTEXT_FREE)
                pc_context_tick(sampler, context);
            pthread_mutex_unlock(&context->mutex);
        }
        atomic_store(&sampler->cpu_ns, clock_thread_cpu_ns());
    }
}

/* Call with the lock held. */
static struct pc_context *context_find(struct pc_sampler *sampler, const void *handle)
{
    for (int i = 0; i < PC_CONTEXTS_MAX; i++) {
        struct pc_context *context = &sampler->contexts[i];
        if (atomic_load(&context->state) != PC_CONTEXT_FREE && !atomic_load(&context->is_gone) &&
            context->gpu.handle == handle)
            return context;
    }
    return NULL;
}

/* A free slot for a new context, in the state `wanted`; NULL: there is none (counted), or *known is the slot that
 * the context already has. With is_held its mutex is held, so that the thread does not start on it. */
static struct pc_context *context_add(struct pc_sampler *sampler, const struct gpu_context *gpu, bool is_held,
                                      struct pc_context **known)
{
    struct pc_context *context = NULL;
    pthread_mutex_lock(&sampler->lock);
    bool is_stopping = sampler->is_stopping;
    *known = context_find(sampler, gpu->handle);
    for (int i = 0; i < PC_CONTEXTS_MAX && !*known && !context && !is_stopping; i++)
        if (atomic_load(&sampler->contexts[i].state) == PC_CONTEXT_FREE &&
            (!is_held || !pthread_mutex_trylock(&sampler->contexts[i].mutex)))
            context = &sampler->contexts[i];
    if (context) {
        context->gpu = *gpu;
        deep_contexts_add(&sampler->breaks.quiet.contexts, gpu->handle);
        atomic_store(&context->state, PC_CONTEXT_WANTED);
        sampler->has_news = true;
        pthread_cond_signal(&sampler->news);
    }
    pthread_mutex_unlock(&sampler->lock);
    if (!context && !*known && !is_stopping) /* contexts created after the end do not belong to the session */
        recorder_lose(sampler->options.attribution.recorder, LOSS_PC_CONTEXTS, 1);
    return context;
}

gpufl_status pc_sampler_attach(struct pc_sampler *sampler, const struct gpu_context *gpu, struct problem *problem)
{
    struct problem unread;
    if (!problem)
        problem = &unread;
    struct pc_context *known, *context = context_add(sampler, gpu, true, &known);
    if (context) {
        gpufl_status status = pc_context_take_on(sampler, context, problem);
        pthread_mutex_unlock(&context->mutex);
        return status;
    }
    if (!known)
        return problem_set(problem, GPUFL_E_LIMIT, "PC sampling: %d contexts are sampled already, or the session ends",
                           PC_CONTEXTS_MAX);
    if (atomic_load(&known->state) != PC_CONTEXT_FAILED)
        return GPUFL_OK;
    (void)pc_sampler_trouble(sampler, problem);
    return GPUFL_E_UNSUPPORTED;
}

void pc_sampler_want(struct pc_sampler *sampler, const struct gpu_context *gpu)
{
    int saved_errno = errno;
    struct pc_context *known;
    (void)context_add(sampler, gpu, false, &known);
    errno = saved_errno;
}

void pc_sampler_detach(struct pc_sampler *sampler, void *handle)
{
    int saved_errno = errno;
    deep_contexts_remove(&sampler->breaks.quiet.contexts, handle);
    pthread_mutex_lock(&sampler->lock);
    struct pc_context *context = context_find(sampler, handle);
    pthread_mutex_unlock(&sampler->lock);
    if (!context)
        goto done;
    /* The thread may be in CUPTI for this context, and CUPTI may need a lock held by our caller: do not wait
     * forever. */
    if (!mutex_lock_in_time(&context->mutex, DETACH_WAIT_S * INT64_C(1000000000))) {
        atomic_store(&context->is_gone, true);
        recorder_lose(sampler->options.attribution.recorder, LOSS_PC_FAILED, 1);
        goto done;
    }
    pc_context_end(sampler, context, true); /* nothing launches into a context that is being destroyed */
    pthread_mutex_unlock(&context->mutex);
done:
    errno = saved_errno;
}

void pc_sampler_launch(struct pc_sampler *sampler, bool is_enter)
{
    pc_breaks_launch(&sampler->breaks, is_enter);
}

void pc_sampler_capture(struct pc_sampler *sampler, bool is_enter)
{
    if (sampler->breaks.has_breaks)
        quiet_moment_capture(&sampler->breaks.quiet, is_enter);
}

gpufl_status pc_sampler_start(struct pc_sampler *sampler)
{
    pc_breaks_start(sampler);
    sampler->has_thread = own_thread_start(&sampler->thread, "gpufl-pc", OWN_THREAD_STACK_LARGE, run, sampler);
    return sampler->has_thread ? GPUFL_OK : GPUFL_E_NO_MEMORY;
}

void pc_sampler_rest(struct pc_sampler *sampler, bool is_resting)
{
    atomic_store(&sampler->is_resting, is_resting);
    for (int i = 0; is_resting && i < PC_CONTEXTS_MAX; i++) {
        struct pc_context *context = &sampler->contexts[i];
        if (atomic_load(&context->state) == PC_CONTEXT_FREE)
            continue;
        pthread_mutex_lock(&context->mutex);
        pthread_mutex_unlock(&context->mutex);
    }
}

static void set_paused(struct pc_sampler *sampler, bool is_paused)
{
    pthread_mutex_lock(&sampler->lock);
    sampler->is_paused = is_paused;
    sampler->has_news = true; /* contexts may have been created meanwhile */
    pthread_cond_signal(&sampler->news);
    pthread_mutex_unlock(&sampler->lock);
}

static bool has_context(struct pc_sampler *sampler, enum pc_context_state state)
{
    bool has_one = false;
    for (int i = 0; i < PC_CONTEXTS_MAX; i++)
        has_one |= atomic_load(&sampler->contexts[i].state) == (int)state;
    return has_one;
}

bool pc_sampler_is_sampling(struct pc_sampler *sampler)
{
    return has_context(sampler, PC_CONTEXT_OPEN) || has_context(sampler, PC_CONTEXT_WANTED);
}

void pc_sampler_set_window(struct pc_sampler *sampler, uint32_t window_id)
{
    atomic_store(&sampler->window_id, window_id);
}

bool pc_sampler_has_failed(struct pc_sampler *sampler)
{
    return has_context(sampler, PC_CONTEXT_FAILED) && !pc_sampler_is_sampling(sampler);
}

gpufl_status pc_sampler_pause(struct pc_sampler *sampler, struct problem *problem)
{
    gpufl_status status = GPUFL_OK;
    struct problem unread;
    if (!problem)
        problem = &unread;
    set_paused(sampler, true);
    for (int i = 0; i < PC_CONTEXTS_MAX; i++) {
        struct pc_context *context = &sampler->contexts[i];
        pthread_mutex_lock(&context->mutex);
        if (atomic_load(&context->state) == PC_CONTEXT_OPEN) {
            gpufl_status stopped = pc_context_take(sampler, context, pc_sampling_stop, problem);
            status = status == GPUFL_OK ? stopped : status;
        }
        pthread_mutex_unlock(&context->mutex);
    }
    return status;
}

gpufl_status pc_sampler_resume(struct pc_sampler *sampler, uint32_t window_id, struct problem *problem)
{
    gpufl_status status = GPUFL_OK;
    struct problem unread;
    if (!problem)
        problem = &unread;
    atomic_store(&sampler->window_id, window_id);
    set_paused(sampler, false);
    for (int i = 0; i < PC_CONTEXTS_MAX; i++) {
        struct pc_context *context = &sampler->contexts[i];
        pthread_mutex_lock(&context->mutex);
        if (atomic_load(&context->state) == PC_CONTEXT_WANTED && !atomic_load(&context->is_gone)) {
            struct problem refusal; /* of one context, which has recorded it */
            (void)pc_context_take_on(sampler, context, &refusal);
        } else if (atomic_load(&context->state) == PC_CONTEXT_OPEN) {
            bool is_resting = atomic_load(&sampler->is_resting);
            gpufl_status started = pc_sampling_start(context->sampling, is_resting, problem);
            pc_context_begin(context);
            if (started != GPUFL_OK && !is_resting) {
                pc_sampler_note(sampler, problem, GPUFL_LOG_WARNING);
                atomic_fetch_add(&sampler->failed_count, 1);
                atomic_store(&context->state, PC_CONTEXT_FAILED);
            }
            status = status == GPUFL_OK ? started : status;
        }
        pthread_mutex_unlock(&context->mutex);
    }
    return status;
}

void pc_sampler_write(struct pc_sampler *sampler, int64_t complete_ns)
{
    ended_windows_write(&sampler->breaks.ended, sampler->options.attribution.recorder);
    pc_ring_read(sampler->ring, sampler->attribution, complete_ns);
    pc_attribution_write(sampler->attribution, complete_ns);
    atomic_store(&sampler->unattributed, pc_attribution_unattributed(sampler->attribution));
}

/* Includes the waits of quiet moments. */
static int join_wait_s(const struct pc_sampler *sampler)
{
    return JOIN_WAIT_S + (sampler->breaks.has_breaks ? (QUIET_GATE_LAST_MS + 2 * QUIET_WAIT_MS) / 1000 : 0);
}

/* The thread does not return from CUPTI; the program must end anyway. call: NULL if unknown. */
static void sampler_leave_thread(struct pc_sampler *sampler, const char *call)
{
    struct problem problem;
    (void)problem_set(&problem, GPUFL_E_UNSUPPORTED,
                      "CUPTI did not return from %s in time (%s) and is not called again; what it still had, kernel "
                      "records included, is missing",
                      atomic_load(&sampler->activity), call ? call : "call unknown");
    atomic_store(&sampler->is_stuck, true);
    launch_gate_force_open(&sampler->breaks.quiet.gate); /* it may have closed the gate */
    pc_sampler_note(sampler, &problem, GPUFL_LOG_WARNING);
    pc_breaks_stop(sampler);
    cupti_trace_damaged(CUPTI_STUCK);
}

void pc_sampler_stop(struct pc_sampler *sampler, bool is_quiet)
{
    pthread_mutex_lock(&sampler->lock);
    sampler->is_stopping = true;
    sampler->is_stop_quiet = is_quiet;
    pthread_cond_signal(&sampler->news);
    pthread_mutex_unlock(&sampler->lock);
    const char *call = NULL;
    int64_t until_ns = stages_until_ns(join_wait_s(sampler) * INT64_C(1000000000));
    if (!sampler->has_thread)
        contexts_end(sampler, is_quiet); /* launches need not be reported any more: there is no quiet moment */
    else if (watch_join(sampler->thread, until_ns, until_ns, &call) != WATCH_ENDED)
        sampler_leave_thread(sampler, call);
    sampler->has_thread = false;
}

void pc_sampler_unblock_launches(struct pc_sampler *sampler)
{
    launch_gate_force_open(&sampler->breaks.quiet.gate);
}

bool pc_sampler_is_stuck(const struct pc_sampler *sampler)
{
    return sampler && atomic_load(&sampler->is_stuck);
}

void pc_sampler_free(struct pc_sampler *sampler)
{
    if (!sampler)
        return;
    if (!pc_sampler_is_stuck(sampler))
        pc_sampler_stop(sampler, false);
    if (pc_sampler_is_stuck(sampler)) /* its thread may still use it */
        return;
    for (int i = 0; i < PC_CONTEXTS_MAX; i++)
        pthread_mutex_destroy(&sampler->contexts[i].mutex);
    pthread_mutex_destroy(&sampler->lock);
    pthread_mutex_destroy(&sampler->acquire_lock);
    pthread_cond_destroy(&sampler->news);
    pc_breaks_destroy(&sampler->breaks);
    pc_ring_free(sampler->ring);
    pc_attribution_free(sampler->attribution);
    free(sampler);
}

void pc_sampler_abandon(struct pc_sampler *sampler)
{
    (void)sampler; /* its thread, its locks and CUPTI are in the parent; only leaking is safe */
    gpu_claims_abandon();
}

bool pc_sampler_trouble(struct pc_sampler *sampler, struct problem *problem)
{
    pthread_mutex_lock(&sampler->lock);
    bool has_trouble = sampler->trouble.text[0] != '\0';
    if (has_trouble && problem)
        *problem = sampler->trouble;
    pthread_mutex_unlock(&sampler->lock);
    return has_trouble;
}

struct pc_sampler_totals pc_sampler_totals(const struct pc_sampler *sampler)
{
    return (struct pc_sampler_totals){.samples = atomic_load(&sampler->samples),
                                      .dropped = atomic_load(&sampler->dropped),
                                      .non_user = atomic_load(&sampler->non_user),
                                      .intervals = atomic_load(&sampler->intervals),
                                      .unattributed = atomic_load(&sampler->unattributed),
                                      .contexts = atomic_load(&sampler->context_count),
                                      .contexts_failed = atomic_load(&sampler->failed_count),
                                      .cpu_ns = atomic_load(&sampler->cpu_ns)};
}

size_t pc_sampler_bytes(struct pc_sampler *sampler)
{
    size_t bytes = sizeof *sampler + pc_ring_bytes(sampler->ring) + pc_attribution_bytes(sampler->attribution);
    for (int i = 0; i < PC_CONTEXTS_MAX; i++) {
        struct pc_context *context = &sampler->contexts[i];
        /* A busy context has memory too, but a brief error is better than waiting for CUPTI. */
        if (atomic_load(&context->state) != PC_CONTEXT_OPEN || pthread_mutex_trylock(&context->mutex))
            continue;
        if (context->sampling)
            bytes += pc_sampling_bytes(context->sampling);
        pthread_mutex_unlock(&context->mutex);
    }
    return bytes;
}
