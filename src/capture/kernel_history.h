/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel executions of the last seconds, by function, with which samples are joined that do not name a launch.
 * Bounded: the oldest executions are forgotten, and a query that may have needed them says so. Collector thread
 * only. */
#ifndef GPUFL_CAPTURE_KERNEL_HISTORY_H
#define GPUFL_CAPTURE_KERNEL_HISTORY_H

#include "base/status.h"
#include "capture/scope_history.h"

#include <stddef.h>
#include <stdint.h>

struct kernel_history; /* opaque */

struct kernel_execution {
    int64_t start_ns, end_ns;
    uint64_t scope_id;  /* 0 none, or SCOPE_UNKNOWN */
    uint32_t symbol_id; /* of kernel_history_symbol */
    uint32_t context_id, correlation_id;
    uint32_t path_id; /* scope_name_dict: of the scope; 0 none, or not known */
};

/* Executions to remember, a power of two; 0: 256 Ki (14 MiB, touched only as they come). */
NODISCARD gpufl_status kernel_history_make(struct kernel_history **out, uint32_t capacity);
void kernel_history_free(struct kernel_history *history);
/* An id for the mangled name, 0 when there is no memory for it. */
uint32_t kernel_history_symbol(struct kernel_history *history, const char *symbol);
void kernel_history_add(struct kernel_history *history, const struct kernel_execution *execution);

/* Time within an interval during which executions of one scope path ran, or executions outside of scopes. A scope
 * whose path is not known has its own share. */
struct kernel_share {
    int64_t ns;
    uint64_t scope_id; /* the only instance of the path; 0: several, or none */
    uint32_t path_id;  /* 0 none, or not known */
};
enum { KERNEL_SHARES_MAX = 128 };

struct kernel_overlap {
    uint32_t instances;      /* executions that overlap the interval */
    uint32_t began;          /* those of them that began in it */
    uint32_t correlation_id; /* of the only one; 0: several or none */
    uint32_t share_count;
    int64_t total_ns;   /* of all of them */
    int64_t unknown_ns; /* of executions whose scope is not known, or that found no free share */
    bool is_complete;   /* false: executions that may have overlapped were forgotten */
    struct kernel_share shares[KERNEL_SHARES_MAX];
};
void kernel_history_overlap(const struct kernel_history *history, uint32_t symbol_id, uint32_t context_id,
                            int64_t from_ns, int64_t to_ns, struct kernel_overlap *overlap);
/* The execution caused by a launch; false when the execution or its scope is not known (any more). */
bool kernel_history_find(const struct kernel_history *history, uint32_t correlation_id, uint32_t symbol_id,
                         struct kernel_execution *execution);
size_t kernel_history_bytes(const struct kernel_history *history);

#endif
