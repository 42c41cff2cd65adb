/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the marked form of the report to HTML, line by line. */
#include "analysis/report_html.h"
#include "analysis/report_page.h"

void html_text(struct bytes *out, const char *text, size_t size)
{
    for (const char *end = text + size; text < end; text++) {
        switch (*text) {
        case '&':
            bytes_append_text(out, "&amp;");
            break;
        case '<':
            bytes_append_text(out, "&lt;");
            break;
        case '>':
            bytes_append_text(out, "&gt;");
            break;
        case '"':
            bytes_append_text(out, "&quot;");
            break;
        case '\'':
            bytes_append_text(out, "&#39;");
            break;
        default:
            /* Ignore marks without a meaning here, and bytes that cannot be in text. */
            if ((unsigned char)*text >= ' ' && *text != 0x7f)
                bytes_append_char(out, *text);
        }
    }
}

/* The open element, which is closed when another one begins. */
enum block { BLOCK_NONE, BLOCK_PRE, BLOCK_TABLE, BLOCK_BARS };
struct writer {
    struct bytes *out;
    enum block block;
    bool is_in_section, is_heading; /* is_heading: the table's next row has the headings */
};

static void block_enter(struct writer *writer, enum block block)
{
    static const char *const opens[] = {"", "<pre>", "<div class=\"scroll\"><table>",
                                        "<div class=\"scroll\"><table class=\"bars\">"};
    static const char *const closes[] = {"", "</pre>\n", "</table></div>\n", "</table></div>\n"};
    if (writer->block == block)
        return;
    bytes_append_text(writer->out, closes[writer->block]);
    bytes_append_text(writer->out, opens[block]);
    writer->block = block;
}

/* Text with MARK_STYLE inside. */
static void styled(struct bytes *out, const char *text, size_t size)
{
    static const char *const classes[] = {"strong", "dim", "alarm", "caution"};
    const char *end = text + size, *from = text;
    bool is_open = false;
    for (; text < end; text++) {
        if (*text != MARK_STYLE && *text != MARK_STYLE_END)
            continue;
        html_text(out, from, (size_t)(text - from));
        from = text + 1;
        if (is_open)
            bytes_append_text(out, "</span>");
        is_open = *text == MARK_STYLE && from < end && *from >= '0' && *from <= '3';
        if (is_open)
            bytes_append_format(out, "<span class=\"%s\">", classes[*from++ - '0']);
    }
    html_text(out, from < end ? from : end, from < end ? (size_t)(end - from) : 0);
    if (is_open)
        bytes_append_text(out, "</span>");
}

static void trim(const char **text, size_t *size)
{
    for (; *size && **text == ' '; (*text)++)
        (*size)--;
    for (; *size && (*text)[*size - 1] == ' ';)
        (*size)--;
}

static void title(struct writer *writer, const char *line, size_t size)
{
    const char *end = memchr(line, MARK_TITLE_END, size);
    size_t title_size = end ? (size_t)(end - line) : size;
    block_enter(writer, BLOCK_NONE);
    bytes_append_text(writer->out, writer->is_in_section ? "</section>\n<section><h2>" : "<section><h2>");
    writer->is_in_section = true;
    html_text(writer->out, line, title_size);
    if (end) {
        const char *rest = end + 1;
        size_t rest_size = size - title_size - 1;
        trim(&rest, &rest_size);
        bytes_append_text(writer->out, rest_size ? " <span class=\"note\">" : "");
        styled(writer->out, rest, rest_size);
        bytes_append_text(writer->out, rest_size ? "</span>" : "");
    }
    bytes_append_text(writer->out, "</h2>\n");
}

static void bar_cell(struct bytes *out, const char *text, size_t size)
{
    unsigned parts = 0;
    for (size_t i = 0; i < size && text[i] >= '0' && text[i] <= '9' && parts < 1000; i++)
        parts = parts * 10 + (unsigned)(text[i] - '0');
    bytes_append_format(out,
                        "<td class=\"bar\"><svg viewBox=\"0 0 1000 10\" preserveAspectRatio=\"none\" "
                        "aria-hidden=\"true\"><rect width=\"%u\" height=\"10\"/></svg></td>",
                        parts < 1000 ? parts : 1000);
}

