/* SPDX-License-Identifier: Apache-2.0 */
/* Which calls were inlined where, from the .debug_info of linked code. (NVIDIA's line tables say it themselves.) One
 * owner; read only once made: any thread. */
#ifndef GPUFL_CODE_INLINED_CALLS_H
#define GPUFL_CODE_INLINED_CALLS_H

#include "code/image.h"

struct line_table;

/* A stretch of code that came from a call. */
struct inlined_call {
    uint64_t low, high; /* addresses */
    uint64_t reach;     /* the largest high of all up to this one */
    uint32_t depth;     /* calls around it, itself included */
    uint32_t path;      /* where the call stands: id in the line table's paths; 0 unknown */
    uint32_t line;      /* 0 unknown */
};

struct inlined_calls {
    struct inlined_call *calls; /* owned; by low, then depth */
    size_t count, capacity;
};

/* Reads what there is; damaged or too large a .debug_info leaves the calls empty. Paths go to the table. False: no
 * memory. */
bool inlined_calls_read(struct inlined_calls *calls, struct line_table *table);
void inlined_calls_free(struct inlined_calls *calls);
/* Those around the instruction at that address, innermost first; how many, at most max. */
size_t inlined_calls_find(const struct inlined_calls *calls, uint64_t address, const struct inlined_call **found,
                          size_t max);

#endif
