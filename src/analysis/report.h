/* SPDX-License-Identifier: Apache-2.0 */
/* The report of one session: as text and HTML for people, as JSON for programs, all from the same analysis. Stateless;
 * thread-safe. */
#ifndef GPUFL_ANALYSIS_REPORT_H
#define GPUFL_ANALYSIS_REPORT_H

#include "analysis/session.h"

/* Sections of the text report, in order. */
enum report_section {
    REPORT_HEADER = 1 << 0,
    REPORT_TIME = 1 << 1,
    REPORT_KERNELS = 1 << 2,
    REPORT_KINDS = 1 << 3,
    REPORT_STEPS = 1 << 4,
    REPORT_SCOPES = 1 << 5,
    REPORT_SCOPE_KERNELS = 1 << 6,
    REPORT_OPERATORS = 1 << 7,
    REPORT_STALLS = 1 << 8,
    REPORT_CODE = 1 << 9,
    REPORT_COUNTERS = 1 << 10,
    REPORT_METRICS = 1 << 11,
    REPORT_PM = 1 << 12,
    REPORT_SOURCES = 1 << 13,
    REPORT_COPIES = 1 << 14,
    REPORT_SYNCS = 1 << 15,
    REPORT_MEMORY = 1 << 16,
    REPORT_GRAPHS = 1 << 17,
    REPORT_SYSTEM = 1 << 18,
    REPORT_INSIGHTS = 1 << 19,
    REPORT_LOSSES = 1 << 20
};

struct report_options {
    int top;            /* rows of the kernel table; 0: 10 */
    bool is_wide;       /* full names, all scopes */
    bool use_color;     /* only for a terminal */
    int columns;        /* 0: 100 */
    unsigned sections;  /* of the text: enum report_section; 0: all */
    bool may_run_tools; /* nvdisasm, for instructions that the log contains as raw words; not in the profiled process */
};

/* All append to out. */
NODISCARD gpufl_status report_text(const struct session_model *model, const struct report_options *options,
                                   struct bytes *out);
NODISCARD gpufl_status report_json(const struct session_model *model, const struct report_options *options,
                                   struct bytes *out);
/* One self-contained HTML document: the text report's content and a timeline. report_html.c */
NODISCARD gpufl_status report_html(const struct session_model *model, const struct report_options *options,
                                   struct bytes *out);
/* A function's instructions with samples, counters and source lines. function: its name or part of it; if several
 * match, GPUFL_E_INVALID and the problem lists them; none: GPUFL_E_NOT_FOUND. */
NODISCARD gpufl_status report_code(const struct session_model *model, const char *function,
                                   const struct report_options *options, struct bytes *out, struct problem *problem);
/* The one-line summary of a finished trace, without LF: 2,184,902 kernels, 38.2 s GPU busy of 61.0 s, 0 lost, cost 0.4
 * % */
NODISCARD gpufl_status report_headline(const char *session_dir, struct bytes *out, struct problem *problem);

#endif
