/* SPDX-License-Identifier: Apache-2.0 */
/* What the sections of the text report share: titles, tables with measured
 * columns, wrapped lists, and the words for missing data. */
#ifndef GPUFL_ANALYSIS_REPORT_PAGE_H
#define GPUFL_ANALYSIS_REPORT_PAGE_H

#include "analysis/analysis.h"
#include "analysis/metric_text.h"
#include "analysis/quantity.h"
#include "analysis/report.h"

enum {
    INSIGHTS_SHOWN = 8, /* the most valuable ones; the JSON report has all */
    ROWS_PER_TOP = 3    /* rows of a tree or of a list of tables, for each row of a table (--top) */
};

/* PAGE_MARKED: the same texts without a layout. Titles, tables, bars and running text are marked by control characters,
 * which no text of a session can contain because text_escape spells them out; report_html.c makes a page of it. */
enum page_form { PAGE_TEXT, PAGE_MARKED };
enum page_mark {
    MARK_TITLE = 1, /* up to MARK_TITLE_END; the rest of the line belongs to the title */
    MARK_TITLE_END,
    MARK_TABLE, /* a line; then lines of MARK_ROW, the first one with headings; then MARK_TABLE_END */
    MARK_TABLE_END,
    MARK_BARS,       /* at the start of a row of a table of bars, which has no headings */
    MARK_BAR,        /* a cell: parts per thousand follow */
    MARK_PROSE,      /* somewhere in a line that may be wrapped */
    MARK_WHOLE,      /* in a cell: the whole name follows what is shown of it */
    MARK_STYLE = 14, /* a digit of enum page_style follows, then text up to MARK_STYLE_END */
    MARK_STYLE_END,
    MARK_NUMBER = 29, /* starts a cell that is aligned to the right */
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
/* Below a section that has something of a feature which was not granted: "other copies: not recorded (...)". */
void page_incomplete(struct page *page, const char *feature, const char *what);
/* NULL: the session says nothing of it. */
const struct session_capability *capability_find(const struct session_model *model, const char *feature);
/* Lines with the requested features that were not granted and have no section, in the recorder's words. */
void page_refusals(struct page *page);
/* Items joined by " · ", wrapped, later lines indented. */
struct page_list {
    struct page *page;
    size_t indent, at, count;
};
struct page_list page_list_start(struct page *page, size_t indent, const char *lead);
void page_list_add(struct page_list *list, const char *format, ...) PRINTF_LIKE(2, 3);
void page_list_end(struct page_list *list);
/* One row of a table of bars. Marked form only: text has columns of its own. */
void page_bar_row(struct page *page, const char *label, double fraction, const char *value, const char *note);
void page_wrapped(struct page *page, size_t indent, const char *text); /* the first line is indented already */
void page_note(struct page *page, const char *text);                   /* a sentence of a section, indented, wrapped */
void page_title_note(struct page *page, const char *title, const char *note); /* title and note on one line */
void page_line(struct page *page, const char *lead, const char *text);        /* a note; the text is escaped */
void page_indent(struct page *page, size_t count);
/* Rows of a list that has no other limit: narrow of them, all where everything is asked for. A page in HTML stays small. */
size_t page_row_limit(const struct page *page, size_t narrow);
void page_more(struct page *page, size_t count); /* below such a list: rows that are not shown */

/* report_table.c. Cells are appended row by row, `columns` of them; row 0 is the header. One column stretches and is cut
 * to fit; where that is not enough, columns are dropped. */
enum { table_columns_max = 14 };
struct table {
    unsigned columns, stretch;
    unsigned left;                         /* bit mask of left-aligned columns */
    bool has_kernel_names;                 /* in the stretching column, which is the last one */
    bool has_metric_names;                 /* in the stretching column */
    unsigned char drop[table_columns_max]; /* columns that a narrow page lacks, the least important first; 0 ends */
    struct bytes text;
    struct bytes ends; /* size_t end offset of each cell in text */
};
void table_cell(struct table *table, const char *text);
void table_cell_bytes(struct table *table, const char *text, size_t size);
void table_heads(struct table *table, const char *const *texts);
void table_print(struct table *table, struct page *page); /* and frees the cells */
void table_free(struct table *table);

/* report_header.c: what both `report` and `diff` say of a session first. lead: in front of the first line; with_session:
 * also the session's id. */
void page_identity(struct page *page, const struct analysis *analysis, const char *lead, bool with_session);
void page_completeness(struct page *page, const struct analysis *analysis, size_t indent);

/* report_header.c, report_sections.c and report_system.c, in the order of the report. */
void section_header(struct page *page);
void section_time(struct page *page);
void section_kernels(struct page *page);
void section_scopes(struct page *page);
/* report_stalls.c: pieces of text, escaped. */
void page_path(struct bytes *out, const char *path); /* scope parts joined by " > " */
/* file.cu:12; columns: the file's name is cut to fit, the line is not; 0: whole */
void page_place(struct bytes *out, const char *file, uint32_t line, size_t columns);
void page_function_name(struct bytes *out, const char *name, uint32_t function_id, size_t columns);
/* report_stalls.c and report_deep.c: print nothing where the deep engines did not run. */
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

/* complete or what is missing, in words; used by header and JSON. */
bool session_is_complete(const struct session_model *model);
struct lost_words {
    char text[48]; /* "0", "at least 12", "an unknown number" */
};
struct lost_words lost_text(const struct session_model *model);
/* False where kernels ran and none was timed, because counters need tracing paused. */
bool session_has_kernel_times(const struct session_model *model);
/* Where they are not timed: "16 kernels counted (RangeProfiler does not time kernels)", escaped. */
void counted_text(const struct session_model *model, struct bytes *out);
struct slowdown_words {
    char text[64]; /* "slowed down by about 16 %", "" when it is not known */
};
struct slowdown_words slowdown_words(const struct analysis *analysis);

#endif
