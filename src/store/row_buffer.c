/* SPDX-License-Identifier: Apache-2.0 */
#include "store/row_buffer.h"

#include <stdlib.h>

enum { GROWTH_MIN = 16 };
_Static_assert((int)DEVICE_METRIC_COLUMN_COUNT <= (int)ROW_COLUMNS_MAX, "the widest batch must fit");

int record_column_find(const struct record_info *info, const char *name, size_t size)
{
    for (unsigned i = 0; i < info->column_count && i < ROW_COLUMNS_MAX; i++)
        if (strlen(info->columns[i].name) == size && !memcmp(info->columns[i].name, name, size))
            return (int)i;
    return -1;
}

int64_t cell_unknown(const struct column_info *column)
{
    if (column->type != CELL_F64)
        return CELL_UNKNOWN;
    const double nan = __builtin_nan("");
    int64_t bits;
    memcpy(&bits, &nan, sizeof bits);
    return bits;
}

void row_buffer_start(struct row_buffer *buffer, const struct record_info *info)
{
    if (buffer->info != info) {
        row_buffer_free(buffer);
        buffer->info = info;
        buffer->time_column = record_column_find(info, "dt_ns", 5);
        buffer->duration_column = record_column_find(info, "duration_ns", 11);
    }
    row_buffer_clear(buffer);
}

void row_buffer_free(struct row_buffer *buffer)
{
    if (!buffer->info)
        return; /* never started */
    for (unsigned i = 0; i < ROW_COLUMNS_MAX; i++)
        free(buffer->columns[i]);
    *buffer = (struct row_buffer){0};
}

void row_buffer_clear(struct row_buffer *buffer)
{
    buffer->row_count = 0;
    buffer->present = 0;
}

size_t row_buffer_bytes(const struct row_buffer *buffer)
{
    size_t columns = 0;
    for (unsigned i = 0; buffer->info && i < buffer->info->column_count && i < ROW_COLUMNS_MAX; i++)
        columns += buffer->columns[i] != NULL;
    return columns * buffer->row_capacity * sizeof(int64_t);
}

/* Reserves room for count more rows in every present column and in those of `extra`. */
bool row_buffer_reserve(struct row_buffer *buffer, uint32_t count, uint64_t extra)
{
    uint64_t wanted = (uint64_t)buffer->row_count + count;
    if (wanted > COLUMN_ROWS_MAX)
        return false;
    uint32_t capacity = buffer->row_capacity;
    if (wanted > capacity) {
        capacity = capacity > GROWTH_MIN ? capacity : GROWTH_MIN;
        while (capacity < wanted)
            capacity *= 2;
    }
    for (unsigned i = 0; i < buffer->info->column_count && i < ROW_COLUMNS_MAX; i++) {
        bool is_new = !buffer->columns[i];
        if (is_new ? !(extra >> i & 1) : capacity == buffer->row_capacity)
            continue;
        int64_t *grown = realloc(buffer->columns[i], capacity * sizeof *grown);
        if (!grown)
            return false; /* capacities now differ; row_capacity still holds for all columns */
        buffer->columns[i] = grown;
    }
    buffer->row_capacity = capacity;
    return true;
}

/* In columns that are added, earlier rows are unknown. */
static void columns_add(struct row_buffer *buffer, uint64_t present)
{
    for (unsigned i = 0; i < buffer->info->column_count && i < ROW_COLUMNS_MAX; i++) {
        if (!(present >> i & 1) || (buffer->present >> i & 1))
            continue;
        int64_t unknown = cell_unknown(&buffer->info->columns[i]);
        for (uint32_t row = 0; row < buffer->row_count; row++)
            buffer->columns[i][row] = unknown;
    }
    buffer->present |= present;
}

static void column_put(struct row_buffer *buffer, unsigned column, const int64_t *cells, uint32_t count)
{
    int64_t *out = buffer->columns[column] + buffer->row_count;
    int64_t unknown = cell_unknown(&buffer->info->columns[column]);
    if (cells)
        memcpy(out, cells, count * sizeof *out);
    else
        for (uint32_t row = 0; row < count; row++)
            out[row] = unknown;
}

