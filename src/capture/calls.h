/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of API calls, by correlation id: thread, host time, scope,
 * external id, stack. The parts come in any order from different buffers. A
 * direct-mapped table: ids grow, so a slot is reused only after 131,072 calls, mostly long
 * after its kernels were seen; what comes later still is counted as a loss. Collector thread only. */
#ifndef GPUFL_CAPTURE_CALLS_H
#define GPUFL_CAPTURE_CALLS_H

#include "base/status.h"
#include "capture/recorder.h"

struct call {
    int64_t start_ns, duration_ns;
    uint64_t scope_id; /* or SCOPE_UNKNOWN */
    uint64_t external_id;
    uint32_t correlation_id, thread_id;
    uint32_t stack_id; /* stacks_identify */
    uint8_t external_kind;
    bool has_times; /* the API record was seen */
    bool is_async;  /* its name says so (HIP) */
};

enum { CALL_SLOTS = 128 * 1024 };

struct calls {
    struct call *slots;
    uint32_t highest_id;
    bool is_told; /* there was one: else a missing call is not a lost one */
};

NODISCARD gpufl_status calls_open(struct calls *calls);
void calls_close(struct calls *calls);
/* The call's slot, made empty when another id had it. */
static inline struct call *calls_slot(struct calls *calls, uint32_t correlation_id)
{
    struct call *call = &calls->slots[correlation_id & (CALL_SLOTS - 1)];
    if (call->correlation_id != correlation_id)
        *call = (struct call){.correlation_id = correlation_id};
    if (correlation_id > calls->highest_id)
        calls->highest_id = correlation_id;
    return call;
}
/* The call if its API record was seen, else NULL. */
static inline const struct call *calls_find(const struct calls *calls, uint32_t correlation_id)
{
    const struct call *call = &calls->slots[correlation_id & (CALL_SLOTS - 1)];
    return call->correlation_id == correlation_id && call->has_times ? call : NULL;
}

/* Calls of which rows were written without them. */
struct missing_calls {
    uint64_t excused; /* missing for a reason that is counted already */
    uint32_t last_excused_id;
};
/* Counts a row that is written without its call as a loss, unless the loss of that call was counted: its ring was full,
 * or its thread had none. correlation_id 0: nobody called. GPU work is launched by calls that are told; the rest also
 * comes from others, as allocations from loading a module, so it is counted when its call was surely forgotten. */
void missing_calls_add(struct missing_calls *missing, struct recorder *recorder, const struct calls *calls,
                       uint32_t correlation_id, bool is_gpu_work);

#endif
