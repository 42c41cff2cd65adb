/* SPDX-License-Identifier: Apache-2.0 */
/* The state of each part of an engine above Trace: requested, waiting for a context, running, or refused and why.
 * Any thread. */
#ifndef GPUFL_CAPTURE_DEEP_GRANTS_H
#define GPUFL_CAPTURE_DEEP_GRANTS_H

#include "base/status.h"

#include <pthread.h>
#include <stdatomic.h>

/* the first three decide the engine */
enum deep_part {
    DEEP_PC_SAMPLING,
    DEEP_SASS_METRICS,
    DEEP_RANGE_COUNTERS,
    DEEP_PM_SAMPLING,
    DEEP_CODE,
    DEEP_PART_COUNT
};
enum deep_state {
    DEEP_NOT_REQUESTED,
    DEEP_WAITING, /* for the program's first context */
    DEEP_RUNNING,
    DEEP_REFUSED
};
struct deep_grant {
    enum deep_state state;
    gpufl_status status; /* of a refusal, with its problem */
    struct problem problem;
};

struct deep_grants {
    pthread_mutex_t mutex;
    struct deep_grant grants[DEEP_PART_COUNT];
    _Atomic bool has_news;
};

void deep_grants_init(struct deep_grants *grants);
void deep_grants_destroy(struct deep_grants *grants);
void deep_grants_request(struct deep_grants *grants, enum deep_part part);
/* Records the result for one context or device. The first refusal is kept, but one success is enough to count as
 * running. */
void deep_grants_answer(struct deep_grants *grants, enum deep_part part, gpufl_status status,
                        const struct problem *problem);
/* Marks a running part that produced no data as refused. */
void deep_grants_revoke(struct deep_grants *grants, enum deep_part part, gpufl_status status,
                        const struct problem *problem);
/* At the end of a program that used the GPU: refuses the parts that still wait. */
void deep_grants_close(struct deep_grants *grants);
void deep_grants_get(struct deep_grants *grants, enum deep_part part, struct deep_grant *grant);
bool deep_grants_is_refused(struct deep_grants *grants, enum deep_part part);
bool deep_grants_take_news(struct deep_grants *grants); /* true once after every change */
/* The engine that the grants amount to when `wanted` was requested. why (NULL: not asked for): set if that is a lower
 * one. */
gpufl_engine deep_grants_engine(struct deep_grants *grants, gpufl_engine wanted, struct problem *why);

#endif
