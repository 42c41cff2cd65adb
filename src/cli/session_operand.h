/* SPDX-License-Identifier: Apache-2.0 */
/* The session that a command's operand means: the directory itself, or the newest session in it. Single-threaded. */
#ifndef GPUFL_CLI_SESSION_OPERAND_H
#define GPUFL_CLI_SESSION_OPERAND_H

#include "logfile/reader.h"

/* Where there are several, a line on standard error names the one that is taken. The answer is `dir` or in `newest`;
 * NULL: there is none, and the reason is printed. */
const char *session_operand(const char *command, const char *dir, struct newest_session *newest);

#endif
