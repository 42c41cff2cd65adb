/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates how much longer the program took because it was recorded, with the parts of the estimate. The time of our
 * callbacks, stack walks, gates and replays on the program's threads is measured; the cost of CUPTI's records is
 * calibrated (capture/cupti_cost.h). If the GPU waited for a launch, the launch counts with its host cost, which is
 * larger the colder the caches were (launch_heat.h); otherwise with the cost of its record on a busy GPU. The cost of
 * PC sampling and counting is the time in CUDA calls per launch while they are on, minus that while they are off. A
 * replayed launch counts from entry to exit, minus one run of its kernel. */
#ifndef GPUFL_ANALYSIS_SLOWDOWN_H
#define GPUFL_ANALYSIS_SLOWDOWN_H

#include "analysis/session.h"

enum slowdown_part {
    SLOWDOWN_CUPTI,     /* its kernel records */
    SLOWDOWN_CALLBACKS, /* gpufl's, on the program's threads; the next ones as in base/user_time.h */
    SLOWDOWN_STACKS,
    SLOWDOWN_GATE,
    SLOWDOWN_REPLAY,
    SLOWDOWN_SWITCHES,
    SLOWDOWN_START,
    SLOWDOWN_COUNTING, /* calls that took longer while instructions were counted */
    SLOWDOWN_SAMPLING, /* and while PC samples were taken */
    SLOWDOWN_PART_COUNT
};

#define SLOWDOWN_SHOWN 0.001 /* smaller fractions are shown as "less than 0.1 %" */

struct slowdown {
    bool is_known;
    bool is_least;                         /* a part is unknown, so the total is a lower bound */
    bool is_default;                       /* CUPTI's cost is the built-in default, not measured on this host */
    double fraction;                       /* of the time that the program would have taken: 0.16 = 16 % longer */
    int64_t parts_ns[SLOWDOWN_PART_COUNT]; /* of the wall time */
};

const char *slowdown_part_name(enum slowdown_part part);  /* for JSON */
const char *slowdown_part_words(enum slowdown_part part); /* for people */

int64_t slowdown_ns(const struct slowdown *slowdown); /* all parts */

struct analysis;
/* Requires time_use_make and deep_use_make first. */
NODISCARD gpufl_status slowdown_make(struct analysis *analysis);

#endif
