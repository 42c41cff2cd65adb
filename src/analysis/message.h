/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences for a person. On a terminal, lines are broken between words at its width; a pipe or file gets them whole.
 * Stateless; any thread. */
#ifndef GPUFL_ANALYSIS_MESSAGE_H
#define GPUFL_ANALYSIS_MESSAGE_H

#include "base/status.h"

#include <stdio.h>

enum { MESSAGE_INDENT = 2 };

/* Of a terminal; fallback for anything else. */
int terminal_columns(int fd, int fallback);

/* Lines of text, each ended with a line feed. indent: spaces before what continues a line that did not fit, in addition to
 * the spaces that the line begins with. */
void message_write(FILE *out, const char *text, int indent);
/* The same in lines of at most `columns`, whatever the stream is; 0: of any length. */
void message_wrap(FILE *out, const char *text, int indent, int columns);
/* The same with MESSAGE_INDENT. A line feed is added. */
void message_print(FILE *out, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
