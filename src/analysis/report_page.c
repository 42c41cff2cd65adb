/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/report_page.h"

#include <stdio.h>
#include <stdlib.h>

void page_styled(struct page *page, enum page_style style, const char *text)
{
    static const char *const codes[] = {"\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[33m"};
    if (page->form == PAGE_MARKED) {
        bytes_append_format(page->out, "%c%u%s%c", MARK_STYLE, (unsigned)style, text, MARK_STYLE_END);
        return;
    }
    if (page->use_color)
        bytes_append_text(page->out, codes[style]);
    bytes_append_text(page->out, text);
    if (page->use_color)
        bytes_append_text(page->out, "\x1b[0m");
}

void page_title(struct page *page, const char *title)
{
    if (page->form == PAGE_MARKED) {
        bytes_append_format(page->out, "%c%s%c", MARK_TITLE, title, MARK_TITLE_END);
        return;
    }
    bytes_append_text(page->out, "\n ");
    page_styled(page, STYLE_TITLE, title);
}

static void prose_mark(struct page *page)
{
    if (page->form == PAGE_MARKED)
        bytes_append_char(page->out, MARK_PROSE);
}

void page_bar_row(struct page *page, const char *label, double fraction, const char *value, const char *note)
{
    double shown = fraction > 0 ? (fraction < 1 ? fraction : 1) : 0;
    bytes_append_format(page->out, "%c%c%s%c%s%c%.0f%c%s%c%s\n", MARK_BARS, MARK_CELL, label, MARK_NUMBER,
                        quantity_percent(fraction).text, MARK_BAR, 1000 * shown, MARK_NUMBER, value, MARK_CELL, note);
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

static void not_recorded(struct bytes *out, const struct session_capability *capability)
{
    const char *why = *capability->message ? capability->message : capability->status;
    bytes_append_text(out, "not recorded (");
    text_escape(out, why, strlen(why));
    bytes_append_text(out, ")");
}

void page_incomplete(struct page *page, const char *feature, const char *what)
{
    const struct session_capability *capability = capability_find(page->analysis->model, feature);
    if (!capability || !capability->is_requested || is_collected(capability))
        return;
    struct bytes line = {0};
    bytes_append_format(&line, "%s: ", what);
    not_recorded(&line, capability);
    page_note(page, bytes_text(&line));
    page->out->failed |= line.failed;
    bytes_free(&line);
}

void page_missing(struct page *page, const char *title, const char *feature, const char *what)
{
    const struct session_model *model = page->analysis->model;
    const struct session_capability *capability = capability_find(model, feature);
    struct bytes why = {0};
    bool is_granted = !capability || is_collected(capability), is_known = *model->job.engine;
    if (!page->analysis->has_kernel_engine && is_known) {
        bytes_append_text(&why, "not recorded (engine ");
        text_escape(&why, model->job.engine, strlen(model->job.engine));
        bytes_append_format(&why, " has no %s)", what);
    } else if (!page->analysis->has_kernel_engine) {
        bytes_append_text(&why, "not recorded (engine unknown)");
    } else if (!is_granted) {
        not_recorded(&why, capability);
    } else {
        bytes_append_text(&why, "none");
    }
    page_title_note(page, title, bytes_text(&why));
    page->out->failed |= why.failed;
    bytes_free(&why);
}

void page_indent(struct page *page, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bytes_append_char(page->out, ' ');
}

/* The word at text, including a unit that follows a number: "1.32 s", "24.6 %". */
static size_t word_size(const char *text)
{
    static const char units[] = " ns us ms s min h % B kB MB GB TB KiB MiB GiB kB/s MB/s GB/s TB/s MHz W J kJ °C ";
    size_t size = strcspn(text, " ");
    if (!size || text[size] != ' ' || text[size - 1] < '0' || text[size - 1] > '9')
        return size;
    size_t next = strcspn(text + size + 1, " .,;:)");
    for (const char *at = units + 1; next && *at; at += strcspn(at, " ") + 1)
        if (strcspn(at, " ") == next && !memcmp(at, text + size + 1, next))
            return size + 1 + strcspn(text + size + 1, " ");
    return size;
}

/* Prints words at column `at`, later lines indented; returns the column after them. */
static size_t words_append(struct page *page, size_t at, size_t indent, const char *text)
{
    for (bool is_first = true; *text; is_first = false) {
        size_t size = word_size(text);
        size_t width = text_columns(text, size);
        if (!is_first && at + 1 + width > page->columns) {
            bytes_append_char(page->out, '\n');
            page_indent(page, indent);
            at = indent;
        } else if (!is_first) {
            bytes_append_char(page->out, ' ');
            at++;
        }
        bytes_append(page->out, text, size);
        at += width;
        text += size + (text[size] == ' ');
    }
    return at;
}

size_t page_row_limit(const struct page *page, size_t narrow)
{
    if (page->form == PAGE_MARKED)
        return ROWS_PER_TOP * page->top;
    return page->is_wide ? SIZE_MAX : narrow;
}

void page_more(struct page *page, size_t count)
{
    if (count)
        bytes_append_format(page->out, "   and %zu more (%s shows all)\n", count,
                            page->form == PAGE_MARKED ? "`gpufl report --wide`" : "--wide");
}

struct page_list page_list_start(struct page *page, size_t indent, const char *lead)
{
    prose_mark(page);
    page_indent(page, indent);
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
        page_indent(list->page, list->indent);
        list->at = list->indent;
    } else if (list->count) {
        bytes_append_text(list->page->out, " · ");
        list->at += 3;
    }
    list->at = words_append(list->page, list->at, list->indent + 2, text);
    list->count++;
    free(text);
}

void page_list_end(struct page_list *list)
{
    bytes_append_char(list->page->out, '\n');
}

void page_wrapped(struct page *page, size_t indent, const char *text)
{
    prose_mark(page);
    words_append(page, indent, indent, text);
    bytes_append_char(page->out, '\n');
}

void page_note(struct page *page, const char *text)
{
    bytes_append_text(page->out, "   ");
    prose_mark(page);
    words_append(page, 3, 5, text);
    bytes_append_char(page->out, '\n');
}

void page_title_note(struct page *page, const char *title, const char *note)
{
    page_title(page, title);
    bytes_append_text(page->out, "   ");
    words_append(page, 1 + strlen(title) + 3, 3, note);
    bytes_append_char(page->out, '\n');
}

void page_line(struct page *page, const char *lead, const char *text)
{
    struct bytes line = {0};
    bytes_append_text(&line, lead);
    text_escape(&line, text, strlen(text));
    page_note(page, bytes_text(&line));
    page->out->failed = page->out->failed || line.failed;
    bytes_free(&line);
}

/* True for features whose own section reports that they are missing. */
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
