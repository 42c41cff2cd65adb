/* SPDX-License-Identifier: Apache-2.0 */
/* Sums per scope path of a session, computed from its columns through store_read, so identical for every engine.
 * Kernels and scopes arrive in different channels in any order, so the sums cannot be updated line by line. One
 * thread. */
#ifndef GPUFL_STORE_SCOPE_SUMS_H
#define GPUFL_STORE_SCOPE_SUMS_H

#include "base/intern.h"
#include "store/store_rollup.h"

struct scope_sums {
    struct store_scope *items; /* owned; by path id */
    size_t count, capacity;
    struct intern paths; /* owns the paths */
};

/* GPUFL_E_LIMIT: more scope entries than fit in memory at once (8 million). */
NODISCARD gpufl_status scope_sums_make(struct store *store, const char *session_id, struct scope_sums *sums,
                                       struct problem *problem);
void scope_sums_free(struct scope_sums *sums);

#endif
