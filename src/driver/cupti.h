/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI, as far as tracing needs it: load, start, buffers, decode, stop. Callers use our own structs; no CUPTI type
 * is visible above this folder. Works with 12.x and 13.x: functions are gated by symbol, fields by the record's
 * version.
 *
 * One trace per process. CUPTI calls the two buffer functions on its own or on the user's threads: they must not
 * block, allocate or call CUPTI. */
#ifndef GPUFL_DRIVER_CUPTI_H
#define GPUFL_DRIVER_CUPTI_H

#include "base/status.h"
#include "driver/activity.h"

struct cupti; /* opaque, process-wide, never unloaded */

NODISCARD gpufl_status cupti_load(struct cupti **out, struct problem *problem);
void cupti_abandon(void);                          /* in a forked child */
uint32_t cupti_version(const struct cupti *cupti); /* 26 = 12.8, 130001 = 13.0 U1 */
const char *cupti_path(const struct cupti *cupti);
/* CUPTI's clock now; 0 when it cannot be read. */
int64_t cupti_now_ns(const struct cupti *cupti);

enum {
    CUPTI_TRACE_SYNC = 1 << 0,     /* host waits */
    CUPTI_TRACE_MEMORY = 1 << 1,   /* allocations */
    CUPTI_TRACE_EXTERNAL = 1 << 2, /* external correlation ids */
    CUPTI_TRACE_OVERHEAD = 1 << 3, /* CUPTI's own cost */
    CUPTI_TRACE_GRAPHS = 1 << 4,   /* API records of graph launches (nodes are always recorded) */
};

struct cupti_trace_options {
    unsigned features;
    /* CUDA is not initialized yet: API records, if used, can then be enabled call by call. That spares the program
     * CUPTI's hook on every other call (a PyTorch step makes ten cheap calls for each launch). */
    bool is_before_cuda;
    /* Added to every correlation id. CUPTI starts at 1 again after cupti_trace_detach; adding the highest id so far
     * keeps the ids unique. */
    uint32_t id_offset;
    /* Gives CUPTI an 8-byte aligned buffer, or NULL to drop its records (then counted by CUPTI). */
    uint8_t *(*buffer_request)(size_t *size);
    /* Returns the buffer, filled with `valid` bytes (0: nothing). */
    void (*buffer_complete)(uint8_t *buffer, size_t size, size_t valid);
    /* If not NULL, called on the user's thread on entry to and return from each call that launches, copies or waits
     * (or allocates, if requested). Then neither ACTIVITY_API, ACTIVITY_SYNC nor ACTIVITY_EXTERNAL is delivered,
     * unless CUPTI refuses. CUPTI's own records of these calls cost more than the kernel records themselves, and its
     * records of waits hook every call of the API (docs/adr/0011). */
    void (*on_call)(const struct user_call *call, bool is_enter);
};

/* bits of cupti_trace_result.granted: what was actually enabled */
enum {
    CUPTI_GRANTED_KERNELS = 1 << 16,
    CUPTI_GRANTED_COPIES = 1 << 17,
    CUPTI_GRANTED_MEMSETS = 1 << 18,
    CUPTI_GRANTED_API = 1 << 19, /* API time and thread of each call */
    CUPTI_GRANTED_CALLBACKS = 1 << 20
};

struct cupti_trace_result {
    unsigned granted;          /* CUPTI_TRACE_* and CUPTI_GRANTED_* bits */
    bool has_system_thread_id; /* otherwise API thread ids are the low 32 bits of pthread_self() */
    char other_profiler[64];   /* who holds CUPTI, when that is the reason for failure */
};

/* On any error everything that was enabled is undone and the problem says what to do next: GPUFL_E_BUSY another
 * profiler, GPUFL_E_UNSUPPORTED too old, GPUFL_E_NO_DRIVER. A single feature that cannot be enabled only lacks its
 * granted bit. */
NODISCARD gpufl_status cupti_trace_start(struct cupti *cupti, const struct cupti_trace_options *options,
                                         struct cupti_trace_result *result, struct problem *problem);
/* Delivers buffers whose records are complete; forced: also incomplete ones (only at the end). */
void cupti_flush(struct cupti *cupti, bool forced);
/* Disables everything and flushes; no buffer function is called after it returns. */
void cupti_trace_stop(struct cupti *cupti);
/* Disables everything, so that nothing new is recorded; records of earlier launches are still delivered. */
void cupti_trace_quiet(struct cupti *cupti);
/* As stop, and also finalizes CUPTI (cuptiFinalize), so that another profiler finds it unused. Buffers that CUPTI
 * still held are not returned. */
void cupti_trace_detach(struct cupti *cupti);
void cupti_trace_abandon(void); /* in a forked child: nothing of the parent's trace is called there */
/* The state of CUPTI after a failure of one of its profilers, for the life of the process. FAILED: disabling
 * crashes, while reading still works; STUCK: a thread does not return, so nothing is called any more. */
enum cupti_damage { CUPTI_SOUND, CUPTI_FAILED, CUPTI_STUCK };
void cupti_trace_damaged(enum cupti_damage damage); /* any thread; the state never improves */
bool cupti_trace_is_stuck(void);                    /* CUPTI must not be called any more, not even for a flush */
/* Records CUPTI itself dropped since the last call. */
uint64_t cupti_take_dropped(struct cupti *cupti);
/* The first CUPTI call that failed since start, for the capability record; "" when none did. */
const char *cupti_first_failure(const struct cupti *cupti);

struct activity_cursor {
    const struct cupti *cupti;
    uint8_t *buffer;
    size_t valid;
    void *record; /* CUPTI's position */
};
/* Next record of a completed buffer; false at the end. Never reads outside buffer[0..valid). */
bool activity_next(struct activity_cursor *cursor, struct activity *activity);
const char *overhead_kind_name(uint32_t kind);

#endif
