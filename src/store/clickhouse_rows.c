/* SPDX-License-Identifier: Apache-2.0 */
/* RowBinary: numbers in memory order (little-endian), strings and arrays preceded by their size as LEB128. */
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

/* ---- columns ---- */

static bool varint_take(struct ch_rows *rows, uint64_t *value)
{
    if (!rows->body.size) /* data may be NULL */
        rows->is_damaged = true;
    if (rows->is_damaged)
        return false;
    const uint8_t *begin = (const uint8_t *)rows->body.data, *at = begin + rows->at;
    if (!varint_read(&at, begin + rows->body.size, value)) {
        rows->is_damaged = true;
        return false;
    }
    rows->at = (size_t)(at - begin);
    return true;
}

/* Reads a size and checks that the rest of the answer is that large. */
static size_t size_take(struct ch_rows *rows)
{
    uint64_t size;
    if (!varint_take(rows, &size))
        return 0;
    if (size > rows->body.size - rows->at) {
        rows->is_damaged = true;
        return 0;
    }
    return (size_t)size;
}

/* Removes NAME( and the closing bracket from the type. */
static bool type_unwrap(const char **type, size_t *size, const char *name)
{
    size_t length = strlen(name);
    if (*size < length + 2 || strncmp(*type, name, length) != 0 || (*type)[length] != '(' || (*type)[*size - 1] != ')')
        return false;
    *type += length + 1;
    *size -= length + 2;
    return true;
}

static bool column_parse(struct ch_column *column, const char *type, size_t size)
{
    static const struct {
        const char *name;
        struct ch_column column;
    } types[] = {
        {"UInt8", {CH_UNSIGNED, 1, 0, 0}},  {"UInt16", {CH_UNSIGNED, 2, 0, 0}},   {"UInt32", {CH_UNSIGNED, 4, 0, 0}},
        {"UInt64", {CH_UNSIGNED, 8, 0, 0}}, {"Int8", {CH_SIGNED, 1, 0, 0}},       {"Int16", {CH_SIGNED, 2, 0, 0}},
        {"Int32", {CH_SIGNED, 4, 0, 0}},    {"Int64", {CH_SIGNED, 8, 0, 0}},      {"Bool", {CH_UNSIGNED, 1, 0, 0}},
        {"Date", {CH_UNSIGNED, 2, 0, 0}},   {"DateTime", {CH_UNSIGNED, 4, 0, 0}}, {"Float64", {CH_FLOAT, 8, 0, 0}},
        {"String", {CH_TEXT, 0, 0, 0}}};
    bool is_array = type_unwrap(&type, &size, "Array");
    (void)type_unwrap(&type, &size, "LowCardinality");
    bool is_nullable = type_unwrap(&type, &size, "Nullable");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strlen(types[i].name) == size && !memcmp(types[i].name, type, size)) {
            *column = types[i].column;
            column->is_array = is_array;
            column->is_nullable = is_nullable;
            return true;
        }
    return false;
}

void ch_rows_describe(struct ch_rows *rows)
{
    size_t count = size_take(rows), size;
    if (!count || count > CH_COLUMNS_MAX) {
        rows->is_damaged = true;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        size = size_take(rows);
        rows->at += size;
    }
    for (size_t i = 0; i < count && !rows->is_damaged; i++) {
        size = size_take(rows);
        if (!column_parse(&rows->columns[i], rows->body.data + rows->at, size))
            rows->is_damaged = true;
        rows->at += size;
    }
    rows->column_count = (unsigned)count;
    rows->begin = rows->at;
}

void ch_rows_rewind(struct ch_rows *rows)
{
    rows->at = rows->begin;
    rows->column = 0;
    rows->elements_left = 0;
}

static void column_pass(struct ch_rows *rows)
{
    rows->column = rows->column + 1 < rows->column_count ? rows->column + 1 : 0;
}

