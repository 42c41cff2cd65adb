/* SPDX-License-Identifier: Apache-2.0 */
/* The session that a command's operand means (logfile/session_select.h). Single-threaded. */
#ifndef GPUFL_CLI_SESSION_OPERAND_H
#define GPUFL_CLI_SESSION_OPERAND_H

#include "logfile/session_select.h"

/* word: a directory, a name, the start of a name or id, latest, latest~N; NULL: the last session recorded here. Where
 * there are several, a line on standard error names the one that is taken. The answer is in `choice`; NULL: there is
 * none, and the reason is printed. */
const char *session_operand(const char *command, const char *word, struct session_choice *choice);
/* For commands that take every session of a directory: `word` where it is a directory, else what session_operand says. */
const char *session_operand_directory(const char *command, const char *word, struct session_choice *choice);

#endif
