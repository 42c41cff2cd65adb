/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a program that repeats itself: training steps, requests, frames. docs/steps.md states the rules. */
#ifndef GPUFL_ANALYSIS_STEPS_H
#define GPUFL_ANALYSIS_STEPS_H

#include "analysis/session.h"
#include "analysis/statistics.h"

enum step_source {
    STEPS_NONE,
    STEPS_SCOPE, /* entries of one scope on one thread; a number at the end of the name does not count */
    STEPS_PERIOD /* kernels of one stream that repeat in the same order */
};

struct step {
    int64_t begin_ns, end_ns;
    size_t kernels; /* that started in it, on any GPU */
};

struct step_times {
    size_t count;
    int64_t wall_ns; /* from the begin of the first step to the end of the last one */
    int64_t busy_ns; /* of that, added up over all GPUs */
    struct distribution duration;
    int64_t p10_ns;
    double kernels; /* mean */
};

enum step_difference_what { STEP_TIME, STEP_SCOPE, STEP_KIND, STEP_KERNEL, STEP_COPIES, STEP_DIFFERENCE_WHATS };
struct step_difference {
    enum step_difference_what what;
    const char *name;               /* NULL: not recorded */
    uint32_t id;                    /* of the scope's path or the kernel; 0 */
    int64_t slowest_ns, typical_ns; /* in the two steps */
};

struct steps {
    enum step_source source;
    const char *none_because; /* of STEPS_NONE */
    const char *name;         /* of the scope, or of the kernel that begins a period; NULL: not recorded */
    size_t name_size;         /* without the number at the end */
    uint32_t thread_id;       /* of a scope; ID_UNKNOWN */
    size_t period;            /* kernels in a period */
    struct step *items;       /* in order, without overlap */
    size_t count, warmup;     /* warmup: the first ones that are no steady state */
    struct step_times whole, steady;
    size_t slowest, typical;             /* of the steady state: the longest one, and one of median length */
    struct step_difference *differences; /* of the slowest step from the typical one, largest first */
    size_t difference_count;
};

enum { STEPS_MIN = 4, STEPS_MAX = 1000000 };

struct analysis;
gpufl_status steps_make(struct analysis *analysis); /* after time_use */
void steps_free(struct steps *steps);
/* The parts of steps_make. steps_period.c: leaves source at STEPS_NONE if there is no period. */
gpufl_status steps_period_find(struct steps *steps, const struct session_model *model);
gpufl_status steps_compare(struct analysis *analysis); /* steps_compare.c */
/* The first kernel that starts at that time or later. */
size_t kernel_from(const struct session_model *model, int64_t time_ns);

#endif
