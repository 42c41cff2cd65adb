/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of the text report: columns are measured, one is cut to fit, and others may be dropped. */
#include "analysis/report_page.h"

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

void table_heads(struct table *table, const char *const *texts)
{
    for (unsigned i = 0; i < table->columns; i++)
        table_cell(table, texts[i]);
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

struct layout {
    size_t widths[table_columns_max];
    size_t rows;
    unsigned hidden; /* bit mask of columns */
};

enum { next_line_indent = 6 };

static struct cell_text name_at(const struct table *table, size_t row)
{
    return cell_at(table, row * table->columns + table->stretch);
}

/* True if another kernel of the table has the same name in that form. */
static bool is_ambiguous(const struct table *table, struct page *page, size_t rows, size_t row,
                         enum kernel_name_form form, size_t columns)
{
    struct bytes name = {0}, other = {0};
    struct cell_text cell = name_at(table, row);
    text_kernel_name_as(&name, cell.text, cell.size, form, columns);
    bool is_same = false;
    for (size_t i = 1; i < rows && !is_same; i++) {
        struct cell_text rival = name_at(table, i);
        if (i == row || (rival.size == cell.size && !memcmp(rival.text, cell.text, cell.size)))
            continue;
        bytes_clear(&other);
        text_kernel_name_as(&other, rival.text, rival.size, form, columns);
        is_same = other.size == name.size && !memcmp(other.data, name.data, name.size);
    }
    page->out->failed |= name.failed || other.failed;
    bytes_free(&name);
    bytes_free(&other);
    return is_same;
}

/* A kernel name that does not fit in its column is printed without namespaces and parameters, or else on the next line:
 * the names of generated kernels look alike when they are cut to a few columns. If two kernels still look alike, both
 * names are printed in full on several lines. */
static void name_print(const struct table *table, struct page *page, size_t rows, size_t row, size_t width)
{
    enum { simplify_always = 1 };
    struct cell_text cell = name_at(table, row);
    struct bytes name = {0};
    enum kernel_name_form form = KERNEL_NAME_CUT;
    size_t room = page->columns - next_line_indent;
    text_kernel_name_as(&name, cell.text, cell.size, KERNEL_NAME_SIMPLE, simplify_always);
    if (text_columns(name.data, name.size) <= width &&
        !is_ambiguous(table, page, rows, row, KERNEL_NAME_SIMPLE, simplify_always)) {
        bytes_append(page->out, name.data, name.size);
    } else {
        while (form > KERNEL_NAME_WHOLE && is_ambiguous(table, page, rows, row, form, room))
            form--;
        bytes_clear(&name);
        text_kernel_name_as(&name, cell.text, cell.size, form, room);
        while (page->out->size && page->out->data[page->out->size - 1] == ' ')
            page->out->size--;
        bytes_append_char(page->out, '\n');
        page_indent(page, next_line_indent);
        page_wrapped(page, next_line_indent, bytes_text(&name));
        page->out->size -= page->out->size > 0; /* its LF */
    }
    page->out->failed |= name.failed;
    bytes_free(&name);
}

static void row_print(const struct table *table, struct page *page, size_t row, const struct layout *layout)
{
    bytes_append_text(page->out, "  ");
    size_t pending = 1; /* pending blanks, so that no line ends in one */
    bool is_first = true;
    for (unsigned column = 0; column < table->columns; column++) {
        if (layout->hidden >> column & 1)
            continue;
        struct cell_text cell = cell_at(table, row * table->columns + column);
        size_t width = layout->widths[column], columns = cell.columns < width ? cell.columns : width;
        bool is_left = table->left >> column & 1, is_too_wide = cell.columns > width;
        pending += (is_first ? 0 : 2) + (is_left ? 0 : width - columns);
        is_first = false;
        if (is_too_wide && table->has_kernel_names && !row)
            continue; /* names below need no heading */
        if (cell.size) {
            page_indent(page, pending);
            pending = 0;
            if (is_too_wide && table->has_kernel_names)
                name_print(table, page, layout->rows, row, width);
            else if (is_too_wide && table->has_metric_names)
                text_metric_name(page->out, cell.text, cell.size, width);
            else
                text_cut(page->out, cell.text, cell.size, is_too_wide ? width : 0);
        } else {
            pending += columns;
        }
        pending += is_left ? width - columns : 0;
    }
    bytes_append_char(page->out, '\n');
}

/* Columns used by all but the stretching one, including the blanks before it. */
static size_t used_columns(const struct table *table, const struct layout *layout)
{
    size_t used = 3;
    for (unsigned column = 0; column < table->columns; column++)
        if (!(layout->hidden >> column & 1))
            used += (column == table->stretch ? 0 : layout->widths[column]) + (column ? 2 : 0);
    return used;
}

static void layout_fit(const struct table *table, const struct page *page, struct layout *layout)
{
    enum { stretch_wanted = 30, stretch_min = 12 };
    size_t *stretch = &layout->widths[table->stretch];
    size_t wanted = *stretch < stretch_wanted ? *stretch : stretch_wanted;
    size_t used = used_columns(table, layout);
    if (table->has_kernel_names)
        used -= 2; /* a name may be on a separate line */
    wanted = table->has_kernel_names ? 0 : wanted;
    for (unsigned i = 0; i < table_columns_max && table->drop[i] && used + wanted > page->columns; i++) {
        layout->hidden |= 1u << table->drop[i];
        used -= layout->widths[table->drop[i]] + 2;
    }
    used = used_columns(table, layout);
    size_t least = table->has_kernel_names ? 0 : stretch_min;
    size_t room = used + least < page->columns ? page->columns - used : least;
    *stretch = *stretch > room ? room : *stretch;
}

/* A long kernel name is shortened, followed by the full name. */
static void cell_mark(const struct table *table, struct page *page, size_t rows, size_t row, unsigned column)
{
    enum { name_columns = 80, whole_columns = 4000 };
    struct cell_text cell = cell_at(table, row * table->columns + column);
    bool is_left = column == table->stretch || table->left >> column & 1;
    enum kernel_name_form form = KERNEL_NAME_CUT;
    bytes_append_char(page->out, is_left ? MARK_CELL : MARK_NUMBER);
    if (column == table->stretch && table->has_kernel_names && cell.columns > name_columns) {
        while (form > KERNEL_NAME_WHOLE && is_ambiguous(table, page, rows, row, form, name_columns))
            form--;
        text_kernel_name_as(page->out, cell.text, cell.size, form, name_columns);
        bytes_append_char(page->out, MARK_WHOLE);
    }
    text_cut(page->out, cell.text, cell.size, whole_columns);
}

/* The stretching column, which has the names, comes first so that it stays visible on a narrow page. */
static void table_mark(const struct table *table, struct page *page, size_t rows)
{
    bytes_append_format(page->out, "%c\n", MARK_TABLE);
    for (size_t row = 0; row < rows; row++) {
        bytes_append_char(page->out, MARK_ROW);
        cell_mark(table, page, rows, row, table->stretch);
        for (unsigned column = 0; column < table->columns; column++)
            if (column != table->stretch)
                cell_mark(table, page, rows, row, column);
        bytes_append_char(page->out, '\n');
    }
    bytes_append_format(page->out, "%c\n", MARK_TABLE_END);
}

void table_print(struct table *table, struct page *page)
{
    struct layout layout = {.rows = 0};
    if (!table->text.failed && !table->ends.failed)
        layout.rows = table->ends.size / sizeof(size_t) / table->columns;
    else
        page->out->failed = true;
    for (size_t row = 0; row < layout.rows; row++)
        for (unsigned column = 0; column < table->columns; column++) {
            size_t columns = cell_at(table, row * table->columns + column).columns;
            layout.widths[column] = columns > layout.widths[column] ? columns : layout.widths[column];
        }
    if (!page->is_wide)
        layout_fit(table, page, &layout);
    if (page->form == PAGE_MARKED)
        table_mark(table, page, layout.rows);
    for (size_t row = 0; row < layout.rows && page->form == PAGE_TEXT; row++)
        row_print(table, page, row, &layout);
    table_free(table);
}

void table_free(struct table *table)
{
    bytes_free(&table->text);
    bytes_free(&table->ends);
}
