/* SPDX-License-Identifier: Apache-2.0 */
#include "format/batch_scan.h"

#include <stdio.h>
#include <stdlib.h>

#define LINE_SIZE_MAX ((size_t)1 << 30)

const char *const batch_member_names[MEMBER_COUNT] = {
    "version", "type", "session_id", "batch_id", "base_time_ns", "columns", "delta", "rows", "cols", "seq", "crc"};

static bool span_equals(const struct json_span *span, const char *text)
{
    return strlen(text) == span->size && !memcmp(text, span->text, span->size);
}

/* Reads the next string of an array; false: the end, or a failure (then reason_at is set). */
static bool name_next(struct json_lexer *lexer, const char *what, struct json_span *name)
{
    struct json_token token = {.start = lexer->at};
    enum json_event event = json_lex_next(lexer, &token);
    if (event == JSON_EVENT_SCALAR && token.kind == JSON_STRING) {
        *name = token.text;
        return true;
    }
    if (event != JSON_EVENT_CLOSE)
        json_lex_fail(lexer, token.start, "%s must be an array of strings", what);
    return false;
}

/* Opens a lexer inside one member's array. */
static bool member_open(struct batch_scan *scan, enum batch_member member, struct json_lexer *inner)
{
    const struct json_span *span = &scan->members[member];
    struct json_token token;
    json_lex_init(inner, span->text, span->size);
    if (json_lex_next(inner, &token) == JSON_EVENT_OPEN && token.kind == JSON_ARRAY)
        return true;
    return json_lex_fail(&scan->lexer, span->text, "%s must be an array", batch_member_names[member]);
}

static bool columns_resolve(struct batch_scan *scan)
{
    struct json_lexer inner;
    if (!member_open(scan, MEMBER_COLUMNS, &inner))
        return false;
    const struct record_info *info = scan->view->info;
    struct json_span name;
    unsigned expected = 0; /* writers use the catalogue's order */
    while (name_next(&inner, "columns", &name)) {
        if (scan->column_count == BATCH_COLUMNS_MAX)
            return json_lex_fail(&scan->lexer, name.text, "more than %d columns", BATCH_COLUMNS_MAX);
        struct scan_column *column = &scan->columns[scan->column_count++];
        *column = (struct scan_column){.name = name};
        unsigned index = expected;
        if (index >= info->column_count || !span_equals(&name, info->columns[index].name))
            for (index = 0; index < info->column_count && !span_equals(&name, info->columns[index].name);)
                index++;
        if (index == info->column_count) {
            scan->has_unknown_columns = true;
            continue;
        }
        if (scan->view->columns[index].present)
            return json_lex_fail(&scan->lexer, name.text, "column '%s' twice", info->columns[index].name);
        scan->view->columns[index].present = true;
        column->info = &info->columns[index];
        expected = index + 1;
    }
    if (inner.reason_at)
        return json_lex_fail(&scan->lexer, inner.reason_at, "%s", inner.reason);
    return true;
}

static bool deltas_resolve(struct batch_scan *scan)
{
    if (scan->members[MEMBER_DELTA].size == 0)
        return true;
    struct json_lexer inner;
    if (!member_open(scan, MEMBER_DELTA, &inner))
        return false;
    struct json_span name;
    while (name_next(&inner, "delta", &name)) {
        unsigned c = 0;
        while (c < scan->column_count && (scan->columns[c].name.size != name.size ||
                                          memcmp(scan->columns[c].name.text, name.text, name.size) != 0))
            c++;
        if (c == scan->column_count)
            return json_lex_fail(&scan->lexer, name.text, "delta names a column that is not there");
        if (scan->columns[c].info && scan->columns[c].info->type == CELL_F64)
            return json_lex_fail(&scan->lexer, name.text, "delta of a column of fractions");
        scan->columns[c].is_delta = true;
    }
    if (inner.reason_at)
        return json_lex_fail(&scan->lexer, inner.reason_at, "%s", inner.reason);
    return true;
}

/* Allocates as many rows as `size` bytes of cells can hold. */
static bool storage_prepare(struct batch_scan *scan, size_t size)
{
    struct batch_view *view = scan->view;
    size_t cell_size_min = 2, row_count = size / (scan->column_count ? cell_size_min * scan->column_count : 3) + 1;
    /* An odd number of cache lines between columns puts a row's stores into different cache sets. */
    row_count = ((row_count + 7) & ~(size_t)7) | 8;
    unsigned known = 0;
    for (unsigned c = 0; c < scan->column_count; c++)
        known += scan->columns[c].info != NULL;
    if (row_count * known > view->storage_cells) {
        free(view->storage);
        view->storage_cells = 0;
        view->storage = malloc(row_count * known * sizeof *view->storage);
        if (!view->storage) {
            scan->status = GPUFL_E_NO_MEMORY;
            return json_lex_fail(&scan->lexer, scan->lexer.at, "out of memory");
        }
        view->storage_cells = row_count * known;
    }
    view->row_capacity = (uint32_t)row_count;
    int64_t *cells = view->storage;
    for (unsigned c = 0; c < scan->column_count; c++) {
        struct scan_column *column = &scan->columns[c];
        if (!column->info)
            continue;
        column->cells = view->columns[column->info - view->info->columns].cells = cells;
        cells += row_count;
    }
    return true;
}

