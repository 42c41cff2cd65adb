/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the sections of the text report: titles, tables with measured columns, wrapped lists, and texts for missing
 * data. */
#ifndef GPUFL_ANALYSIS_REPORT_PAGE_H
#define GPUFL_ANALYSIS_REPORT_PAGE_H

#include "analysis/analysis.h"
#include "analysis/metric_text.h"
#include "analysis/quantity.h"
#include "analysis/report.h"

enum {
    INSIGHTS_SHOWN = 8, /* the most important ones; the JSON report has all */
    ROWS_PER_TOP = 3    /* rows of a tree or of a list of tables, per row of a table (--top) */
};

/* PAGE_MARKED: the same text without a layout. Titles, tables, bars and running text are marked by control characters,
 * which no text of a session can contain because text_escape escapes them; report_html.c converts the result to
 * HTML. */
enum page_form { PAGE_TEXT, PAGE_MARKED };
enum page_mark {
    MARK_TITLE = 1, /* up to MARK_TITLE_END; the rest of the line belongs to the title */
    MARK_TITLE_END,
    MARK_TABLE, /* a line; followed by lines of MARK_ROW, the first one with headings, then MARK_TABLE_END */
    MARK_TABLE_END,
    MARK_BARS,       /* at the start of a row of a table of bars, which has no headings */
    MARK_BAR,        /* a cell: followed by parts per thousand */
    MARK_PROSE,      /* inside a line that may be wrapped */
    MARK_WHOLE,      /* in a cell: the full name follows the shortened one */
    MARK_STYLE = 14, /* followed by a digit of enum page_style, then text up to MARK_STYLE_END */
    MARK_STYLE_END,
    MARK_NUMBER = 29, /* starts a right-aligned cell */
    MARK_ROW,
    MARK_CELL /* starts any other cell */
};

struct page {
    struct bytes *out;
    enum page_form form;
    const struct analysis *analysis;
    size_t columns, top;
    bool is_wide, use_color;
};

struct page page_make(const struct analysis *analysis, const struct report_options *options, struct bytes *out);

/* Prints these sections (enum report_section; 0: all) in the report's order. report_text.c */
void page_sections(struct page *page, unsigned sections);

enum page_style { STYLE_TITLE, STYLE_DIM, STYLE_ALARM, STYLE_CAUTION };
void page_styled(struct page *page, enum page_style style, const char *text);
void page_title(struct page *page, const char *title); /* an empty line, then the title, no LF */
/* One line "TITLE  not recorded (...)", or "TITLE  none", for a section without data. feature: of capture_capabilities,
 * may be NULL. */
void page_missing(struct page *page, const char *title, const char *feature, const char *what);
/* After a section with incomplete data because a feature was not granted: "other copies: not recorded (...)". */
void page_incomplete(struct page *page, const char *feature, const char *what);
/* NULL: the session has no record of the feature. */
const struct session_capability *capability_find(const struct session_model *model, const char *feature);
/* Lines for requested features that were not granted and have no section, with the recorder's message. */
void page_refusals(struct page *page);
/* Items joined by " · ", wrapped, later lines indented. */
struct page_list {
    struct page *page;
    size_t indent, at, count;
};
struct page_list page_list_start(struct page *page, size_t indent, const char *lead);
void page_list_add(struct page_list *list, const char *format, ...) PRINTF_LIKE(2, 3);
void page_list_end(struct page_list *list);
/* One row of a table of bars. Marked form only: the text form has its own columns. */
void page_bar_row(struct page *page, const char *label, double fraction, const char *value, const char *note);
void page_wrapped(struct page *page, size_t indent, const char *text); /* the first line is indented already */
void page_note(struct page *page, const char *text); /* a sentence of a section, indented and wrapped */
void page_title_note(struct page *page, const char *title, const char *note); /* title and note on one line */
void page_line(struct page *page, const char *lead, const char *text);        /* a note; the text is escaped */
void page_indent(struct page *page, size_t count);
/* Row limit of a list that has no other limit: `narrow`, or none with --wide; in HTML it depends on --top. */
size_t page_row_limit(const struct page *page, size_t narrow);
void page_more(struct page *page, size_t count); /* after such a list: the number of rows not shown */

/* report_table.c. Cells are appended row by row, `columns` in each; row 0 is the header. One column is stretched or cut
 * to fit; if that is not enough, columns are dropped. */
enum { table_columns_max = 14 };
struct table {
    unsigned columns, stretch;
    unsigned left;         /* bit mask of left-aligned columns */
    bool has_kernel_names; /* in the stretching column, which is the last one */
    bool has_metric_names; /* in the stretching column */
    unsigned char
        drop[table_columns_max]; /* columns to drop on a narrow page, least important first; 0 ends the list */
    struct bytes text;
    struct bytes ends; /* size_t end offset of each cell in text */
};
void table_cell(struct table *table, const char *text);
void table_cell_bytes(struct table *table, const char *text, size_t size);
void table_heads(struct table *table, const char *const *texts);
void table_print(struct table *table, struct page *page); /* also frees the cells */
void table_free(struct table *table);

/* report_header.c: the identification that both `report` and `diff` print first. lead: before the first line;
 * with_session: also the session's id. */
void page_identity(struct page *page, const struct analysis *analysis, const char *lead, bool with_session);
void page_completeness(struct page *page, const struct analysis *analysis, size_t indent);

/* report_header.c, report_sections.c and report_system.c, in the order of the report. */
void section_header(struct page *page);
void section_time(struct page *page);
void section_kernels(struct page *page);
void section_kinds(struct page *page);     /* report_work.c; prints nothing if no kernel was timed */
void section_steps(struct page *page);     /* report_steps.c; prints nothing if no kernel was timed */
void section_operators(struct page *page); /* report_work.c; prints nothing if there are no operators */
void section_scopes(struct page *page);
void section_scope_kernels(struct page *page); /* report_work.c; prints nothing without kernels in scopes */
/* report_stalls.c: pieces of text, escaped. */
void page_path(struct bytes *out, const char *path); /* scope parts joined by " > " */
/* file.cu:12; columns: the file's name is cut to fit, the line number is not; 0: no limit */
void page_place(struct bytes *out, const char *file, uint32_t line, size_t columns);
void page_function_name(struct bytes *out, const char *name, uint32_t function_id, size_t columns);
/* report_stalls.c and report_deep.c: print nothing if the deep engines did not run. */
void section_stalls(struct page *page);
void section_code(struct page *page);
void section_counters(struct page *page);
void section_metrics(struct page *page);
void section_pm(struct page *page);
void section_sources(struct page *page);
void section_copies(struct page *page);
void section_syncs(struct page *page);
void section_memory(struct page *page);
void section_graphs(struct page *page);
void section_system(struct page *page);
void section_insights(struct page *page);
void section_losses(struct page *page);

/* Whether the session is complete, for header and JSON. */
bool session_is_complete(const struct session_model *model);
struct lost_words {
    char text[64]; /* "0", "at least 12 records", "an unknown number of records" */
};
struct lost_words lost_text(const struct session_model *model);
/* False if kernels ran but none was timed, because counters need tracing paused. */
bool session_has_kernel_times(const struct session_model *model);
/* For kernels that were not timed: "16 kernels counted (RangeProfiler does not time kernels)", escaped. */
void counted_text(const struct session_model *model, struct bytes *out);
struct slowdown_words {
    char text[64]; /* "slowed down by about 16 %"; "" if unknown */
};
struct slowdown_words slowdown_words(const struct analysis *analysis);

#endif
