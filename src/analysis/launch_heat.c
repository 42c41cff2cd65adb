/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/launch_heat.h"

#include <stdlib.h>

enum { slot_count = 4096 }; /* by thread id: two threads in one slot alternately appear cold, which is rare */

struct launch_heat {
    int64_t own_ns; /* gpufl's own time before a launch, on average */
    int64_t call_ns, call_cold_ns;
    struct {
        uint32_t thread_id;
        int64_t end_ns; /* 0: no launch yet */
    } slots[slot_count];
};

struct launch_heat *launch_heat_make(const struct session_model *model)
{
    const struct session_overhead *overhead = &model->overhead;
    struct launch_heat *heat = calloc(1, sizeof *heat);
    if (!heat)
        return NULL;
    int64_t stacks_ns = overhead->user_ns[USER_TIME_STACKS];
    if (stacks_ns > 0 && model->kernels.count)
        heat->own_ns = stacks_ns / (int64_t)model->kernels.count;
    heat->call_ns = overhead->record_cost_ns[RECORD_COST_CALL];
    heat->call_cold_ns = overhead->record_cost_ns[RECORD_COST_CALL_COLD];
    return heat;
}

void launch_heat_free(struct launch_heat *heat)
{
    free(heat);
}

double launch_heat_coldness(struct launch_heat *heat, uint32_t thread_id, int64_t start_ns, int64_t duration_ns)
{
    uint32_t at = thread_id % slot_count;
    bool has_last = heat->slots[at].end_ns && heat->slots[at].thread_id == thread_id;
    int64_t gap_ns = has_last ? start_ns - heat->slots[at].end_ns - heat->own_ns : INT64_MAX;
    heat->slots[at].thread_id = thread_id;
    heat->slots[at].end_ns = start_ns + (duration_ns > 0 ? duration_ns : 0);
    if (gap_ns <= RECORD_COST_COLD_GAP_NS)
        return 0;
    if (heat->call_cold_ns <= heat->call_ns || duration_ns < 0)
        return 1;
    double share = (double)(duration_ns - heat->call_ns) / (double)(heat->call_cold_ns - heat->call_ns);
    return share < 0 ? 0 : share > 1 ? 1 : share;
}