/* lexer->at is inside the array of cells; for a deferred array a new lexer is placed there. */
static bool cells_scan(struct batch_scan *scan, bool is_rows)
{
    scan->has_cells = true;
    return columns_resolve(scan) && (is_rows || deltas_resolve(scan)) &&
           storage_prepare(scan, (size_t)(scan->lexer.end - scan->lexer.at)) &&
           (is_rows ? rows_scan(scan) : cols_scan(scan));
}

static bool cells_scan_deferred(struct batch_scan *scan)
{
    bool is_rows = scan->members[MEMBER_ROWS].size > 0;
    const struct json_span *span = &scan->members[is_rows ? MEMBER_ROWS : MEMBER_COLS];
    if (span->size == 0)
        return json_lex_fail(&scan->lexer, scan->lexer.at, "rows are missing");
    if (*span->text != '[')
        return json_lex_fail(&scan->lexer, span->text, "%s must be an array", is_rows ? "rows" : "cols");
    scan->lexer.at = span->text + 1;
    return cells_scan(scan, is_rows);
}

static bool integer_take(struct batch_scan *scan, const struct json_token *token, const char *name, int64_t *value)
{
    if (token->kind != JSON_INT || token->number.magnitude > INT64_MAX)
        return json_lex_fail(&scan->lexer, token->start, "%s must be an integer", name);
    *value = token->number.is_negative ? -(int64_t)token->number.magnitude : (int64_t)token->number.magnitude;
    return true;
}

static bool type_take(struct batch_scan *scan, const struct json_token *token)
{
    if (token->kind != JSON_STRING)
        return json_lex_fail(&scan->lexer, token->start, "type must be a string");
    const struct record_info *info = &record_catalogue[record_type_of(token->text.text, token->text.size)];
    if (!info->is_batch) {
        scan->status = GPUFL_E_UNSUPPORTED;
        return json_lex_fail(&scan->lexer, token->start, "not a batch type");
    }
    scan->view->info = info;
    memset(scan->view->columns, 0, info->column_count * sizeof *scan->view->columns);
    return true;
}

static bool member_take(struct batch_scan *scan, enum batch_member member, const struct json_token *token)
{
    struct batch_view *view = scan->view;
    switch (member) {
    case MEMBER_VERSION:
        return integer_take(scan, token, "version", &view->version);
    case MEMBER_TYPE:
        return type_take(scan, token);
    case MEMBER_SESSION_ID:
        if (token->kind != JSON_STRING)
            return json_lex_fail(&scan->lexer, token->start, "session_id must be a string");
        view->session_id = token->text.text;
        view->session_id_size = (uint32_t)token->text.size;
        return true;
    case MEMBER_BATCH_ID:
        return integer_take(scan, token, "batch_id", &view->batch_id);
    case MEMBER_BASE_TIME_NS:
        return integer_take(scan, token, "base_time_ns", &view->base_time_ns);
    case MEMBER_SEQ:
        return integer_take(scan, token, "seq", &view->seq);
    default:
        return true;
    }
}

static enum batch_member member_find(const struct json_span *key)
{
    int member = 0;
    while (member < MEMBER_COUNT && !span_equals(key, batch_member_names[member]))
        member++;
    return (enum batch_member)member;
}

/* The value of an array or object member: decoded immediately if everything that it depends on is known, otherwise
 * skipped and decoded after the last member. */
static bool array_take(struct batch_scan *scan, enum batch_member member, const struct json_token *token)
{
    bool is_cells = (member == MEMBER_ROWS || member == MEMBER_COLS) && token->kind == JSON_ARRAY;
    bool is_ready = scan->view->info && scan->members[MEMBER_COLUMNS].size > 0 &&
                    (member == MEMBER_ROWS || scan->members[MEMBER_DELTA].size > 0);
    if (!is_cells || !is_ready)
        return json_lex_skip_rest(&scan->lexer);
    if (!cells_scan(scan, member == MEMBER_ROWS))
        return false;
    scan->lexer.depth--;
    scan->lexer.objects >>= 1;
    scan->lexer.is_first = false;
    return true;
}

