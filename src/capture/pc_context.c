/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/pc_engine.h"

#include "base/clock.h"
#include "base/log.h"
#include "driver/cuda.h"
#include "driver/gpu_claim.h"
#include "driver/profiler_target.h"

enum { SCRATCH_BYTES = 4 << 20 };

void pc_sampler_note(struct pc_sampler *sampler, const struct problem *problem, gpufl_log_level level)
{
    pthread_mutex_lock(&sampler->lock);
    bool is_first = !sampler->trouble.text[0];
    if (is_first)
        sampler->trouble = *problem;
    pthread_mutex_unlock(&sampler->lock);
    recorder_lose_because(sampler->options.attribution.recorder, LOSS_PC_FAILED, 1, problem->text);
    if (is_first)
        log_message(level, "PC sampling: %s", problem->text);
}

struct taking {
    struct pc_sampler *sampler;
    struct pc_interval interval;
    uint64_t samples;
};

static void take_samples(void *user, const struct pc_sample *samples, size_t count)
{
    struct taking *taking = user;
    if (!taking->interval.end_ns) /* once per drain: later reads only empty CUPTI's buffer */
        taking->interval.end_ns = clock_log_ns();
    for (size_t i = 0; i < count; i++)
        taking->samples += samples[i].samples;
    pc_ring_push_samples(taking->sampler->ring, &taking->interval, samples, count);
}

static void leave_samples(void *user, const struct pc_sample *samples, size_t count)
{
    (void)user;
    (void)samples;
    (void)count;
}

gpufl_status pc_context_take(struct pc_sampler *sampler, struct pc_context *context, pc_drain_fn *function,
                             struct problem *problem)
{
    struct recorder *recorder = sampler->options.attribution.recorder;
    struct taking taking = {
        sampler, {context->since_ns, 0, context->gpu.id, context->gpu.device_id, atomic_load(&sampler->window_id)}, 0};
    struct pc_drain drain = {0};
    bool is_resting = atomic_load(&sampler->is_resting);
    if (!context->is_described && !is_resting)
        context->is_described =
            pc_ring_push_config(sampler->ring, &context->config, pc_sampling_stall_reasons(context->sampling));
    int64_t asked_ns = clock_log_ns();
    int64_t round_ns = (int64_t)pc_sampling_effective(context->sampling)->worker_sleep_ms * 1000000;
    gpufl_status status =
        function(context->sampling, is_resting ? leave_samples : take_samples, &taking, &drain, problem);
    if (is_resting)
        drain = (struct pc_drain){0}; /* and nothing counts as missing */
    atomic_fetch_add(&sampler->samples, taking.samples);
    atomic_fetch_add(&sampler->dropped, drain.dropped);
    atomic_fetch_add(&sampler->non_user, drain.non_user);
    atomic_fetch_add(&sampler->intervals, taking.samples > 0);
    recorder_lose(recorder, LOSS_PC_DROPPED, drain.dropped);
    recorder_lose(recorder, LOSS_PC_UNREAD, drain.unread);
    recorder_lose(recorder, LOSS_PC_BUFFER_FULL, drain.was_buffer_full);
    /* CUPTI's thread decodes at its own interval: the next samples may be older than this call by one interval. */
    int64_t since_ns = asked_ns - round_ns;
    context->since_ns = since_ns > context->begun_ns ? since_ns : context->begun_ns;
    if (status != GPUFL_OK) {
        pc_sampler_note(sampler, problem, GPUFL_LOG_WARNING);
        cupti_trace_damaged(CUPTI_FAILED);
        atomic_fetch_add(&sampler->failed_count, 1);
        atomic_store(&context->state, PC_CONTEXT_FAILED);
    }
    return status;
}

void pc_context_begin(struct pc_context *context)
{
    context->begun_ns = context->since_ns = clock_log_ns();
}

static uint32_t clock_khz_of(uint32_t device_id)
{
    struct cuda *cuda;
    struct device_limits limits;
    if (cuda_load(&cuda, false, NULL) != GPUFL_OK || cuda_device_limits(cuda, device_id, &limits) != GPUFL_OK ||
        !limits.is_known || !limits.core_clock_khz)
        return PC_CLOCK_GUESS_KHZ;
    return limits.core_clock_khz;
}

static gpufl_status acquire(struct pc_sampler *sampler, struct problem *problem)
{
    pthread_mutex_lock(&sampler->acquire_lock);
    gpufl_status status = sampler->is_acquired ? GPUFL_OK : profiler_target_acquire(sampler->options.cupti, problem);
    sampler->is_acquired = status == GPUFL_OK;
    pthread_mutex_unlock(&sampler->acquire_lock);
    return status;
}

