/* SPDX-License-Identifier: Apache-2.0 */
/* Rows whose call has a stack. A row must follow everything it refers to in the log, so it waits here until its
 * stack is resolved. The number of waiting rows is bounded, their waiting time is not. Collector thread only. */
#ifndef GPUFL_CAPTURE_STACKED_ROWS_H
#define GPUFL_CAPTURE_STACKED_ROWS_H

#include "capture/stacks.h"
#include "capture/work_rows.h"

struct stacked_rows; /* opaque */

/* Both are borrowed. */
NODISCARD gpufl_status stacked_rows_make(struct stacked_rows **out, struct recorder *recorder, struct stacks *stacks);
void stacked_rows_free(struct stacked_rows *rows);
/* Writes the row, or keeps a copy of work and call until its stack is known; call->stack_id is the stack's number. */
void stacked_rows_add(struct stacked_rows *rows, const struct work *work, const struct call *call);
/* Writes the rows whose stacks are known by now. */
void stacked_rows_settle(struct stacked_rows *rows);
size_t stacked_rows_bytes(const struct stacked_rows *rows);

#endif
