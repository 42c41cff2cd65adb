/* SPDX-License-Identifier: Apache-2.0 */
/* Segments: 'S', version, row count, column count, then per column its size and CRC, then the columns. */
#include "base/crc32c.h"
#include "store/row_buffer.h"

#include <stdlib.h>

enum { SEGMENT_VERSION = 1 };

static void u32_append(struct bytes *out, uint32_t value)
{
    const uint8_t text[4] = {(uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16), (uint8_t)(value >> 24)};
    bytes_append(out, text, sizeof text);
}

/* Encodes unknown cells for a column that the buffer does not have. */
static void unknown_encode(struct column_coder *coder, const struct column_info *column, uint32_t count,
                           struct bytes *out)
{
    int64_t *cells = malloc(count * sizeof *cells);
    if (!cells) {
        out->failed = true;
        return;
    }
    for (uint32_t row = 0; row < count; row++)
        cells[row] = cell_unknown(column);
    column_encode(coder, cells, count, out);
    free(cells);
}

void segment_encode(struct column_coder *coder, const struct row_buffer *buffer, uint64_t columns, struct bytes *out)
{
    struct bytes body = {0};
    bytes_append_char(out, 'S');
    bytes_append_char(out, SEGMENT_VERSION);
    varint_append(out, buffer->row_count);
    varint_append(out, (uint64_t)__builtin_popcountll(columns));
    for (unsigned i = 0; i < buffer->info->column_count && i < ROW_COLUMNS_MAX; i++) {
        if (!(columns >> i & 1))
            continue;
        size_t begin = body.size;
        if (buffer->present >> i & 1)
            column_encode(coder, buffer->columns[i], buffer->row_count, &body);
        else
            unknown_encode(coder, &buffer->info->columns[i], buffer->row_count, &body);
        varint_append(out, body.size - begin);
        u32_append(out, body.failed ? 0 : crc32c(0, body.data + begin, body.size - begin));
    }
    bytes_append(out, body.data, body.size);
    out->failed |= body.failed;
    bytes_free(&body);
}

struct stored_column {
    uint64_t size;
    uint32_t crc;
};

static bool head_read(const uint8_t **at, const uint8_t *end, unsigned order_count, uint64_t *row_count,
                      struct stored_column *columns)
{
    uint64_t column_count;
    if (end - *at < 2 || (*at)[0] != 'S' || (*at)[1] != SEGMENT_VERSION)
        return false;
    *at += 2;
    if (!varint_read(at, end, row_count) || !varint_read(at, end, &column_count) || !*row_count ||
        *row_count > COLUMN_ROWS_MAX || column_count != order_count || column_count > ROW_COLUMNS_MAX)
        return false;
    for (unsigned i = 0; i < order_count; i++) {
        if (!varint_read(at, end, &columns[i].size) || end - *at < 4)
            return false;
        columns[i].crc =
            (uint32_t)(*at)[0] | (uint32_t)(*at)[1] << 8 | (uint32_t)(*at)[2] << 16 | (uint32_t)(*at)[3] << 24;
        *at += 4;
    }
    return true;
}

gpufl_status segment_decode(struct column_coder *coder, const void *data, size_t size, const int *order,
                            unsigned order_count, uint64_t wanted, struct row_buffer *buffer)
{
    const uint8_t *at = data, *end = at + size;
    struct stored_column columns[ROW_COLUMNS_MAX];
    uint64_t row_count;
    row_buffer_clear(buffer);
    if (order_count > ROW_COLUMNS_MAX || !head_read(&at, end, order_count, &row_count, columns))
        return GPUFL_E_DAMAGED;
    for (unsigned i = 0; i < order_count; i++) {
        if (columns[i].size > (size_t)(end - at))
            goto damaged;
        const uint8_t *column = at;
        at += columns[i].size;
        if (order[i] < 0 || (wanted && !(wanted >> order[i] & 1)))
            continue;
        if (crc32c(0, column, (size_t)columns[i].size) != columns[i].crc)
            goto damaged;
        if (!row_buffer_reserve(buffer, (uint32_t)row_count, UINT64_C(1) << order[i]))
            goto no_memory;
        gpufl_status status =
            column_decode(coder, column, (size_t)columns[i].size, buffer->columns[order[i]], (size_t)row_count);
        if (status == GPUFL_E_NO_MEMORY)
            goto no_memory;
        if (status)
            goto damaged;
        buffer->present |= UINT64_C(1) << order[i];
    }
    if (at != end)
        goto damaged;
    buffer->row_count = (uint32_t)row_count;
    return GPUFL_OK;
damaged:
    row_buffer_clear(buffer);
    return GPUFL_E_DAMAGED;
no_memory:
    row_buffer_clear(buffer);
    return GPUFL_E_NO_MEMORY;
}
