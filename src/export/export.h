/* SPDX-License-Identifier: Apache-2.0 */
/* Exports sessions to the formats of other tools. Everything is made from the session model in one pass and written
 * through a buffered sink, so only the model's memory depends on the session's size. Stateless; thread-safe. */
#ifndef GPUFL_EXPORT_EXPORT_H
#define GPUFL_EXPORT_EXPORT_H

#include "analysis/session.h"

enum export_format {
    EXPORT_CHROME,
    EXPORT_PERFETTO,
    EXPORT_SQLITE,
    EXPORT_CSV,
    EXPORT_PPROF,
    EXPORT_SPEEDSCOPE,
    EXPORT_COLLAPSED,
    EXPORT_OTLP,
    EXPORT_FORMAT_COUNT
};

/* How flame graphs group kernels. */
enum export_grouping { EXPORT_BY_DEFAULT, EXPORT_BY_SCOPE, EXPORT_BY_STACK };

struct export_options {
    enum export_format format;
    const char *output;                         /* a path, or "-" for standard output */
    bool may_replace;                           /* replace an existing output */
    const char *table;                          /* of CSV: only this one; NULL: all, into a directory */
    const char *scope;                          /* only work launched in scopes of this name or path; NULL: all */
    double from_ms, to_ms;                      /* since the session's start; NAN: no limit */
    enum export_grouping group;                 /* of pprof, speedscope and collapsed */
    void (*on_share)(void *user, double share); /* approximate progress, from 0 to 1; may be NULL */
    void *user;
    /* Reports the temporary file to delete when the program is killed, NULL when there is none; may be NULL. */
    void (*on_temporary)(const char *path);
};

struct export_result {
    uint64_t bytes; /* written */
    uint64_t rows;  /* events, rows or samples */
};

/* NULL-terminated; index is enum export_format. */
extern const char *const export_format_names[];
/* From the file name extension, ignoring .gz; false: unknown. */
bool export_format_guess(const char *output, enum export_format *format);
/* The table names for --table, NULL-terminated. */
const char *const *export_table_names(void);

/* The output appears atomically: the complete file or nothing. */
NODISCARD gpufl_status export_session(const struct session_model *model, const struct export_options *options,
                                      struct export_result *result, struct problem *problem);

#endif
