/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves the addresses of stacks to text on a separate thread: finding a function's name takes milliseconds in a
 * library as large as PyTorch's, and the collector, which drains the threads' rings, must not wait for it. Stacks
 * come back in submission order. The collector is the only caller. */
#ifndef GPUFL_CAPTURE_STACK_SPELLER_H
#define GPUFL_CAPTURE_STACK_SPELLER_H

#include "base/bytes.h"
#include "base/status.h"

struct stack_spelling { /* one stack; its current holder frees it */
    struct stack_spelling *next;
    struct bytes text;    /* outermost first, joined by | */
    uint32_t nameless;    /* Python functions that did not fit in their table */
    uint32_t frame_count; /* at most STACK_FRAMES_MAX */
    uint64_t frames[];    /* as in struct stack_event */
};

struct stack_speller; /* opaque */
struct code_store;

/* sources: receives each file that a frame names, once, before its stack is returned; may be NULL. */
NODISCARD gpufl_status stack_speller_make(struct stack_speller **out, struct code_store *sources);
/* Waits for the stack that is being resolved; drops the others. */
void stack_speller_free(struct stack_speller *speller);

struct stack_spelling *stack_spelling_make(const uint64_t *frames, uint32_t frame_count); /* NULL: no memory */
void stack_spelling_free(struct stack_spelling *spelling);
/* Takes ownership. */
void stack_speller_give(struct stack_speller *speller, struct stack_spelling *spelling);
/* The next resolved stack, to be freed by the caller; NULL: none yet, or with is_waiting none left at all. */
struct stack_spelling *stack_speller_take(struct stack_speller *speller, bool is_waiting);

int64_t stack_speller_cpu_ns(const struct stack_speller *speller);
/* As of the last resolved stack. */
size_t stack_speller_bytes(const struct stack_speller *speller);

#endif
