/* SPDX-License-Identifier: Apache-2.0 */
/* The wall clock can be set while a session runs. The log's clock is the wall clock at the session's start, continued
 * by CLOCK_BOOTTIME, which cannot be set. This module computes the log's time for a wall-clock time, the clock that
 * CUPTI stamps with. Plain data and functions: no clock is read here. */
#ifndef GPUFL_BASE_WALL_STEPS_H
#define GPUFL_BASE_WALL_STEPS_H

#include <stdbool.h>
#include <stdint.h>

enum { WALL_STEPS_KEPT = 16 }; /* the latest steps: records arrive a few seconds late */

struct wall_reading { /* wall_ns was read between the two others */
    int64_t before_boot_ns, wall_ns, after_boot_ns;
};

struct wall_steps {
    int64_t log_offset_ns; /* log's clock minus CLOCK_BOOTTIME */
    struct wall_era {      /* between two steps */
        int64_t offset_ns; /* wall clock minus CLOCK_BOOTTIME */
        /* In CLOCK_BOOTTIME: the step before this era came after the first and not after the second. */
        int64_t not_before_ns, begun_ns;
    } eras[WALL_STEPS_KEPT]; /* [number % WALL_STEPS_KEPT] */
    uint32_t era_count;
    int64_t latest_boot_ns; /* of the latest reading */
};

void wall_steps_start(struct wall_steps *steps, struct wall_reading now);
/* Returns by how much the wall clock was set since the last reading, or 0. */
int64_t wall_steps_note(struct wall_steps *steps, struct wall_reading now);
/* The log's time at which the wall clock showed wall_ns: the earliest such time that is not before earliest_ns (log's
 * clock; INT64_MIN: unknown, the latest such time) and not in the future. *is_certain: only one such time exists, or
 * only one at which the wall clock was set correctly. */
int64_t wall_steps_log_ns(const struct wall_steps *steps, int64_t wall_ns, int64_t earliest_ns, bool *is_certain);

#endif