static bool members_scan(struct batch_scan *scan)
{
    struct json_lexer *lexer = &scan->lexer;
    struct json_token token;
    if (json_lex_next(lexer, &token) != JSON_EVENT_OPEN || token.kind != JSON_OBJECT)
        return json_lex_fail(lexer, lexer->start, "expected '{'");
    enum json_event event;
    while ((event = json_lex_next(lexer, &token)) == JSON_EVENT_SCALAR || event == JSON_EVENT_OPEN) {
        enum batch_member member = member_find(&token.key);
        if (member < MEMBER_COUNT && scan->members[member].size > 0)
            return json_lex_fail(lexer, token.start, "%s twice", batch_member_names[member]);
        if ((member == MEMBER_COLS && scan->members[MEMBER_ROWS].size > 0) ||
            (member == MEMBER_ROWS && scan->members[MEMBER_COLS].size > 0))
            return json_lex_fail(lexer, token.start, "rows and cols in one line");
        if (!member_take(scan, member, &token) || (event == JSON_EVENT_OPEN && !array_take(scan, member, &token)))
            return false;
        size_t size = (size_t)(lexer->at - token.start);
        if (member < MEMBER_COUNT) {
            scan->members[member] = (struct json_span){.text = token.start, .size = size};
        } else {
            if (scan->extra_count < BATCH_EXTRAS_MAX) {
                const char *name = token.key.text - 1; /* including its opening quote */
                scan->extras[scan->extra_count] = (struct json_span){.text = name, .size = (size_t)(lexer->at - name)};
            }
            scan->extra_count++;
        }
    }
    if (event == JSON_EVENT_FAILED)
        return false;
    json_lex_space(lexer);
    return lexer->at == lexer->end || json_lex_fail(lexer, lexer->at, "unexpected text after the object");
}

static bool line_scan(struct batch_scan *scan)
{
    static const enum batch_member required[] = {MEMBER_TYPE, MEMBER_BASE_TIME_NS, MEMBER_COLUMNS};
    struct json_lexer *lexer = &scan->lexer;
    if (lexer->at == lexer->end || lexer->end[-1] != '}')
        return json_lex_fail(lexer, lexer->end, "the line does not end with '}'");
    if (!members_scan(scan))
        return false;
    for (size_t i = 0; i < sizeof required / sizeof *required; i++)
        if (scan->members[required[i]].size == 0)
            return json_lex_fail(lexer, lexer->start, "%s is missing", batch_member_names[required[i]]);
    return scan->has_cells || cells_scan_deferred(scan);
}

static unsigned catalogue_columns_max(void)
{
    unsigned most = 0;
    for (int type = 0; type < RECORD_TYPE_COUNT; type++)
        if (record_catalogue[type].column_count > most)
            most = record_catalogue[type].column_count;
    return most;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

gpufl_status batch_scan_line(struct batch_scan *scan, struct batch_view *view, const char *line, size_t size)
{
    view->info = NULL;
    view->version = view->batch_id = view->base_time_ns = 0;
    view->seq = -1;
    view->row_count = 0;
    view->session_id = NULL;
    view->session_id_size = 0;
    /* Not zeroed completely: the column table is large and filled as needed. */
    scan->view = view;
    scan->column_count = scan->extra_count = 0;
    scan->has_unknown_columns = scan->has_cells = false;
    scan->status = GPUFL_E_DAMAGED;
    memset(scan->members, 0, sizeof scan->members);
    while (size && is_space(line[size - 1]))
        size--;
    json_lex_init(&scan->lexer, line, size);
    if (size > LINE_SIZE_MAX) {
        json_lex_fail(&scan->lexer, line, "line of more than %zu MiB", LINE_SIZE_MAX >> 20);
        return GPUFL_E_DAMAGED;
    }
    if (!view->columns && !(view->columns = calloc(catalogue_columns_max(), sizeof *view->columns))) {
        json_lex_fail(&scan->lexer, line, "out of memory");
        return GPUFL_E_NO_MEMORY;
    }
    return line_scan(scan) ? GPUFL_OK : scan->status;
}

gpufl_status batch_decode(struct batch_view *view, const char *line, size_t size, struct json_error *error)
{
    struct batch_scan scan;
    gpufl_status status = batch_scan_line(&scan, view, line, size);
    if (status == GPUFL_OK)
        return GPUFL_OK;
    view->row_count = 0;
    if (error) {
        error->line = 1;
        error->column = (uint32_t)(scan.lexer.reason_at - line) + 1;
        snprintf(error->text, sizeof error->text, "%s", scan.lexer.reason);
    }
    return status;
}

void batch_view_free(struct batch_view *view)
{
    free(view->columns);
    free(view->storage);
    *view = (struct batch_view){0};
}
