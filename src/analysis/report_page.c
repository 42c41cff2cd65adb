/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/report_page.h"

#include <stdio.h>
#include <stdlib.h>

void page_styled(struct page *page, enum page_style style, const char *text)
{
    static const char *const codes[] = {"\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[33m"};
    if (page->use_color)
        bytes_append_text(page->out, codes[style]);
    bytes_append_text(page->out, text);
    if (page->use_color)
        bytes_append_text(page->out, "\x1b[0m");
}

void page_title(struct page *page, const char *title)
{
    bytes_append_text(page->out, "\n ");
    page_styled(page, STYLE_TITLE, title);
}

const struct session_capability *capability_find(const struct session_model *model, const char *feature)
{
    for (size_t i = 0; feature && i < model->capability_count; i++)
        if (!strcmp(model->capabilities[i].feature, feature))
            return &model->capabilities[i];
    return NULL;
}

static bool is_collected(const struct session_capability *capability)
{
    return !strcmp(capability->status, "collected") || !strcmp(capability->status, "enabled_no_data") ||
           !strcmp(capability->status, "expected_no_data");
}

static void not_recorded(struct page *page, const struct session_capability *capability)
{
    const char *why = *capability->message ? capability->message : capability->status;
    bytes_append_text(page->out, "not recorded (");
    text_escape(page->out, why, strlen(why));
    bytes_append_text(page->out, ")\n");
}

void page_incomplete(struct page *page, const char *feature, const char *what)
{
    const struct session_capability *capability = capability_find(page->analysis->model, feature);
    if (!capability || !capability->is_requested || is_collected(capability))
        return;
    bytes_append_format(page->out, "   %s: ", what);
    not_recorded(page, capability);
}

void page_missing(struct page *page, const char *title, const char *feature, const char *what)
{
    const struct session_model *model = page->analysis->model;
    const struct session_capability *capability = capability_find(model, feature);
    page_title(page, title);
    bytes_append_text(page->out, "   ");
    bool is_granted = !capability || is_collected(capability);
    if (!page->analysis->has_kernel_engine) {
        bool is_known = *model->job.engine;
        bytes_append_text(page->out, "not recorded (");
        if (is_known)
            bytes_append_text(page->out, "engine ");
        text_escape(page->out, is_known ? model->job.engine : "engine unknown",
                    strlen(is_known ? model->job.engine : "engine unknown"));
        if (is_known)
            bytes_append_format(page->out, " has no %s", what);
        bytes_append_text(page->out, ")\n");
    } else if (!is_granted) {
        not_recorded(page, capability);
    } else {
        bytes_append_text(page->out, "none\n");
    }
}

static void indent_append(struct bytes *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bytes_append_char(out, ' ');
}

struct page_list page_list_start(struct page *page, size_t indent, const char *lead)
{
    indent_append(page->out, indent);
    bytes_append_text(page->out, lead);
    size_t lead_columns = text_columns(lead, strlen(lead));
    return (struct page_list){page, indent + lead_columns, indent + lead_columns, 0};
}

void page_list_add(struct page_list *list, const char *format, ...)
{
    char *text;
    va_list args;
    va_start(args, format);
    int size = vasprintf(&text, format, args);
    va_end(args);
    if (size < 0) {
        list->page->out->failed = true;
        return;
    }
    size_t width = text_columns(text, (size_t)size);
    if (list->count && list->at + 3 + width > list->page->columns) {
        bytes_append_char(list->page->out, '\n');
        indent_append(list->page->out, list->indent);
        list->at = list->indent;
    } else if (list->count) {
        bytes_append_text(list->page->out, " · ");
        list->at += 3;
    }
    bytes_append(list->page->out, text, (size_t)size);
    list->at += width;
    list->count++;
    free(text);
}

void page_list_end(struct page_list *list)
{
    bytes_append_char(list->page->out, '\n');
}

void page_wrapped(struct page *page, size_t indent, const char *text)
{
    size_t at = indent;
    for (bool is_first = true; *text; is_first = false) {
        size_t size = strcspn(text, " ");
        size_t width = text_columns(text, size);
        if (!is_first && at + 1 + width > page->columns) {
            bytes_append_char(page->out, '\n');
            indent_append(page->out, indent);
            at = indent;
        } else if (!is_first) {
            bytes_append_char(page->out, ' ');
            at++;
        }
        bytes_append(page->out, text, size);
        at += width;
        text += size + (text[size] == ' ');
    }
    bytes_append_char(page->out, '\n');
}

void page_line(struct page *page, const char *lead, const char *text)
{
    struct bytes line = {0};
    bytes_append_text(&line, lead);
    text_escape(&line, text, strlen(text));
    bytes_append_text(page->out, "   ");
    page_wrapped(page, 5, bytes_text(&line));
    page->out->failed = page->out->failed || line.failed;
    bytes_free(&line);
}

