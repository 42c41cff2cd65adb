/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/counter_rate.h"

bool counter_rate_next(struct counter_rate *counter, uint64_t value, int64_t now_ns, uint64_t units_per_s_max,
                       uint64_t *rate)
{
    struct counter_rate last = *counter;
    *counter = (struct counter_rate){value, now_ns, true};
    int64_t elapsed_ns = now_ns - last.time_ns;
    if (!last.has_value || elapsed_ns <= 0)
        return false;
    bool is_32_bit = value <= UINT32_MAX && last.value <= UINT32_MAX;
    if (!is_32_bit && value < last.value)
        return false; /* the counter was reset */
    double seconds = (double)elapsed_ns * 1e-9;
    if (is_32_bit && units_per_s_max && (double)units_per_s_max * seconds >= (double)UINT32_MAX)
        return false;
    uint64_t delta = is_32_bit ? (uint32_t)(value - last.value) : value - last.value;
    *rate = (uint64_t)((double)delta / seconds + 0.5);
    return true;
}
