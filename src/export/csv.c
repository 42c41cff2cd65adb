/* SPDX-License-Identifier: Apache-2.0 */
/* RFC 4180, UTF-8, one header line, LF. An empty field is an unknown value. */
#include "export/writers.h"

#include "format/json.h"

#include <string.h>

static void csv_text(struct bytes *out, const char *text)
{
    /* Text that a spreadsheet would run as a formula is prefixed with an apostrophe, as spreadsheets do. */
    bool is_formula = *text && strchr("=+-@\t\r", *text);
    if (!is_formula && !text[strcspn(text, "\",\r\n")]) {
        text_append_utf8(out, text, strlen(text));
        return;
    }
    bytes_append_text(out, is_formula ? "\"'" : "\"");
    for (const char *quote; (quote = strchr(text, '"')); text = quote + 1) {
        text_append_utf8(out, text, (size_t)(quote - text));
        bytes_append_text(out, "\"\"");
    }
    text_append_utf8(out, text, strlen(text));
    bytes_append_char(out, '"');
}

static void csv_value(struct bytes *out, const struct table_value *value, bool is_name)
{
    if (is_name && value->text)
        csv_text(out, value->text);
    else if (value->kind == VALUE_TEXT)
        csv_text(out, value->text);
    else if (value->kind == VALUE_INTEGER && !is_name) /* the id of a name that was not recorded is meaningless here */
        json_int(out, value->integer);
    else if (value->kind == VALUE_REAL)
        bytes_append_double(out, value->real);
}

void csv_write(struct export_sink *sink, const struct export_filter *filter, const struct export_table *table)
{
    struct table_source source = {.model = filter->model, .filter = filter};
    unsigned column_count = table_column_count(table);
    bool is_name[TABLE_COLUMNS_MAX];
    for (unsigned i = 0; i < column_count; i++) {
        struct table_column column = table_column(table, i);
        is_name[i] = column.kind == COLUMN_NAME;
        if (i)
            bytes_append_char(&sink->buffer, ',');
        bytes_append_text(&sink->buffer, column.name);
    }
    bytes_append_char(&sink->buffer, '\n');
    size_t count = table->count(filter->model);
    for (size_t row = 0; row < count; row++) {
        struct table_value values[TABLE_COLUMNS_MAX];
        memset(values, 0, column_count * sizeof *values);
        if (!table->row(&source, row, values))
            continue;
        for (unsigned i = 0; i < column_count; i++) {
            if (i)
                bytes_append_char(&sink->buffer, ',');
            csv_value(&sink->buffer, &values[i], is_name[i]);
        }
        bytes_append_char(&sink->buffer, '\n');
        if (!sink_step(sink))
            return;
    }
}