/* Its section says why it is not there. */
static bool has_section(const char *feature)
{
    static const char *const features[] = {"kernel_events", "memcpy_activity", "sync_activity", "pm_sampling"};
    for (size_t i = 0; i < sizeof features / sizeof *features; i++)
        if (!strcmp(feature, features[i]))
            return true;
    return false;
}

void page_refusals(struct page *page)
{
    const struct session_model *model = page->analysis->model;
    for (size_t i = 0; i < model->capability_count; i++) {
        const struct session_capability *capability = &model->capabilities[i];
        if (!capability->is_requested || !strcmp(capability->status, "collected") || !*capability->message ||
            has_section(capability->feature))
            continue;
        struct bytes lead = {0};
        text_escape(&lead, capability->feature, strlen(capability->feature));
        bytes_append_text(&lead, " ");
        text_escape(&lead, capability->status, strlen(capability->status));
        bytes_append_text(&lead, ": ");
        page_line(page, bytes_text(&lead), capability->message);
        bytes_free(&lead);
    }
}

void table_cell_bytes(struct table *table, const char *text, size_t size)
{
    bytes_append(&table->text, text, size);
    size_t end = table->text.size;
    bytes_append(&table->ends, &end, sizeof end);
}

void table_cell(struct table *table, const char *text)
{
    table_cell_bytes(table, text, strlen(text));
}

struct cell_text {
    const char *text;
    size_t size, columns;
};

static struct cell_text cell_at(const struct table *table, size_t index)
{
    size_t from = 0, to;
    if (index)
        memcpy(&from, table->ends.data + (index - 1) * sizeof from, sizeof from);
    memcpy(&to, table->ends.data + index * sizeof to, sizeof to);
    const char *text = table->text.data ? table->text.data + from : "";
    return (struct cell_text){text, to - from, text_columns(text, to - from)};
}

/* A kernel name that does not fit in its column even when shortened gets the next line to itself: cut
 * to a few columns, the names of generated kernels all look alike. */
static void name_print(struct page *page, const struct cell_text *cell, size_t width)
{
    enum { next_line_indent = 6 };
    struct bytes name = {0};
    text_kernel_name(&name, cell->text, cell->size, width);
    struct bytes roomy = {0};
    text_kernel_name(&roomy, cell->text, cell->size, page->columns - next_line_indent);
    if (text_columns(roomy.data, roomy.size) > width && page->columns > width + next_line_indent) {
        while (page->out->size && page->out->data[page->out->size - 1] == ' ')
            page->out->size--;
        bytes_append_char(page->out, '\n');
        indent_append(page->out, next_line_indent);
        bytes_append(page->out, roomy.data, roomy.size);
    } else {
        bytes_append(page->out, name.data, name.size);
    }
    page->out->failed |= name.failed || roomy.failed;
    bytes_free(&name);
    bytes_free(&roomy);
}

static void row_print(const struct table *table, struct page *page, size_t row, const size_t *widths)
{
    bytes_append_text(page->out, "  ");
    size_t pending = 0; /* blanks owed, so that no line ends in one */
    for (unsigned column = 0; column < table->columns; column++) {
        struct cell_text cell = cell_at(table, row * table->columns + column);
        size_t width = widths[column], columns = cell.columns < width ? cell.columns : width;
        bool is_left = table->left >> column & 1;
        pending += column ? 2 : 1;
        pending += is_left ? 0 : width - columns;
        if (cell.size) {
            indent_append(page->out, pending);
            pending = 0;
            if (cell.columns > width && table->has_kernel_names)
                name_print(page, &cell, width);
            else
                text_cut(page->out, cell.text, cell.size, cell.columns > width ? width : 0);
        } else {
            pending += columns;
        }
        pending += is_left ? width - columns : 0;
    }
    bytes_append_char(page->out, '\n');
}

void table_print(struct table *table, struct page *page)
{
    size_t widths[table_columns_max] = {0}, used = 3, rows = 0;
    if (!table->text.failed && !table->ends.failed)
        rows = table->ends.size / sizeof(size_t) / table->columns;
    else
        page->out->failed = true;
    for (size_t row = 0; row < rows; row++)
        for (unsigned column = 0; column < table->columns; column++) {
            size_t columns = cell_at(table, row * table->columns + column).columns;
            widths[column] = columns > widths[column] ? columns : widths[column];
        }
    for (unsigned column = 0; column < table->columns; column++)
        used += column == table->stretch ? (column ? 2 : 0) : widths[column] + (column ? 2 : 0);
    size_t room = used + 12 < page->columns ? page->columns - used : 12;
    if (!page->is_wide && widths[table->stretch] > room)
        widths[table->stretch] = room;
    for (size_t row = 0; row < rows; row++)
        row_print(table, page, row, widths);
    bytes_free(&table->text);
    bytes_free(&table->ends);
}
