/* SPDX-License-Identifier: Apache-2.0 */
#include "format/batch.h"
#include "format/batch_cell.h"
#include "format/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

gpufl_status batch_init(struct batch *batch, enum record_type type, uint32_t row_capacity)
{
    const struct record_info *info = (unsigned)type < RECORD_TYPE_COUNT ? &record_catalogue[type] : NULL;
    if (!info || !info->is_batch || row_capacity == 0)
        return GPUFL_E_INVALID;
    int64_t *cells = calloc((size_t)row_capacity * info->column_count, sizeof *cells);
    if (!cells)
        return GPUFL_E_NO_MEMORY;
    *batch = (struct batch){.info = info, .cells = cells, .row_capacity = row_capacity};
    return GPUFL_OK;
}

void batch_free(struct batch *batch)
{
    free(batch->cells);
    *batch = (struct batch){0};
}

int64_t *batch_row(struct batch *batch)
{
    if (batch_is_full(batch))
        return NULL;
    int64_t *row = batch->cells + (size_t)batch->row_count++ * batch->info->column_count;
    memset(row, 0, batch->info->column_count * sizeof *row);
    return row;
}

static bool column_is_needed(const struct batch *batch, unsigned column)
{
    const struct column_info *info = &batch->info->columns[column];
    if (!info->is_optional)
        return true;
    double no_number = NAN; /* null of an f64 */
    int64_t idle = info->is_nullable ? CELL_UNKNOWN : 0;
    if (info->is_nullable && info->type == CELL_F64)
        memcpy(&idle, &no_number, sizeof idle);
    const int64_t *cell = batch->cells + column;
    for (uint32_t row = 0; row < batch->row_count; row++, cell += batch->info->column_count)
        if (*cell != idle)
            return true;
    return false;
}

struct cell_plan {
    unsigned column;
    const struct column_info *info;
};

static void rows_encode(const struct batch *batch, const struct cell_plan *plan, unsigned plan_size, struct bytes *out)
{
    const size_t row_size_max = plan_size * (CELL_SIZE_MAX + 1) + 3;
    const int64_t *row = batch->cells;
    for (uint32_t i = 0; i < batch->row_count; i++, row += batch->info->column_count) {
        if (!bytes_reserve(out, row_size_max))
            return;
        char *at = out->data + out->size;
        if (i)
            *at++ = ',';
        *at++ = '[';
        for (unsigned c = 0; c < plan_size; c++) {
            at = cell_put(at, row[plan[c].column], plan[c].info);
            *at++ = ',';
        }
        at[-1] = ']'; /* replaces the last comma; every batch type has columns that are never omitted */
        out->size = (size_t)(at - out->data);
    }
}

void batch_encode(struct batch *batch, const char *session_id, const char *extra, struct bytes *out)
{
    struct cell_plan plan[BATCH_COLUMNS_MAX];
    unsigned plan_size = 0;
    for (unsigned column = 0; column < batch->info->column_count; column++)
        if (column_is_needed(batch, column))
            plan[plan_size++] = (struct cell_plan){column, &batch->info->columns[column]};

    batch->batch_id++;
    bytes_append_text(out, "{\"version\":");
    json_int(out, batch->info->version);
    bytes_append_text(out, ",\"type\":");
    json_text(out, batch->info->name);
    bytes_append_text(out, ",\"session_id\":");
    json_text(out, session_id);
    bytes_append_text(out, ",\"batch_id\":");
    json_uint(out, batch->batch_id);
    bytes_append_text(out, ",\"base_time_ns\":");
    json_int(out, batch->base_time_ns);
    bytes_append_char(out, ',');
    bytes_append_text(out, extra);
    bytes_append_text(out, "\"columns\":[");
    for (unsigned c = 0; c < plan_size; c++) {
        if (c)
            bytes_append_char(out, ',');
        json_text(out, plan[c].info->name);
    }
    bytes_append_text(out, "],\"rows\":[");
    rows_encode(batch, plan, plan_size, out);
    bytes_append_char(out, ']');
    batch->row_count = 0;
}
