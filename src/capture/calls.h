/* SPDX-License-Identifier: Apache-2.0 */
/* Known facts about API calls, by correlation id: thread, host time, scope, external id, stack. They arrive in any
 * order from different buffers. The table is direct-mapped: ids grow, so a slot is reused only after 131,072 calls,
 * usually long after the call's kernels arrived. A kernel that arrives later is counted as a loss. Collector thread
 * only. */
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
    bool is_reported; /* at least one call of this source was reported: otherwise a missing call is not a loss */
};

NODISCARD gpufl_status calls_open(struct calls *calls);
void calls_close(struct calls *calls);
/* The call's slot, cleared if it belonged to another id. */
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

/* Rows that were written without their call. */
struct missing_calls {
    uint64_t excused; /* missing for a reason that is counted already */
    uint32_t last_excused_id;
};
/* Counts a row that is written without its call as a loss, unless the loss of that call was already counted (its
 * ring was full, or its thread had none). correlation_id 0: there was no call. GPU work is only launched by calls
 * that are reported. Other records can have other causes, for example allocations by loading a module, and are
 * counted only when their call was certainly forgotten. */
void missing_calls_add(struct missing_calls *missing, struct recorder *recorder, const struct calls *calls,
                       uint32_t correlation_id, bool is_gpu_work);

#endif
