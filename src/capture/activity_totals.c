/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/activity_joiner.h"

void activity_totals_add_overhead(struct activity_totals *totals, const struct overhead_activity *overhead)
{
    if (overhead->end_ns < overhead->start_ns)
        return;
    for (int i = 0; i < 16; i++)
        if (totals->cupti_overhead_kind[i] == overhead->kind || !totals->cupti_overhead_kind[i]) {
            totals->cupti_overhead_kind[i] = overhead->kind;
            totals->cupti_overhead_ns[i] += overhead->end_ns - overhead->start_ns;
            return;
        }
}