bool row_buffer_append(struct row_buffer *buffer, const struct batch_view *view, uint32_t from, uint32_t count)
{
    uint64_t present = 0;
    for (unsigned i = 0; i < buffer->info->column_count && i < ROW_COLUMNS_MAX; i++)
        present |= (uint64_t)view->columns[i].present << i;
    if (!row_buffer_reserve(buffer, count, present))
        return false;
    columns_add(buffer, present);
    for (unsigned i = 0; i < buffer->info->column_count && i < ROW_COLUMNS_MAX; i++)
        if (buffer->present >> i & 1)
            column_put(buffer, i, present >> i & 1 ? view->columns[i].cells + from : NULL, count);
    int64_t *times = buffer->time_column >= 0 ? buffer->columns[buffer->time_column] : NULL;
    if (times && (present >> buffer->time_column & 1)) {
        for (uint32_t row = buffer->row_count; row < buffer->row_count + count; row++)
            if (times[row] != CELL_UNKNOWN && __builtin_add_overflow(times[row], view->base_time_ns, &times[row]))
                times[row] = INT64_MAX; /* still an impossible time */
    }
    buffer->row_count += count;
    return true;
}

bool row_buffer_join(struct row_buffer *buffer, const struct row_buffer *other, uint32_t from, uint32_t count)
{
    if (!row_buffer_reserve(buffer, count, other->present))
        return false;
    columns_add(buffer, other->present);
    for (unsigned i = 0; i < buffer->info->column_count && i < ROW_COLUMNS_MAX; i++)
        if (buffer->present >> i & 1)
            column_put(buffer, i, other->present >> i & 1 ? other->columns[i] + from : NULL, count);
    buffer->row_count += count;
    return true;
}

bool row_buffer_span(const struct row_buffer *buffer, int64_t *min_ns, int64_t *max_ns)
{
    bool is_known = false;
    for (uint32_t row = 0; row < buffer->row_count; row++) {
        int64_t start_ns, end_ns;
        if (!row_times(buffer, row, &start_ns, &end_ns))
            continue;
        *min_ns = is_known && *min_ns < start_ns ? *min_ns : start_ns;
        *max_ns = is_known && *max_ns > end_ns ? *max_ns : end_ns;
        is_known = true;
    }
    return is_known;
}

void row_buffer_cut(struct row_buffer *buffer, int64_t from_ns, int64_t to_ns)
{
    uint32_t kept = 0;
    for (uint32_t row = 0; row < buffer->row_count; row++) {
        int64_t start_ns, end_ns;
        bool meets =
            row_times(buffer, row, &start_ns, &end_ns) && start_ns < to_ns && (end_ns > from_ns || start_ns >= from_ns);
        if (!meets)
            continue;
        for (unsigned i = 0; kept != row && i < buffer->info->column_count; i++)
            if (buffer->present >> i & 1)
                buffer->columns[i][kept] = buffer->columns[i][row];
        kept++;
    }
    buffer->row_count = kept;
}

void row_buffer_view(struct row_buffer *buffer, struct batch_view *view, struct batch_column *columns)
{
    *view = (struct batch_view){.info = buffer->info,
                                .version = buffer->info->version,
                                .seq = -1,
                                .row_count = buffer->row_count,
                                .columns = columns,
                                .row_capacity = buffer->row_capacity};
    for (unsigned i = 0; i < buffer->info->column_count; i++) {
        bool is_present = i < ROW_COLUMNS_MAX && (buffer->present >> i & 1);
        columns[i] = (struct batch_column){.cells = is_present ? buffer->columns[i] : NULL, .present = is_present};
    }
    int64_t min_ns, max_ns;
    if (!row_buffer_span(buffer, &min_ns, &max_ns))
        return;
    view->base_time_ns = min_ns;
    int64_t *times = buffer->columns[buffer->time_column];
    for (uint32_t row = 0; row < buffer->row_count; row++)
        if (times[row] != CELL_UNKNOWN && __builtin_sub_overflow(times[row], min_ns, &times[row]))
            times[row] = INT64_MAX;
}
