/* SPDX-License-Identifier: Apache-2.0 */
/* RowBinary: numbers as they are in memory (little-endian), strings and arrays behind their size as LEB128. */
#include "store/clickhouse_client.h"
#include "store/column_codec.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "RowBinary is little-endian, as we are");

void ch_rows_free(struct ch_rows *rows)
{
    bytes_free(&rows->body);
    *rows = (struct ch_rows){0};
}

bool ch_rows_next(const struct ch_rows *rows)
{
    return !rows->is_damaged && rows->at < rows->body.size;
}

static void number_read(struct ch_rows *rows, void *value, size_t size)
{
    memset(value, 0, size);
    if (rows->is_damaged || rows->body.size - rows->at < size) {
        rows->is_damaged = true;
        return;
    }
    memcpy(value, rows->body.data + rows->at, size);
    rows->at += size;
}

uint8_t ch_u8(struct ch_rows *rows)
{
    uint8_t value;
    number_read(rows, &value, sizeof value);
    return value;
}

uint32_t ch_u32(struct ch_rows *rows)
{
    uint32_t value;
    number_read(rows, &value, sizeof value);
    return value;
}

uint64_t ch_u64(struct ch_rows *rows)
{
    uint64_t value;
    number_read(rows, &value, sizeof value);
    return value;
}

int64_t ch_i64(struct ch_rows *rows)
{
    int64_t value;
    number_read(rows, &value, sizeof value);
    return value;
}

double ch_f64(struct ch_rows *rows)
{
    double value;
    number_read(rows, &value, sizeof value);
    return value;
}

size_t ch_count(struct ch_rows *rows)
{
    const uint8_t *begin = (const uint8_t *)rows->body.data, *at = begin + rows->at;
    uint64_t count = 0;
    /* An element has a byte at least: more of them than bytes are damage. */
    if (rows->is_damaged || !varint_read(&at, begin + rows->body.size, &count) ||
        count > (uint64_t)(begin + rows->body.size - at)) {
        rows->is_damaged = true;
        return 0;
    }
    rows->at = (size_t)(at - begin);
    return (size_t)count;
}

const char *ch_text(struct ch_rows *rows, size_t *size)
{
    size_t count = ch_count(rows);
    if (size)
        *size = count;
    if (rows->is_damaged)
        return "";
    /* Its size stood before it: there is room for the NUL when it moves one byte down. */
    char *text = rows->body.data + rows->at - 1;
    memmove(text, text + 1, count);
    text[count] = '\0';
    rows->at += count;
    return text;
}

const char *ch_peek(struct ch_rows *rows, size_t *size)
{
    *size = ch_count(rows);
    const char *text = rows->is_damaged ? "" : rows->body.data + rows->at;
    rows->at += rows->is_damaged ? 0 : *size;
    return text;
}

void ch_put(struct bytes *out, const void *value, size_t size)
{
    bytes_append(out, value, size);
}

void ch_put_u8(struct bytes *out, uint8_t value)
{
    bytes_append(out, &value, sizeof value);
}

void ch_put_u32(struct bytes *out, uint32_t value)
{
    bytes_append(out, &value, sizeof value);
}

void ch_put_u64(struct bytes *out, uint64_t value)
{
    bytes_append(out, &value, sizeof value);
}

void ch_put_i64(struct bytes *out, int64_t value)
{
    bytes_append(out, &value, sizeof value);
}

void ch_put_blob(struct bytes *out, const void *data, size_t size)
{
    varint_append(out, size);
    bytes_append(out, data, size);
}

void ch_put_text(struct bytes *out, const char *text)
{
    ch_put_blob(out, text, strlen(text));
}

void ch_quote(struct bytes *sql, const char *text, size_t size)
{
    bytes_append_char(sql, '\'');
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\\' || text[i] == '\'')
            bytes_append_char(sql, '\\');
        if (text[i])
            bytes_append_char(sql, text[i]);
        else
            bytes_append_text(sql, "\\0");
    }
    bytes_append_char(sql, '\'');
}

void ch_quote_text(struct bytes *sql, const char *text)
{
    ch_quote(sql, text, strlen(text));
}
