/* SPDX-License-Identifier: Apache-2.0 */
/* The cells of a batch line: the hot loop of reading a session.
 *
 * The last byte of a line is '}' (checked by batch_scan_line), and no cell contains one, so digit loops stop inside the
 * line without a bounds check per byte. Anything but plain digits followed by the expected separator is passed to the
 * lexer, which accepts all of JSON and reports errors. */
#include "format/batch_scan.h"

#include <math.h>

#define FAST_CELL_SIZE_MAX 18 /* a sign and digits that cannot overflow */

static bool cell_from_number(struct batch_scan *scan, const struct scan_column *column, const struct json_token *token,
                             int64_t *cell)
{
    const struct json_number *number = &token->number;
    if (column->info->type == CELL_F64) {
        memcpy(cell, &number->value, sizeof *cell);
        return true;
    }
    uint64_t magnitude = number->magnitude;
    if (!number->is_integer) {
        if (floor(number->value) != number->value || fabs(number->value) > 0x1p53)
            return json_lex_fail(&scan->lexer, token->start, "column '%s' needs an integer in range",
                                 column->info->name);
        magnitude = (uint64_t)fabs(number->value);
    }
    bool is_unsigned = column->info->type == CELL_U64 && !column->is_delta;
    bool is_negative = number->is_negative && magnitude;
    bool is_in_range = is_unsigned ? !is_negative : magnitude <= (uint64_t)INT64_MAX + is_negative;
    *cell = (int64_t)(is_negative ? 0 - magnitude : magnitude);
    if (!is_in_range || (column->info->is_nullable && *cell == CELL_UNKNOWN))
        return json_lex_fail(&scan->lexer, token->start, "value out of the range of column '%s'", column->info->name);
    return true;
}

/* Any JSON value, with preceding white space. */
static bool cell_scan(struct batch_scan *scan, const struct scan_column *column, int64_t *cell)
{
    struct json_lexer *lexer = &scan->lexer;
    const unsigned depth = lexer->depth;
    const uint64_t objects = lexer->objects;
    struct json_token token;
    lexer->depth = 0; /* a separate document: the brackets around cells are handled here */
    enum json_event event = json_lex_next(lexer, &token);
    bool is_read =
        event == JSON_EVENT_SCALAR || (event == JSON_EVENT_OPEN && !column->info && json_lex_skip_rest(lexer));
    lexer->depth = depth;
    lexer->objects = objects;
    if (lexer->reason_at)
        return false;
    if (!is_read || (column->info && token.kind == JSON_STRING))
        return json_lex_fail(lexer, token.start, "column '%s' needs a number", column->info->name);
    if (!column->info)
        return true;
    switch (token.kind) {
    case JSON_NULL:
        if (column->info->type == CELL_F64) {
            double unknown = (double)NAN;
            memcpy(cell, &unknown, sizeof *cell);
            return true;
        }
        *cell = CELL_UNKNOWN;
        return column->info->is_nullable ||
               json_lex_fail(lexer, token.start, "column '%s' cannot be null", column->info->name);
    case JSON_TRUE:
    case JSON_FALSE:
        token.number = (struct json_number){
            .is_integer = true, .magnitude = token.kind == JSON_TRUE, .value = token.kind == JSON_TRUE};
        break;
    default:
        break;
    }
    return cell_from_number(scan, column, &token, cell);
}

/* Reads plain digits and the following `separator`; NULL: the cell is anything else. */
static inline const char *cell_scan_fast(const char *at, char separator, bool is_signed, int64_t *cell)
{
    const char *start = at;
    bool is_negative = *at == '-';
    at += is_negative;
    unsigned digit = (unsigned)(unsigned char)*at - '0';
    if (digit > 9)
        return NULL;
    uint64_t value = digit;
    if (*++at == separator) {
        *cell = is_negative ? -(int64_t)value : (int64_t)value;
        return !is_negative || is_signed ? at + 1 : NULL;
    }
    if (value == 0)
        return NULL;
    while ((digit = (unsigned)(unsigned char)*at - '0') <= 9) {
        value = value * 10 + digit;
        at++;
    }
    if (*at != separator || at - start > FAST_CELL_SIZE_MAX || (is_negative && !is_signed))
        return NULL;
    *cell = is_negative ? -(int64_t)value : (int64_t)value;
    return at + 1;
}

static bool column_is_fast(const struct scan_column *column)
{
    return column->info && column->info->type != CELL_F64;
}

static bool column_is_signed(const struct scan_column *column)
{
    return column->is_delta || (column->info && column->info->type != CELL_U64);
}

/* The byte after a cell: ',' (true in *has_more) or ']'. */
static bool separator_scan(struct json_lexer *lexer, bool *has_more)
{
    json_lex_space(lexer);
    *has_more = lexer->at < lexer->end && *lexer->at == ',';
    if (!*has_more && (lexer->at == lexer->end || *lexer->at != ']'))
        return json_lex_fail(lexer, lexer->at, "expected ',' or ']'");
    lexer->at++;
    return true;
}

