/* SPDX-License-Identifier: Apache-2.0 */
/* Work that must end within a budget of time, although calls in it may hang: the
 * start and the end of a session. It is divided into stages, which run one after
 * the other on a separate thread. A stage whose call hangs is abandoned with its
 * thread (base/watch.h), and the next one goes on with a new thread: a stage must
 * not need what an earlier one only may have done. */
#ifndef GPUFL_BASE_STAGES_H
#define GPUFL_BASE_STAGES_H

#include <stddef.h>
#include <stdint.h>

enum { STAGE_UNLIMITED = 0 };

/* When a stage is given up, in percent of the budget since the first one began. STAGE_UNLIMITED for both: only when one
 * call takes longer than the plan's limit, and never elsewhere. */
struct stage {
    void (*run)(void *user);
    unsigned hung_percent; /* while it is in a watched call: its thread never runs our code again */
    unsigned
        busy_percent; /* while it is elsewhere, waiting for a lock perhaps: it may still go on, beside later stages */
};

enum stage_end {
    STAGE_HUNG, /* in a call */
    STAGE_BUSY,
};

struct stage_plan {
    const struct stage *stages;
    size_t count;
    const char *thread_name; /* at most 15 bytes */
    int64_t call_ns;         /* a call that is younger does not hang */
    /* Called where stages_run was, before the next stage: this one was given up. call: NULL where it is not known. */
    void (*on_failure)(void *user, size_t index, enum stage_end end, const char *call);
};

/* Returns after the last stage, or when the budget is spent. */
void stages_run(const struct stage_plan *plan, void *user, int64_t budget_ns);

/* For waits inside of a stage: until when, at most wait_ns from now, so that the stage is not given up (CLOCK_MONOTONIC).
 * Outside of stages_run all of wait_ns. Any thread. */
int64_t stages_until_ns(int64_t wait_ns);
void stages_after_fork_in_child(void);

#endif
