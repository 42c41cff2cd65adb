/* SPDX-License-Identifier: Apache-2.0 */
/* The PC sampling engine: samples every attached context. Its own thread (gpufl-pc) drains them into a bounded ring;
 * the collector writes them as profile_sample_batch rows once the kernel records of the same time, with which they
 * are joined, were read. Losses: pc_* of recorder.h. */
#ifndef GPUFL_CAPTURE_PC_SAMPLER_H
#define GPUFL_CAPTURE_PC_SAMPLER_H

#include "capture/pc_attribution.h"
#include "driver/cupti_events.h"

enum { PC_CONTEXTS_MAX = 64 };

struct pc_sampler; /* opaque */

struct pc_sampler_options {
    struct cupti *cupti; /* borrowed, as is what `attribution` points to */
    struct pc_attribution_options attribution;
    bool is_serialized;           /* one kernel at a time: exact, slow */
    uint32_t rate_hz;             /* samples per second and busy SM to aim for, breaks included; 0: 4,000 */
    uint32_t period_exponent;     /* 5 to 31: a period of 2^n cycles; 0: computed from the rate and the SM's clock */
    size_t hardware_buffer_bytes; /* 0: 32 MiB */
    uint32_t drain_ms;            /* 0: 100; with breaks 500 */
    uint32_t share_percent;       /* share of the run in which samples are taken (pc_breaks.h); 0: 10 */
    uint32_t cycle_ms;            /* longest cycle, of a window with samples and the break after it; 0: 60,000 */
};

struct pc_sampler_totals {
    uint64_t samples, dropped, non_user; /* of the program's code; dropped by the GPU; of hidden code */
    uint64_t intervals;                  /* drains that had samples */
    uint64_t unattributed;               /* samples written without a scope */
    uint32_t contexts, contexts_failed;
    int64_t cpu_ns; /* of the thread */
};

NODISCARD gpufl_status pc_sampler_make(struct pc_sampler **out, const struct pc_sampler_options *options,
                                       struct problem *problem);
/* Starts sampling the context. Kernel records must be on already: CUPTI does not enable them beside PC sampling. Any
 * thread; among CUPTI's callbacks only in the one that reports the context's creation. */
NODISCARD gpufl_status pc_sampler_attach(struct pc_sampler *sampler, const struct gpu_context *context,
                                         struct problem *problem);
/* The same, done soon by the sampler's thread: any thread, in any callback. Failures go to the log and to
 * pc_sampler_trouble. */
void pc_sampler_want(struct pc_sampler *sampler, const struct gpu_context *context);
/* The context is about to be destroyed: reads its last samples. Any thread, also in the callback that reports it. */
void pc_sampler_detach(struct pc_sampler *sampler, void *handle);
NODISCARD gpufl_status pc_sampler_start(struct pc_sampler *sampler);
/* Each launch, entered and left; any thread. */
void pc_sampler_launch(struct pc_sampler *sampler, bool is_enter);
void pc_sampler_capture(struct pc_sampler *sampler, bool is_enter); /* as in struct cupti_listener */
/* Between pause and resume no samples are taken; rows after resume belong to the given window. No launch may be in
 * progress in the process, else CUPTI and the program hang. Contexts that are created meanwhile are taken on by
 * resume. */
NODISCARD gpufl_status pc_sampler_pause(struct pc_sampler *sampler, struct problem *problem);
NODISCARD gpufl_status pc_sampler_resume(struct pc_sampler *sampler, uint32_t window_id, struct problem *problem);
/* While resting, sampling stays enabled because SASS counters need it, but its samples are dropped: they show
 * patched code, not the program's own. Contexts attached or resumed meanwhile get the longest period, so pause the
 * sampler before. Returns once the thread has left CUPTI. */
void pc_sampler_rest(struct pc_sampler *sampler, bool is_resting);
void pc_sampler_set_window(struct pc_sampler *sampler, uint32_t window_id); /* while no context is sampled */
/* Sampling failed for every existing context. */
bool pc_sampler_has_failed(struct pc_sampler *sampler);
/* Collector thread: writes the samples taken until complete_ns, the time until which all kernel records are in the
 * history; INT64_MAX: all. Call it once more after stop. */
void pc_sampler_write(struct pc_sampler *sampler, int64_t complete_ns);
/* Reads the last samples of all contexts and joins the thread. is_quiet: no launch is or will be in progress during
 * the call, so that sampling can be switched off; otherwise it stays on, unread, for the next session of the
 * process. */
void pc_sampler_stop(struct pc_sampler *sampler, bool is_quiet);
void pc_sampler_unblock_launches(struct pc_sampler *sampler); /* lets blocked launches pass; any thread */
/* After stop: its thread was abandoned in CUPTI, and may use its arguments if it returns. NULL: no. */
bool pc_sampler_is_stuck(const struct pc_sampler *sampler);
void pc_sampler_free(struct pc_sampler *sampler);    /* stops a running sampler (is_quiet false); NULL is a no-op */
void pc_sampler_abandon(struct pc_sampler *sampler); /* after fork in the child */
/* The first failure of a context; false: there was none. */
bool pc_sampler_trouble(struct pc_sampler *sampler, struct problem *problem);
struct pc_sampler_totals pc_sampler_totals(const struct pc_sampler *sampler);
size_t pc_sampler_bytes(struct pc_sampler *sampler);
/* The exponent n of the longest period of 2^n cycles that gives at least that rate; an SM takes four samples (one
 * per sub-partition) in a period. */
uint32_t pc_sampler_period_exponent(uint32_t rate_hz, uint32_t clock_khz);

#endif
