/* SPDX-License-Identifier: Apache-2.0 */
/* Visits a function from its first to its last instruction, with the samples and counters of each, and samples after
 * the last one. Borrows everything; one thread per lookup. */
#ifndef GPUFL_ANALYSIS_CODE_WALK_H
#define GPUFL_ANALYSIS_CODE_WALK_H

#include "analysis/hot_code.h"

struct code_step {
    uint64_t pc;
    const struct code_place *place; /* NULL: no samples or counters here */
    const struct code_text *text;   /* line and file may come from the samples */
    bool is_beyond;                 /* after the known end of the function */
};
typedef void (*code_step_fn)(void *user, const struct code_step *step);

/* lookup: of the same model, not necessarily code's own. GPUFL_E_NO_MEMORY or GPUFL_OK. */
NODISCARD gpufl_status code_walk(struct code_lookup *lookup, const struct hot_code *code, uint32_t function,
                                 code_step_fn on_step, void *user);

#endif
