/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the threads' scopes and of their work for scopes of other threads. Collector thread only. */
#ifndef GPUFL_CAPTURE_SCOPE_ROWS_H
#define GPUFL_CAPTURE_SCOPE_ROWS_H

#include "capture/open_ranges.h"
#include "capture/recorder.h"

/* event_type: schema enum scope_event. */
void scope_row_write(struct recorder *recorder, const struct open_scope *scope, uint32_t thread_id, int64_t time_ns,
                     int event_type);
/* Of the scope's end, or of the end of this thread's work for another thread's scope. */
void scope_end_row_write(struct recorder *recorder, const struct open_scope *scope, uint32_t thread_id, int64_t time_ns,
                         int event_type);

#endif
