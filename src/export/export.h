/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions in the formats of other tools. Everything is made from the session
 * model in one pass and leaves through a buffered sink, so that the model is the
 * only thing whose size follows the session's. No state; any thread. */
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

/* What flame graphs put above a kernel. */
enum export_grouping { EXPORT_BY_WHAT_IS_THERE, EXPORT_BY_SCOPE, EXPORT_BY_STACK };

struct export_options {
    enum export_format format;
    const char *output;                         /* a path, or "-" for standard output */
    bool may_replace;                           /* an output that is there already */
    const char *table;                          /* of CSV: this one only; NULL: all, into a directory */
    const char *scope;                          /* only what was launched in scopes of this name or path; NULL: all */
    double from_ms, to_ms;                      /* since the session's start; NAN: not bounded */
    enum export_grouping group;                 /* of pprof, speedscope and collapsed */
    void (*on_share)(void *user, double share); /* how far it is, from 0 to 1, about; may be NULL */
    void *user;
    /* Told the file that must go when the program is ended, NULL when there is none; may be NULL. */
    void (*on_temporary)(const char *path);
};

struct export_result {
    uint64_t bytes; /* written */
    uint64_t rows;  /* events, rows or samples */
};

/* NULL-terminated; index is enum export_format. */
extern const char *const export_format_names[];
/* By the name's end, .gz disregarded; false: none is known by it. */
bool export_format_guess(const char *output, enum export_format *format);
/* NULL-terminated names of what --table takes. */
const char *const *export_table_names(void);

/* The output appears when it is whole, or not at all. */
NODISCARD gpufl_status export_session(const struct session_model *model, const struct export_options *options,
                                      struct export_result *result, struct problem *problem);

#endif
