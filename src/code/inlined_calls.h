/* SPDX-License-Identifier: Apache-2.0 */
/* The inlined calls of linked code, from .debug_info. (NVIDIA's line tables contain them directly.) One owner; read-
 * only once made, then thread-safe. */
#ifndef GPUFL_CODE_INLINED_CALLS_H
#define GPUFL_CODE_INLINED_CALLS_H

#include "code/image.h"

struct line_table;

/* A range of code that was inlined from a call. */
struct inlined_call {
    uint64_t low, high; /* addresses */
    uint64_t reach;     /* the largest high of all entries up to this one */
    uint32_t depth;     /* number of nested calls, including this one */
    uint32_t path;      /* file of the call: id in the line table's paths; 0 unknown */
    uint32_t line;      /* 0 unknown */
};

struct inlined_calls {
    struct inlined_call *calls; /* owned; by low, then depth */
    size_t count, capacity;
};

/* Reads .debug_info if present; if it is damaged or too large, there are no calls. Adds paths to the table. False: no
 * memory. */
bool inlined_calls_read(struct inlined_calls *calls, struct line_table *table);
void inlined_calls_free(struct inlined_calls *calls);
/* Finds the calls around the instruction at that address, innermost first; returns their number, at most max. */
size_t inlined_calls_find(const struct inlined_calls *calls, uint64_t address, const struct inlined_call **found,
                          size_t max);

#endif
