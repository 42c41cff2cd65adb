/* SPDX-License-Identifier: Apache-2.0 */
#include "format/batch_scan.h"

#include <stdlib.h>

/* The number of characters of a number, plus or minus one: enough to compare two forms of a column. */
static unsigned cell_width(int64_t cell)
{
    uint64_t magnitude = cell < 0 ? 0 - (uint64_t)cell : (uint64_t)cell;
    unsigned bits = 64 - (unsigned)__builtin_clzll(magnitude | 1);
    return (bits * 77 >> 8) + 1 + (cell < 0);
}

static int64_t cell_difference(int64_t cell, int64_t before)
{
    return (int64_t)((uint64_t)cell - (uint64_t)before);
}

/* Differences are used where they are clearly shorter: increasing clocks, counters and ids, and long repeated ids.
 * Elsewhere they hide repetition from the compressor (durations as differences: sealed files 2 % larger), hence the
 * margin. */
static bool column_wants_delta(const struct scan_column *column, uint32_t row_count)
{
    if (column->info->type == CELL_F64)
        return false;
    uint64_t plain_width = 0, delta_width = 0;
    int64_t before = 0;
    for (uint32_t row = 0; row < row_count; row++) {
        int64_t cell = column->cells[row];
        if (column->info->is_nullable && cell == CELL_UNKNOWN)
            continue;
        int64_t difference = cell_difference(cell, before);
        if (column->info->is_nullable && difference == CELL_UNKNOWN)
            return false; /* would be read as null */
        plain_width += cell_width(cell);
        delta_width += cell_width(difference);
        before = cell;
    }
    return delta_width * 4 < plain_width * 3;
}

static void column_write(const struct scan_column *column, uint32_t row_count, struct bytes *out)
{
    /* A difference is signed, whatever the column's type. */
    struct column_info info = *column->info;
    if (column->is_delta && info.type == CELL_U64)
        info.type = CELL_I64;
    int64_t before = 0;
    bytes_append_char(out, '[');
    for (uint32_t row = 0; row < row_count; row++) {
        if (!bytes_reserve(out, CELL_SIZE_MAX + 1))
            return;
        int64_t cell = column->cells[row];
        if (column->is_delta && !(info.is_nullable && cell == CELL_UNKNOWN)) {
            int64_t value = cell;
            cell = cell_difference(value, before);
            before = value;
        }
        char *at = out->data + out->size;
        if (row)
            *at++ = ',';
        out->size = (size_t)(cell_put(at, cell, &info) - out->data);
    }
    bytes_append_char(out, ']');
}

static void member_copy(const struct batch_scan *scan, enum batch_member member, struct bytes *out)
{
    if (scan->members[member].size == 0)
        return;
    json_key(out, batch_member_names[member]);
    bytes_append(out, scan->members[member].text, scan->members[member].size);
}

static void names_write(const struct batch_scan *scan, enum batch_member member, struct bytes *out)
{
    json_key(out, batch_member_names[member]);
    bytes_append_char(out, '[');
    bool is_first = true;
    for (unsigned c = 0; c < scan->column_count; c++) {
        if (member == MEMBER_DELTA && !scan->columns[c].is_delta)
            continue;
        if (!is_first)
            bytes_append_char(out, ',');
        is_first = false;
        json_text(out, scan->columns[c].info->name);
    }
    bytes_append_char(out, ']');
}

/* The members before the columns, unchanged. */
static void head_write(const struct batch_scan *scan, struct bytes *out)
{
    bytes_append_char(out, '{');
    for (enum batch_member member = MEMBER_VERSION; member <= MEMBER_BASE_TIME_NS; member++)
        member_copy(scan, member, out);
    for (unsigned i = 0; i < scan->extra_count; i++) {
        bytes_append_char(out, ',');
        bytes_append(out, scan->extras[i].text, scan->extras[i].size);
    }
}

static void cols_write(struct batch_scan *scan, struct bytes *out)
{
    const uint32_t row_count = scan->view->row_count;
    for (unsigned c = 0; c < scan->column_count; c++)
        scan->columns[c].is_delta = column_wants_delta(&scan->columns[c], row_count);
    names_write(scan, MEMBER_COLUMNS, out);
    names_write(scan, MEMBER_DELTA, out);
    json_key(out, batch_member_names[MEMBER_COLS]);
    bytes_append_char(out, '[');
    for (unsigned c = 0; c < scan->column_count; c++) {
        if (c)
            bytes_append_char(out, ',');
        column_write(&scan->columns[c], row_count, out);
    }
    bytes_append_char(out, ']');
}

static void rows_write(struct batch_scan *scan, struct bytes *out)
{
    names_write(scan, MEMBER_COLUMNS, out);
    json_key(out, batch_member_names[MEMBER_ROWS]);
    bytes_append_char(out, '[');
    for (uint32_t row = 0; row < scan->view->row_count; row++) {
        if (!bytes_reserve(out, scan->column_count * (CELL_SIZE_MAX + 1) + 2))
            return;
        char *at = out->data + out->size;
        if (row)
            *at++ = ',';
        *at++ = '[';
        for (unsigned c = 0; c < scan->column_count; c++) {
            at = cell_put(at, scan->columns[c].cells[row], scan->columns[c].info);
            *at++ = ',';
        }
        at[-1] = ']'; /* the last comma */
        out->size = (size_t)(at - out->data);
    }
    bytes_append_char(out, ']');
}

static gpufl_status line_rewrite(const char *line, size_t size, struct bytes *out,
                                 void (*write_cells)(struct batch_scan *, struct bytes *))
{
    struct batch_view view = {0};
    struct batch_scan scan;
    gpufl_status status = batch_scan_line(&scan, &view, line, size);
    if (status == GPUFL_OK) {
        /* A row count without columns cannot be expressed in the cols form. */
        if (scan.has_unknown_columns || scan.extra_count > BATCH_EXTRAS_MAX || scan.column_count == 0) {
            status = GPUFL_E_UNSUPPORTED;
        } else {
            head_write(&scan, out);
            write_cells(&scan, out);
            member_copy(&scan, MEMBER_SEQ, out);
            bytes_append_char(out, '}');
            status = out->failed ? GPUFL_E_NO_MEMORY : GPUFL_OK;
        }
    }
    batch_view_free(&view);
    return status;
}

gpufl_status batch_transpose(const char *line, size_t size, struct bytes *out)
{
    return line_rewrite(line, size, out, cols_write);
}

gpufl_status batch_expand(const char *line, size_t size, struct bytes *out)
{
    return line_rewrite(line, size, out, rows_write);
}
