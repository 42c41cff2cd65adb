/* SPDX-License-Identifier: Apache-2.0 */
/* Turns a counter into a rate from its second reading on. */
#ifndef GPUFL_DRIVER_COUNTER_RATE_H
#define GPUFL_DRIVER_COUNTER_RATE_H

#include <stdbool.h>
#include <stdint.h>

struct counter_rate {
    uint64_t value;
    int64_t time_ns;
    bool has_value;
};

/* Rate between the last reading and this one, in units per second. False: the rate is unknown, because this is the
 * first reading or a 32-bit counter may have wrapped more than once (units_per_s_max: the link's maximum, 0
 * unknown). */
bool counter_rate_next(struct counter_rate *counter, uint64_t value, int64_t now_ns, uint64_t units_per_s_max,
                       uint64_t *rate);

#endif
