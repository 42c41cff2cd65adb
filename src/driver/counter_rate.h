/* SPDX-License-Identifier: Apache-2.0 */
/* A counter that becomes a rate with its second reading. */
#ifndef GPUFL_DRIVER_COUNTER_RATE_H
#define GPUFL_DRIVER_COUNTER_RATE_H

#include <stdbool.h>
#include <stdint.h>

struct counter_rate {
    uint64_t value;
    int64_t time_ns;
    bool has_value;
};

/* Rate between the last reading and this one, in units per second. False: no rate can be known, for lack
 * of a first reading, or because a counter of 32 bits may have gone round more than once
 * (units_per_s_max: what the link can do at most, 0 unknown). */
bool counter_rate_next(struct counter_rate *counter, uint64_t value, int64_t now_ns, uint64_t units_per_s_max,
                       uint64_t *rate);

#endif
