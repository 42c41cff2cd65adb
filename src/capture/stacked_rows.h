/* SPDX-License-Identifier: Apache-2.0 */
/* Rows whose call has a stack. What a row refers to stands before it in the log,
 * so a row waits here until its stack is spelled out; in number the waiting ones
 * are bounded, in time they are not. Collector thread only. */
#ifndef GPUFL_CAPTURE_STACKED_ROWS_H
#define GPUFL_CAPTURE_STACKED_ROWS_H

#include "capture/stacks.h"
#include "capture/work_rows.h"

struct stacked_rows; /* opaque */

/* Both are borrowed. */
NODISCARD gpufl_status stacked_rows_make(struct stacked_rows **out, struct recorder *recorder, struct stacks *stacks);
void stacked_rows_free(struct stacked_rows *rows);
/* Writes the row, or keeps a copy of both until its stack is known; call->stack_id is the stack's number. */
void stacked_rows_add(struct stacked_rows *rows, const struct work *work, const struct call *call);
/* Writes those whose stacks are known by now. */
void stacked_rows_settle(struct stacked_rows *rows);
size_t stacked_rows_bytes(const struct stacked_rows *rows);

#endif
