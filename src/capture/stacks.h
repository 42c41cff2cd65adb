/* SPDX-License-Identifier: Apache-2.0 */
/* CPU call stacks at launches and host waits (enable_stack_trace), with C and Python frames merged. Capture runs on
 * the user's thread and only copies return addresses and positions in Python functions; a stack that the thread
 * already sent is sent as a hash. The collector numbers distinct stacks and has them resolved (stack_speller); a row
 * that uses a stack waits until its text is in the log. */
#ifndef GPUFL_CAPTURE_STACKS_H
#define GPUFL_CAPTURE_STACKS_H

#include "capture/names.h"
#include "capture/thread_log.h"

/* Finds an unwinder and warms it up (the first use may allocate); finds the Python interpreter. */
void stacks_setup(void);
/* Any thread. */
void stacks_capture(uint32_t correlation_id);

struct code_store;
struct stacks; /* opaque; collector's */
/* sources: stores the files that stacks name; may be NULL. */
NODISCARD gpufl_status stacks_make(struct stacks **out, struct names *names, struct code_store *sources);
void stacks_free(struct stacks *stacks);
/* The stack's number; 0 when it could not be kept (counted). */
uint32_t stacks_identify(struct stacks *stacks, const struct stack_event *event);
/* The text's id in function_dict, 0 when it could not be kept (counted); false: not known yet. */
bool stacks_find_text(struct stacks *stacks, uint32_t number, uint32_t *text_id);
/* Writes the texts resolved so far; with is_end waits for all of them. */
void stacks_settle(struct stacks *stacks, bool is_end);
int64_t stacks_cpu_ns(const struct stacks *stacks); /* of the resolving thread */
size_t stacks_bytes(const struct stacks *stacks);

#endif
