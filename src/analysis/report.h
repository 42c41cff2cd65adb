/* SPDX-License-Identifier: Apache-2.0 */
/* The report of one session, as text for people and as JSON for programs; both
 * show the same analysis. No state; any thread. */
#ifndef GPUFL_ANALYSIS_REPORT_H
#define GPUFL_ANALYSIS_REPORT_H

#include "analysis/session.h"

struct report_options {
    int top;            /* rows of the kernel table; 0: 10 */
    bool is_wide;       /* names whole, all scopes */
    bool use_color;     /* only for a terminal */
    int columns;        /* 0: 100 */
    bool may_run_tools; /* nvdisasm, for instructions that the log holds as raw words; not in the profiled process */
};

/* Both append to out. */
NODISCARD gpufl_status report_text(const struct session_model *model, const struct report_options *options,
                                   struct bytes *out);
NODISCARD gpufl_status report_json(const struct session_model *model, const struct report_options *options,
                                   struct bytes *out);
/* A function's instructions with samples, counters and source lines. function: its name or a part of it; when several
 * match, GPUFL_E_INVALID and the problem lists them; none: GPUFL_E_NOT_FOUND. */
NODISCARD gpufl_status report_code(const struct session_model *model, const char *function,
                                   const struct report_options *options, struct bytes *out, struct problem *problem);
/* The one line of a finished trace, without LF: 2,184,902 kernels, 38.2 s GPU busy of 61.0 s, 0 lost, cost 0.4 % */
NODISCARD gpufl_status report_headline(const char *session_dir, struct bytes *out, struct problem *problem);

#endif