/* Reads the null flag and returns the column of the next value; usual: the column if the answer has no types. */
static const struct ch_column *value_begin(struct ch_rows *rows, const struct ch_column *usual)
{
    if (!rows->column_count)
        return usual;
    const struct ch_column *column = &rows->columns[rows->column];
    bool is_null = false;
    if (column->is_array && !rows->elements_left)
        rows->is_damaged = true;
    if (column->is_nullable && rows->at < rows->body.size)
        is_null = rows->body.data[rows->at++] != 0;
    rows->is_damaged |= is_null || (column->kind == CH_TEXT) != (usual->kind == CH_TEXT);
    if (column->is_array && rows->elements_left)
        rows->elements_left--;
    if (!rows->elements_left)
        column_pass(rows);
    return column;
}

/* ---- values ---- */

/* The number's bytes, at most 8. */
static uint64_t number_read(struct ch_rows *rows, const struct ch_column *column)
{
    uint64_t value = 0;
    if (rows->is_damaged || rows->body.size - rows->at < column->size) {
        rows->is_damaged = true;
        return 0;
    }
    memcpy(&value, rows->body.data + rows->at, column->size);
    rows->at += column->size;
    unsigned unused = 64 - 8 * (unsigned)column->size;
    return column->kind == CH_SIGNED && unused ? (uint64_t)((int64_t)(value << unused) >> unused) : value;
}

/* An integer of at most `most`. */
static uint64_t integer_read(struct ch_rows *rows, uint8_t size, bool is_signed, uint64_t most)
{
    const struct ch_column usual = {.kind = is_signed ? CH_SIGNED : CH_UNSIGNED, .size = size};
    const struct ch_column *column = value_begin(rows, &usual);
    uint64_t value = number_read(rows, column);
    bool is_negative = column->kind == CH_SIGNED && (int64_t)value < 0;
    bool is_too_large = !is_negative && value > most;
    if (column->kind == CH_FLOAT || is_too_large || (is_negative && !is_signed))
        rows->is_damaged = true;
    return rows->is_damaged ? 0 : value;
}

uint8_t ch_u8(struct ch_rows *rows)
{
    return (uint8_t)integer_read(rows, sizeof(uint8_t), false, UINT8_MAX);
}

uint32_t ch_u32(struct ch_rows *rows)
{
    return (uint32_t)integer_read(rows, sizeof(uint32_t), false, UINT32_MAX);
}

uint64_t ch_u64(struct ch_rows *rows)
{
    return integer_read(rows, sizeof(uint64_t), false, UINT64_MAX);
}

int64_t ch_i64(struct ch_rows *rows)
{
    return (int64_t)integer_read(rows, sizeof(int64_t), true, INT64_MAX);
}

double ch_f64(struct ch_rows *rows)
{
    const struct ch_column usual = {.kind = CH_FLOAT, .size = sizeof(double)};
    const struct ch_column *column = value_begin(rows, &usual);
    uint64_t bits = number_read(rows, column);
    double value;
    memcpy(&value, &bits, sizeof value);
    return column->kind == CH_FLOAT ? value : column->kind == CH_SIGNED ? (double)(int64_t)bits : (double)bits;
}

size_t ch_count(struct ch_rows *rows)
{
    /* An element has at least one byte: more elements than bytes are damage. */
    size_t count = size_take(rows);
    if (rows->column_count) {
        rows->is_damaged |= !rows->columns[rows->column].is_array || rows->elements_left;
        rows->elements_left = rows->is_damaged ? 0 : count;
        if (!count)
            column_pass(rows);
    }
    return rows->is_damaged ? 0 : count;
}

/* Reads the text's size; the position is then its first byte. */
static size_t text_begin(struct ch_rows *rows)
{
    static const struct ch_column usual = {.kind = CH_TEXT};
    (void)value_begin(rows, &usual);
    return size_take(rows);
}

const char *ch_text(struct ch_rows *rows, size_t *size)
{
    size_t count = text_begin(rows);
    if (size)
        *size = count;
    if (rows->is_damaged)
        return "";
    /* The size precedes the text: moving the text one byte down makes room for the NUL. */
    char *text = rows->body.data + rows->at - 1;
    memmove(text, text + 1, count);
    text[count] = '\0';
    rows->at += count;
    return text;
}

const char *ch_peek(struct ch_rows *rows, size_t *size)
{
    *size = text_begin(rows);
    const char *text = rows->is_damaged ? "" : rows->body.data + rows->at;
    rows->at += rows->is_damaged ? 0 : *size;
    return text;
}

/* ---- out ---- */

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
