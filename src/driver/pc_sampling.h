/* SPDX-License-Identifier: Apache-2.0 */
/* PC sampling of one context. Its owner calls all functions, one thread at a time; among CUPTI's callbacks, open
 * only in the one that reports the context's creation, close only in the one that reports that it is about to be
 * destroyed. Needs an acquired profiler (profiler_target_acquire). */
#ifndef GPUFL_DRIVER_PC_SAMPLING_H
#define GPUFL_DRIVER_PC_SAMPLING_H

#include "driver/cupti_events.h"

struct pc_sampling; /* opaque */

struct pc_sampling_options {
    bool is_serialized;
    bool is_rare;             /* starts with the longest period, as in pc_sampling_start */
    uint32_t period_exponent; /* 5 to 31: one sample per 2^n cycles and sub-partition */
    size_t hardware_buffer_bytes, scratch_bytes;
    uint32_t worker_sleep_ms; /* how often CUPTI's own threads fetch and decode; 0: its default */
    uint32_t pcs_max;         /* read with one call; 0: 2,048 */
    uint32_t final_pcs_max;   /* delivered when it is switched off; 0: 32,768 */
};

struct stall_reason {
    uint32_t index;
    char name[128];
};
struct stall_reasons {
    uint32_t count;
    struct stall_reason *reasons; /* owned by the pc_sampling */
};

struct pc_sample {
    uint64_t cubin_crc;
    const char *function; /* mangled; valid during the call; "" unknown */
    uint64_t pc_offset;
    uint32_t function_index, stall_index, samples, correlation_id; /* correlation_id: 0 in continuous mode */
};
/* Takes up to a few hundred samples. */
typedef void pc_samples_fn(void *user, const struct pc_sample *samples, size_t count);

struct pc_drain {
    uint64_t total;    /* all samples: of the program's code, and the next two */
    uint64_t dropped;  /* by the hardware */
    uint64_t non_user; /* of kernels whose code CUPTI does not show */
    uint64_t unread;   /* lost when it was switched off: of more PCs than the last buffer holds */
    uint64_t pcs;
    bool was_buffer_full; /* the hardware buffer was full: an unknown number of samples is missing */
    bool has_more;        /* stopped before everything was read */
};

/* Samples from the next launch on. A context that was parked is taken over with the options it had. If configuring
 * fails it stays enabled, since disabling may hang. */
NODISCARD gpufl_status pc_sampling_open(struct pc_sampling **out, struct cupti *cupti, void *context,
                                        const struct pc_sampling_options *options, struct problem *problem);
bool pc_sampling_is_on(const struct pc_sampling *sampling); /* not between stop and start */
const struct pc_sampling_options *pc_sampling_effective(const struct pc_sampling *sampling);
const struct stall_reasons *pc_sampling_stall_reasons(const struct pc_sampling *sampling);
/* Off and on again, by disabling and enabling: CUPTI's own start and stop hang beside launching threads, and so does
 * disabling. No launch may be in progress in the process. Stopping delivers everything. is_rare: starts with the
 * longest period, for samples that nobody uses. */
NODISCARD gpufl_status pc_sampling_stop(struct pc_sampling *sampling, pc_samples_fn *take, void *user,
                                        struct pc_drain *drain, struct problem *problem);
NODISCARD gpufl_status pc_sampling_start(struct pc_sampling *sampling, bool is_rare, struct problem *problem);
/* Delivers what CUPTI has decoded so far; samples may be delivered even if a later call fails. */
NODISCARD gpufl_status pc_sampling_drain(struct pc_sampling *sampling, pc_samples_fn *take, void *user,
                                         struct pc_drain *drain, struct problem *problem);
/* Stops and frees: when no launch is in progress, or in the callback that reports that the context is about to be
 * destroyed. */
NODISCARD gpufl_status pc_sampling_close(struct pc_sampling *sampling, pc_samples_fn *take, void *user,
                                         struct pc_drain *drain, struct problem *problem);
/* In place of closing while launches are in progress: leaves it sampling, unread, for a later open of the context in
 * this process. */
void pc_sampling_park(struct pc_sampling *sampling);
/* While any is parked, CUPTI does not enable kernel records. */
bool pc_sampling_any_parked(void);
/* Frees without a CUPTI call: the context was destroyed, or the process was forked. */
void pc_sampling_forget(struct pc_sampling *sampling);
void pc_sampling_abandon(void); /* in a forked child: parked sampling belongs to the parent */
size_t pc_sampling_bytes(const struct pc_sampling *sampling);

#endif
