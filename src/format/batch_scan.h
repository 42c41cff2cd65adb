/* SPDX-License-Identifier: Apache-2.0 */
/* Scans one batch line (private to src/format): its members, its columns by name, and the cells into a batch_view.
 * batch_decode keeps the view; batch_transpose also uses the other members. Points into the line; only the view owns
 * memory. */
#ifndef GPUFL_FORMAT_BATCH_SCAN_H
#define GPUFL_FORMAT_BATCH_SCAN_H

#include "format/batch_cell.h"
#include "format/json_lex.h"

#define BATCH_EXTRAS_MAX 16

enum batch_member {
    MEMBER_VERSION,
    MEMBER_TYPE,
    MEMBER_SESSION_ID,
    MEMBER_BATCH_ID,
    MEMBER_BASE_TIME_NS,
    MEMBER_COLUMNS,
    MEMBER_DELTA,
    MEMBER_ROWS,
    MEMBER_COLS,
    MEMBER_SEQ,
    MEMBER_CRC,
    MEMBER_COUNT
};
extern const char *const batch_member_names[MEMBER_COUNT];

struct scan_column {
    int64_t *cells;                 /* NULL: unknown column, skipped */
    const struct column_info *info; /* NULL: unknown */
    struct json_span name;
    bool is_delta;
};

struct batch_scan {
    struct json_lexer lexer;
    struct batch_view *view;
    struct json_span members[MEMBER_COUNT];    /* the raw values; size 0: missing */
    struct json_span extras[BATCH_EXTRAS_MAX]; /* raw name and value of other members */
    unsigned extra_count;                      /* may exceed BATCH_EXTRAS_MAX */
    struct scan_column columns[BATCH_COLUMNS_MAX];
    unsigned column_count;
    bool has_unknown_columns;
    bool has_cells;      /* rows or cols have been read */
    gpufl_status status; /* the status to return after a failure */
};

NODISCARD gpufl_status batch_scan_line(struct batch_scan *scan, struct batch_view *view, const char *line, size_t size);

/* batch_rows.c: both start after the opening bracket of "rows"/"cols" and end after its closing one. scan->columns must
 * be set and have room for row_capacity rows. */
bool rows_scan(struct batch_scan *scan);
bool cols_scan(struct batch_scan *scan);

#endif