/* Reads one row, starting at its '['. */
static bool row_scan(struct batch_scan *scan, uint32_t row, const bool *is_fast, const bool *is_signed)
{
    struct json_lexer *lexer = &scan->lexer;
    const unsigned count = scan->column_count;
    const char *row_start = lexer->at;
    if (!json_lex_expect(lexer, '[', "'['"))
        return false;
    if (count == 0)
        return json_lex_expect(lexer, ']', "']': the line has no columns");
    const char *at = lexer->at;
    for (unsigned c = 0; c < count; c++) {
        struct scan_column *column = &scan->columns[c];
        int64_t cell = 0;
        const char *next = is_fast[c] ? cell_scan_fast(at, c + 1 < count ? ',' : ']', is_signed[c], &cell) : NULL;
        if (!next) {
            bool has_more;
            lexer->at = at;
            json_lex_space(lexer);
            const char *place = lexer->at;
            if (place < lexer->end && *place == ']')
                return json_lex_fail(lexer, place, "row has %u cells, expected %u", c, count);
            if (!cell_scan(scan, column, &cell) || !separator_scan(lexer, &has_more))
                return false;
            if (has_more != (c + 1 < count)) {
                if (has_more)
                    return json_lex_fail(lexer, row_start, "row has more than %u cells", count);
                return json_lex_fail(lexer, row_start, "row has %u cells, expected %u", c + 1, count);
            }
            next = lexer->at;
        }
        if (column->cells)
            column->cells[row] = cell;
        at = next;
    }
    lexer->at = at;
    return true;
}

bool rows_scan(struct batch_scan *scan)
{
    struct json_lexer *lexer = &scan->lexer;
    bool is_fast[BATCH_COLUMNS_MAX] = {false}, is_signed[BATCH_COLUMNS_MAX] = {false}, has_more = true;
    for (unsigned c = 0; c < scan->column_count; c++) {
        is_fast[c] = column_is_fast(&scan->columns[c]);
        is_signed[c] = column_is_signed(&scan->columns[c]);
    }
    uint32_t row = 0;
    json_lex_space(lexer);
    if (lexer->at < lexer->end && *lexer->at == ']') {
        lexer->at++;
        has_more = false;
    }
    for (; has_more; row++)
        if (row == scan->view->row_capacity || !row_scan(scan, row, is_fast, is_signed) ||
            !separator_scan(lexer, &has_more))
            return json_lex_fail(lexer, lexer->at, "more rows than the line can hold");
    scan->view->row_count = row;
    return true;
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "digits_scan takes the first cell from the lowest byte");

/* Reads cells of one digit, four at a time: most of a column of differences. Returns the row after the last one
 * read. */
static uint32_t digits_scan(struct batch_scan *scan, int64_t *cells, uint32_t row)
{
    struct json_lexer *lexer = &scan->lexer;
    const uint32_t capacity = scan->view->row_capacity;
    const char *at = lexer->at;
    for (; lexer->end - at >= 8 && capacity - row >= 4; at += 8, row += 4) {
        uint64_t text;
        memcpy(&text, at, sizeof text);
        uint64_t digits = (text ^ UINT64_C(0x2c302c302c302c30));
        /* Zero if the commas are in place; no digit above 9 may carry into its upper half. */
        if ((digits | (digits + UINT64_C(0x0006000600060006))) & UINT64_C(0xfff0fff0fff0fff0))
            break;
        for (unsigned i = 0; i < 4; i++)
            cells[row + i] = (int64_t)(digits >> 16 * i & 15);
    }
    lexer->at = at;
    return row;
}

/* Reads one column after its '['; *row_count is the number of cells. */
static bool column_scan(struct batch_scan *scan, struct scan_column *column, uint32_t *row_count)
{
    struct json_lexer *lexer = &scan->lexer;
    const bool is_fast = column_is_fast(column), is_signed = column_is_signed(column);
    const uint32_t capacity = scan->view->row_capacity;
    uint32_t row = 0;
    bool has_more = true;
    json_lex_space(lexer);
    if (lexer->at < lexer->end && *lexer->at == ']') {
        lexer->at++;
        has_more = false;
    }
    for (; has_more; row++) {
        int64_t cell = 0;
        if (row == capacity)
            return json_lex_fail(lexer, lexer->at, "columns differ in length");
        const char *next = is_fast ? cell_scan_fast(lexer->at, ',', is_signed, &cell) : NULL;
        const bool is_digit = next == lexer->at + 2;
        if (next)
            lexer->at = next;
        else if (!cell_scan(scan, column, &cell) || !separator_scan(lexer, &has_more))
            return false;
        if (!column->cells)
            continue;
        column->cells[row] = cell;
        if (is_digit)
            row = digits_scan(scan, column->cells, row + 1) - 1;
    }
    *row_count = row;
    return true;
}

/* Converts differences to the previous known row into values. */
static bool column_sum(struct batch_scan *scan, const struct scan_column *column, const char *place)
{
    const bool is_nullable = column->info->is_nullable;
    uint64_t sum = 0;
    for (uint32_t row = 0; row < scan->view->row_count; row++) {
        int64_t *cell = &column->cells[row];
        if (is_nullable && *cell == CELL_UNKNOWN)
            continue;
        sum += (uint64_t)*cell;
        *cell = (int64_t)sum;
        if (is_nullable && *cell == CELL_UNKNOWN)
            return json_lex_fail(&scan->lexer, place, "value out of the range of column '%s'", column->info->name);
    }
    return true;
}

bool cols_scan(struct batch_scan *scan)
{
    struct json_lexer *lexer = &scan->lexer;
    for (unsigned c = 0; c < scan->column_count; c++) {
        struct scan_column *column = &scan->columns[c];
        uint32_t row_count = 0;
        if ((c && !json_lex_expect(lexer, ',', "',': one array per column")) || !json_lex_expect(lexer, '[', "'['"))
            return false;
        const char *place = lexer->at;
        if (!column_scan(scan, column, &row_count))
            return false;
        if (c && row_count != scan->view->row_count)
            return json_lex_fail(lexer, place, "columns differ in length");
        scan->view->row_count = row_count;
        if (column->is_delta && column->cells && !column_sum(scan, column, place))
            return false;
    }
    return json_lex_expect(lexer, ']', "']' after the last column");
}
