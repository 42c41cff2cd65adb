/* SPDX-License-Identifier: Apache-2.0 */
/* struct pc_sampler, shared by pc_sampler.c (the engine and its thread), pc_context.c (operations on one context,
 * under its mutex), pc_rate.c and pc_breaks.c. */
#ifndef GPUFL_CAPTURE_PC_ENGINE_H
#define GPUFL_CAPTURE_PC_ENGINE_H

#include "capture/pc_breaks.h"
#include "capture/pc_ring.h"
#include "capture/pc_sampler.h"
#include "driver/pc_sampling.h"

#include <pthread.h>
#include <stdatomic.h>

enum { PC_PERIOD_MIN = 5, PC_PERIOD_MAX = 31 }; /* exponents */
enum {
    PC_CLOCK_GUESS_KHZ = 1500000
}; /* used when the device does not report its clock; the resulting period is
                                        * recorded */

#define PC_ACTIVITY_READING "reading samples"

/* free -> wanted -> open -> free; failed instead of open: kept, so that it is not retried. */
enum pc_context_state { PC_CONTEXT_FREE, PC_CONTEXT_WANTED, PC_CONTEXT_OPEN, PC_CONTEXT_FAILED };

struct pc_context {
    _Atomic int state;
    pthread_mutex_t mutex; /* held around CUPTI's calls for this context */
    struct gpu_context gpu;
    struct pc_sampling *sampling;
    struct pc_config config;
    bool is_described;          /* its configuration is in the ring */
    int64_t since_ns, begun_ns; /* earliest time of a sample not drained yet; when sampling began */
    _Atomic bool is_gone;       /* destroyed while the thread was busy with it */
};

struct pc_sampler {
    struct pc_sampler_options options;
    struct pc_ring *ring;
    struct pc_attribution *attribution;
    pthread_mutex_t lock; /* guards what follows, and taking a free context; never held during a call to CUPTI */
    pthread_cond_t news;
    bool has_news, is_stopping, is_stop_quiet, is_paused;
    struct problem trouble;
    struct pc_context contexts[PC_CONTEXTS_MAX];
    pthread_mutex_t acquire_lock;
    bool is_acquired; /* CUPTI's profiler is acquired; only once there is a context, since CUDA must be initialized */
    pthread_t thread;
    bool has_thread;
    _Atomic bool is_stuck;          /* the thread does not return from CUPTI */
    _Atomic(const char *) activity; /* what it is doing in CUPTI */
    struct pc_breaks breaks;
    _Atomic uint32_t window_id;
    _Atomic bool is_resting;
    _Atomic uint64_t samples, dropped, non_user, intervals, unattributed;
    _Atomic uint32_t context_count, failed_count;
    _Atomic int64_t cpu_ns;
};

typedef gpufl_status pc_drain_fn(struct pc_sampling *sampling, pc_samples_fn *take, void *user, struct pc_drain *drain,
                                 struct problem *problem);
/* Call these with the context's mutex held. */
/* Drains, stops or closes, and counts the samples; a context that fails is not used again. */
gpufl_status pc_context_take(struct pc_sampler *sampler, struct pc_context *context, pc_drain_fn *function,
                             struct problem *problem);
void pc_context_begin(struct pc_context *context); /* sampling begins now */
/* Starts sampling a wanted context, unless paused. */
gpufl_status pc_context_take_on(struct pc_sampler *sampler, struct pc_context *context, struct problem *problem);
/* Reads the last samples; then switches sampling off, or parks it where switching off might hang. False: it is still
 * on. */
bool pc_context_end(struct pc_sampler *sampler, struct pc_context *context, bool is_quiet);
void pc_context_tick(struct pc_sampler *sampler, struct pc_context *context); /* on the sampler's thread */
uint32_t pc_sampler_usual_drain_ms(const struct pc_sampler *sampler);
uint32_t pc_sampler_worker_ms(const struct pc_sampler *sampler); /* how often CUPTI's own thread decodes */
uint32_t pc_sampler_exponent(const struct pc_sampler *sampler, uint32_t clock_khz); /* as requested, or derived from
                                                                                     * the rate */
bool pc_sampler_is_sampling(struct pc_sampler *sampler);                            /* a context is sampled, or will
                                                                                     * be */
/* Keeps and logs the first failure, and counts it as a loss. */
void pc_sampler_note(struct pc_sampler *sampler, const struct problem *problem, gpufl_log_level level);

#endif
