/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel executions of the last seconds, by function: what samples without
 * a launch of their own are joined with. Bounded: the oldest are forgotten, and
 * a look-up that would have needed them says so. Collector thread only. */
#ifndef GPUFL_CAPTURE_KERNEL_HISTORY_H
#define GPUFL_CAPTURE_KERNEL_HISTORY_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct kernel_history; /* opaque */

#define KERNEL_SCOPE_UNKNOWN UINT64_MAX /* its time is of no scope, not even of none */

struct kernel_execution {
    int64_t start_ns, end_ns;
    uint64_t scope_id;  /* 0 none, or KERNEL_SCOPE_UNKNOWN */
    uint32_t symbol_id; /* of kernel_history_symbol */
    uint32_t context_id, correlation_id;
};

/* Executions to remember, a power of two; 0: 256 Ki (14 MiB, touched only as they come). */
NODISCARD gpufl_status kernel_history_make(struct kernel_history **out, uint32_t capacity);
void kernel_history_free(struct kernel_history *history);
/* An id for the mangled name, 0 when there is no memory for it. */
uint32_t kernel_history_symbol(struct kernel_history *history, const char *symbol);
void kernel_history_add(struct kernel_history *history, const struct kernel_execution *execution);

struct kernel_overlap {
    uint32_t instances;      /* executions that overlap the interval */
    uint32_t later;          /* those of them that began at or after later_ns */
    uint32_t correlation_id; /* of the only one; 0: several or none */
    uint64_t scope_id;       /* that most of their time inside the interval belongs to, as far as it is known */
    int64_t scope_ns, total_ns;
    bool is_complete; /* false: some that may have overlapped are forgotten */
};
void kernel_history_overlap(const struct kernel_history *history, uint32_t symbol_id, uint32_t context_id,
                            int64_t from_ns, int64_t to_ns, int64_t later_ns, struct kernel_overlap *overlap);
/* The execution that a launch caused; false when it, or its scope, is not (or no longer) known. */
bool kernel_history_find(const struct kernel_history *history, uint32_t correlation_id, uint32_t symbol_id,
                         struct kernel_execution *execution);
size_t kernel_history_bytes(const struct kernel_history *history);

#endif