static void cell(struct writer *writer, char mark, const char *text, size_t size)
{
    struct bytes *out = writer->out;
    const char *tag = writer->is_heading ? "th" : "td";
    if (mark == MARK_BAR) {
        bar_cell(out, text, size);
        return;
    }
    bytes_append_format(out, mark == MARK_NUMBER ? "<%s class=\"n\">" : "<%s>", tag);
    for (; size && *text == ' '; text++, size--)
        bytes_append_text(out, "&nbsp;");
    const char *whole = memchr(text, MARK_WHOLE, size);
    if (whole) {
        bytes_append_text(out, "<details><summary>");
        html_text(out, text, (size_t)(whole - text));
        bytes_append_text(out, "</summary>");
        html_text(out, whole + 1, size - (size_t)(whole + 1 - text));
        bytes_append_text(out, "</details>");
    } else {
        styled(out, text, size);
    }
    bytes_append_format(out, "</%s>", tag);
}

/* line: after the mark of the row. */
static void row(struct writer *writer, const char *line, size_t size)
{
    static const char starts[] = {MARK_CELL, MARK_NUMBER, MARK_BAR};
    bytes_append_text(writer->out, "<tr>");
    const char *end = line + size;
    while (line < end) {
        char mark = *line++;
        const char *from = line;
        while (line < end && !memchr(starts, *line, sizeof starts))
            line++;
        cell(writer, mark, from, (size_t)(line - from));
    }
    bytes_append_text(writer->out, "</tr>\n");
    writer->is_heading = false;
}

/* Lines of a listing have blanks that put things below each other. */
static bool is_listing(const char *line, size_t size)
{
    return size && (*line == ' ' || memmem(line, size, "  ", 2));
}

static void plain_line(struct writer *writer, const char *line, size_t size)
{
    enum { INDENT = 3 }; /* of all lines below a title */
    bool is_prose = memchr(line, MARK_PROSE, size) != NULL;
    for (size_t i = 0; !is_prose && i < INDENT && size && *line == ' '; i++, line++)
        size--;
    if (is_prose || (writer->block != BLOCK_PRE && !is_listing(line, size))) {
        block_enter(writer, BLOCK_NONE);
        trim(&line, &size);
        bytes_append_text(writer->out, "<p>");
        styled(writer->out, line, size);
        bytes_append_text(writer->out, "</p>\n");
        return;
    }
    block_enter(writer, BLOCK_PRE);
    styled(writer->out, line, size);
    bytes_append_char(writer->out, '\n');
}

static void line_write(struct writer *writer, const char *line, size_t size)
{
    switch (size ? *line : '\0') {
    case MARK_TITLE:
        title(writer, line + 1, size - 1);
        break;
    case MARK_TABLE:
        block_enter(writer, BLOCK_NONE);
        block_enter(writer, BLOCK_TABLE);
        writer->is_heading = true;
        break;
    case MARK_TABLE_END:
        block_enter(writer, BLOCK_NONE);
        writer->is_heading = false;
        break;
    case MARK_BARS:
        block_enter(writer, BLOCK_BARS);
        row(writer, line + 1, size - 1);
        break;
    case MARK_ROW:
        row(writer, line + 1, size - 1);
        break;
    case '\0':
        block_enter(writer, BLOCK_NONE);
        break;
    default:
        plain_line(writer, line, size);
    }
}

void html_sections(struct bytes *out, const char *marked, size_t size)
{
    struct writer writer = {.out = out};
    for (const char *end = marked + size; marked < end;) {
        const char *line_end = memchr(marked, '\n', (size_t)(end - marked));
        size_t line_size = line_end ? (size_t)(line_end - marked) : (size_t)(end - marked);
        line_write(&writer, marked, line_size);
        marked += line_size + (line_end != NULL);
    }
    block_enter(&writer, BLOCK_NONE);
    if (writer.is_in_section)
        bytes_append_text(out, "</section>\n");
}
