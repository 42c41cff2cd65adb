/* SPDX-License-Identifier: Apache-2.0 */
/* Printing a session's report, for the commands that do. Single-threaded but for the progress line. */
#ifndef GPUFL_CLI_REPORT_H
#define GPUFL_CLI_REPORT_H

#include "analysis/report.h"
#include "analysis/session.h"

/* session_load of the session that the operand means (session_operand.h), with a progress line; prints the problem and
 * returns NULL on failure. */
struct session_model *report_load(const char *command, const char *word);
/* Options for standard output as it is; color: "auto", "always" or "never". */
struct report_options report_options_for(int fd, const char *color);

#endif
