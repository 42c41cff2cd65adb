/* SPDX-License-Identifier: Apache-2.0 */
/* Stops what the collector reads from, or continues without it if it does not stop. */
#include "capture/buffer_pool.h"
#include "capture/collector_state.h"

void collector_stop_deep(struct collector *collector)
{
    yielding_close(collector);
    if (collector->deep && !collector->is_deep_over)
        deep_stop(collector->deep);
}

void collector_stop_amd(struct collector *collector)
{
    struct amd_trace *amd = atomic_load(&collector->amd);
    if (amd)
        amd_trace_stop(amd);
}

void collector_stop_cupti(struct collector *collector)
{
    if (!collector->cupti)
        return;
    cupti_trace_stop(collector->cupti);
    /* CUPTI returns every buffer in the final flush, to whoever registered last. */
    if (buffer_pool_lent() > collector->lent_before)
        recorder_lose(&collector->recorder, cupti_trace_is_stuck() ? LOSS_CUPTI_LEFT : LOSS_TAKEN_OVER, 1);
}

void collector_leave_engines(struct collector *collector)
{
    atomic_store(&collector->are_engines_left, true);
    cupti_trace_damaged(CUPTI_STUCK);
    cupti_listen_no_more();
    if (collector->deep)
        deep_unblock_launches(collector->deep);
}

void collector_drop_cupti(struct collector *collector)
{
    collector_leave_engines(collector);
    collector->cupti = NULL; /* neither is freed: a thread never returns from one of them */
    collector->deep = NULL;
}

void collector_drop_amd(struct collector *collector)
{
    atomic_store(&collector->amd, NULL);
}
