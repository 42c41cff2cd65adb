/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/scope_rows.h"

#include "capture/nvtx_handles.h"

#include <math.h>
#include <string.h>

static void write_details(int64_t *row, const struct scope_details *details)
{
    bool is_real = details->payload_type == NVTX_PAYLOAD_DOUBLE || details->payload_type == NVTX_PAYLOAD_FLOAT;
    double none = NAN;
    row[SCOPE_CATEGORY] = details->category;
    row[SCOPE_COLOR] = details->has_color ? details->color : CELL_UNKNOWN;
    row[SCOPE_PAYLOAD_TYPE] = details->payload_type;
    row[SCOPE_PAYLOAD_INT] = details->payload_type && !is_real ? (int64_t)details->payload : CELL_UNKNOWN;
    memcpy(&row[SCOPE_PAYLOAD_REAL], is_real ? (const void *)&details->payload : &none, sizeof none);
}

void scope_row_write(struct recorder *recorder, const struct open_scope *scope, uint32_t thread_id, int64_t time_ns,
                     int event_type)
{
    int64_t *row = recorder_row(recorder, RECORD_SCOPE_EVENT_BATCH, time_ns);
    row[SCOPE_SCOPE_INSTANCE_ID] = (int64_t)scope->id;
    row[SCOPE_NAME_ID] = scope->place.path_id;
    row[SCOPE_EVENT_TYPE] = event_type;
    row[SCOPE_DEPTH] = scope->depth;
    row[SCOPE_REPEAT] = scope->repeat;
    row[SCOPE_WARMUP] = scope->warmup;
    row[SCOPE_ORIGINAL_START_NS] = scope->start_ns;
    row[SCOPE_THREAD_ID] = thread_id;
    row[SCOPE_PARENT_ID] = (int64_t)scope->parent_id;
    row[SCOPE_TAG_ID] = scope->tag_id;
    row[SCOPE_SOURCE] = scope->source;
    write_details(row, &scope->details);
}

void scope_end_row_write(struct recorder *recorder, const struct open_scope *scope, uint32_t thread_id, int64_t time_ns,
                         int event_type)
{
    if (!scope_stack_is_adopted(scope->stack)) {
        scope_row_write(recorder, scope, thread_id, time_ns, event_type);
        return;
    }
    if (scope->adoption == ADOPTION_NONE)
        return;
    int64_t *row = recorder_row(recorder, RECORD_SCOPE_ADOPTION_BATCH, scope->adopted_ns);
    row[SCOPE_ADOPTION_DURATION_NS] = time_ns > scope->adopted_ns ? time_ns - scope->adopted_ns : 0;
    row[SCOPE_ADOPTION_THREAD_ID] = thread_id;
    row[SCOPE_ADOPTION_SCOPE_ID] = (int64_t)scope->id;
    row[SCOPE_ADOPTION_ADOPTION_ORIGIN] = scope->adoption;
}
