/* SPDX-License-Identifier: Apache-2.0 */
/* CPU call stacks at launches and host waits (enable_stack_trace), C and Python
 * in one. Capture runs on the user's thread and only copies return addresses
 * and places in Python functions; interning and symbolization run on the
 * collector thread, once per distinct stack. */
#ifndef GPUFL_CAPTURE_STACKS_H
#define GPUFL_CAPTURE_STACKS_H

#include "capture/names.h"
#include "capture/thread_log.h"

/* Finds an unwinder and warms it up (the first use may allocate); finds the Python interpreter. */
void stacks_setup(void);
/* For cupti_trace_options.on_call: any thread. */
void stacks_capture(uint32_t correlation_id);

struct stacks; /* opaque; collector's */
NODISCARD gpufl_status stacks_make(struct stacks **out, struct names *names);
void stacks_free(struct stacks *stacks);
/* The stack's id in function_dict; 0 when it could not be kept (counted). */
uint32_t stacks_identify(struct stacks *stacks, const struct stack_event *event);

#endif