/* Call with the context's mutex held. */
static gpufl_status context_open(struct pc_sampler *sampler, struct pc_context *context, struct problem *problem)
{
    const struct pc_sampler_options *options = &sampler->options;
    uint32_t device_id = context->gpu.device_id;
    gpufl_status status = acquire(sampler, problem);
    if (status == GPUFL_OK)
        status = profiler_target_check(options->cupti, device_id, PROFILER_API_PC_SAMPLING, problem);
    if (status == GPUFL_OK)
        status = gpu_claim_take(device_id, problem);
    if (status != GPUFL_OK)
        return status;
    uint32_t exponent = pc_sampler_exponent(sampler, clock_khz_of(device_id));
    bool is_rare = atomic_load(&sampler->is_resting);
    const struct pc_sampling_options sampling = {.is_serialized = options->is_serialized,
                                                 .period_exponent = exponent,
                                                 .hardware_buffer_bytes = options->hardware_buffer_bytes,
                                                 .scratch_bytes = SCRATCH_BYTES,
                                                 .worker_sleep_ms = pc_sampler_worker_ms(sampler),
                                                 .is_rare = is_rare};
    status = pc_sampling_open(&context->sampling, options->cupti, context->gpu.handle, &sampling, problem);
    if (status != GPUFL_OK)
        return status; /* keeps the claim: sampling may be enabled despite the failure */
    const struct pc_sampling_options *effective = pc_sampling_effective(context->sampling);
    context->config = (struct pc_config){.context_id = context->gpu.id,
                                         .device_id = device_id,
                                         .is_serialized = effective->is_serialized,
                                         .period_exponent = effective->period_exponent,
                                         .rate_hz = options->period_exponent ? 0 : options->rate_hz,
                                         .hardware_buffer_bytes = effective->hardware_buffer_bytes};
    pc_context_begin(context);
    return GPUFL_OK;
}

static bool is_paused(struct pc_sampler *sampler)
{
    pthread_mutex_lock(&sampler->lock);
    bool is_paused = sampler->is_paused;
    pthread_mutex_unlock(&sampler->lock);
    return is_paused;
}

gpufl_status pc_context_take_on(struct pc_sampler *sampler, struct pc_context *context, struct problem *problem)
{
    if (is_paused(sampler))
        return GPUFL_OK;
    gpufl_status status = context_open(sampler, context, problem);
    atomic_fetch_add(status == GPUFL_OK ? &sampler->context_count : &sampler->failed_count, 1);
    if (status != GPUFL_OK) /* without any context the engine is a lower one, which is reported with this reason */
        pc_sampler_note(sampler, problem, atomic_load(&sampler->context_count) ? GPUFL_LOG_WARNING : GPUFL_LOG_INFO);
    atomic_store(&context->state, status == GPUFL_OK ? PC_CONTEXT_OPEN : PC_CONTEXT_FAILED);
    return status;
}

/* Call with the context's mutex held. */
static bool context_close(struct pc_sampler *sampler, struct pc_context *context, struct problem *problem)
{
    bool is_off = pc_context_take(sampler, context, pc_sampling_close, problem) == GPUFL_OK;
    if (is_off)
        gpu_claim_release(context->gpu.device_id);
    context->sampling = NULL;
    return is_off;
}

/* Call with the context's mutex held. */
static void context_release(struct pc_context *context)
{
    pc_sampling_forget(context->sampling);
    context->sampling = NULL;
    context->is_described = false;
    atomic_store(&context->is_gone, false);
    atomic_store(&context->state, PC_CONTEXT_FREE);
}

bool pc_context_end(struct pc_sampler *sampler, struct pc_context *context, bool is_quiet)
{
    struct problem problem = {""};
    bool is_off = !context->sampling;
    /* After a failed read, for example because another process samples the GPU, CUPTI is not called again. */
    bool has_read_failed =
        atomic_load(&context->state) == PC_CONTEXT_FAILED && context->sampling && pc_sampling_is_on(context->sampling);
    if (!context->sampling || has_read_failed || atomic_load(&context->is_gone)) {
        context_release(context);
        return is_off;
    }
    if (is_quiet || !pc_sampling_is_on(context->sampling)) {
        is_off = context_close(sampler, context, &problem);
    } else if (pc_context_take(sampler, context, pc_sampling_drain, &problem) == GPUFL_OK) {
        pc_sampling_park(context->sampling);
        context->sampling = NULL;
    }
    context_release(context);
    return is_off;
}

void pc_context_tick(struct pc_sampler *sampler, struct pc_context *context)
{
    struct problem problem = {""};
    if (atomic_load(&context->is_gone)) { /* while the thread was in CUPTI for it */
        context_release(context);
        return;
    }
    if (atomic_load(&context->state) == PC_CONTEXT_WANTED)
        (void)pc_context_take_on(sampler, context, &problem);
    if (atomic_load(&context->state) != PC_CONTEXT_OPEN || atomic_load(&sampler->is_resting))
        return;
    (void)pc_context_take(sampler, context, pc_sampling_drain, &problem);
}
