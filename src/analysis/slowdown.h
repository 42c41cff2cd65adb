/* SPDX-License-Identifier: Apache-2.0 */
/* How much longer the program took because it was recorded: an estimate with its parts. What our callbacks, stack
 * walks, gates and replays took on the program's threads is measured; what CUPTI's records cost is calibrated
 * (capture/cupti_cost.h). A launch counts with its host cost where the GPU waited for it, the larger the colder the
 * caches were (launch_heat.h), else with what its record costs a busy GPU. What PC sampling and counting add is the time
 * in CUDA calls per launch while they are on, less the time while they are off. A replayed launch counts from entry to
 * exit, less one run of its kernel. */
#ifndef GPUFL_ANALYSIS_SLOWDOWN_H
#define GPUFL_ANALYSIS_SLOWDOWN_H

#include "analysis/session.h"

enum slowdown_part {
    SLOWDOWN_CUPTI,     /* its kernel records */
    SLOWDOWN_CALLBACKS, /* ours, on the program's threads; then as base/user_time.h */
    SLOWDOWN_STACKS,
    SLOWDOWN_GATE,
    SLOWDOWN_REPLAY,
    SLOWDOWN_SWITCHES,
    SLOWDOWN_START,
    SLOWDOWN_COUNTING, /* calls that took longer while instructions were counted */
    SLOWDOWN_SAMPLING, /* and while PC samples were taken */
    SLOWDOWN_PART_COUNT
};

#define SLOWDOWN_SHOWN 0.001 /* smaller fractions are "less than 0.1 %" */

struct slowdown {
    bool is_known;
    bool is_least;                         /* a part is not known, and the whole at least this */
    bool is_default;                       /* CUPTI's cost is the shipped one, not this host's */
    double fraction;                       /* of the time that the program would have taken: 0.16 = 16 % longer */
    int64_t parts_ns[SLOWDOWN_PART_COUNT]; /* of the wall time */
};

const char *slowdown_part_name(enum slowdown_part part);  /* for JSON */
const char *slowdown_part_words(enum slowdown_part part); /* for people */

int64_t slowdown_ns(const struct slowdown *slowdown); /* all parts */

struct analysis;
/* Needs time_use_make and deep_use_make before. */
NODISCARD gpufl_status slowdown_make(struct analysis *analysis);

#endif
