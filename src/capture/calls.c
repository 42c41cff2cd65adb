/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/calls.h"

#include <sys/mman.h>

gpufl_status calls_open(struct calls *calls)
{
    /* mmap: pages are allocated only when ids reach them. */
    void *memory =
        mmap(NULL, CALL_SLOTS * sizeof(struct call), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    calls->slots = memory == MAP_FAILED ? NULL : memory;
    return calls->slots ? GPUFL_OK : GPUFL_E_NO_MEMORY;
}

void calls_close(struct calls *calls)
{
    if (calls->slots)
        munmap(calls->slots, CALL_SLOTS * sizeof(struct call));
    calls->slots = NULL;
}

/* The slot was reused by a later call, so its content is gone. */
static bool has_later(const struct calls *calls, uint32_t correlation_id)
{
    uint32_t held_id = calls->slots[correlation_id & (CALL_SLOTS - 1)].correlation_id;
    return held_id && (int32_t)(held_id - correlation_id) > 0; /* ids wrap around */
}

void missing_calls_add(struct missing_calls *missing, struct recorder *recorder, const struct calls *calls,
                       uint32_t correlation_id, bool is_gpu_work)
{
    uint64_t counted = atomic_load(&recorder->lost[LOSS_CALL_RING]) + atomic_load(&recorder->lost[LOSS_CALL_THREADS]);
    bool is_lost = is_gpu_work ? calls->is_reported : has_later(calls, correlation_id);
    if (!is_lost || !correlation_id || correlation_id == missing->last_excused_id)
        return; /* the call of a graph has many rows */
    if (missing->excused < counted) {
        missing->excused++;
        missing->last_excused_id = correlation_id;
    } else {
        recorder_lose(recorder, LOSS_CALL_UNKNOWN, 1);
    }
}
