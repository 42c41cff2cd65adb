/* SPDX-License-Identifier: Apache-2.0 */
/* Runs work that must end within a time budget although its calls may hang: the start and the end of a session. The
 * work is divided into stages, which run one after the other on a separate thread. A stage whose call hangs is
 * abandoned together with its thread (base/watch.h), and the next stage runs on a new thread, so a stage must not
 * depend on the completion of an earlier one. */
#ifndef GPUFL_BASE_STAGES_H
#define GPUFL_BASE_STAGES_H

#include <stddef.h>
#include <stdint.h>

enum { STAGE_UNLIMITED = 0 };

/* When a stage is abandoned, in percent of the budget since the start of the first stage. STAGE_UNLIMITED for both:
 * only when one call exceeds the plan's limit. */
struct stage {
    void (*run)(void *user);
    unsigned hung_percent; /* limit while it is in a watched call: its thread then never runs our code again */
    unsigned
        /* limit while it is elsewhere, for example waiting for a lock: its thread may continue in parallel with later
         * stages */
        busy_percent;
};

enum stage_end {
    STAGE_HUNG, /* in a call */
    STAGE_BUSY,
};

struct stage_plan {
    const struct stage *stages;
    size_t count;
    const char *thread_name; /* at most 15 bytes */
    int64_t call_ns;         /* minimum duration of a call that counts as hung */
    /* Called on the thread of stages_run before the next stage: this stage was abandoned. call: NULL if unknown. */
    void (*on_failure)(void *user, size_t index, enum stage_end end, const char *call);
};

/* Returns after the last stage, or when the budget is used up. */
void stages_run(const struct stage_plan *plan, void *user, int64_t budget_ns);

/* For waits inside a stage: the latest time, at most wait_ns from now, before the stage would be abandoned
 * (CLOCK_MONOTONIC). Outside stages_run: now + wait_ns. Any thread. */
int64_t stages_until_ns(int64_t wait_ns);
void stages_after_fork_in_child(void);

#endif
