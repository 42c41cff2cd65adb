/* SPDX-License-Identifier: Apache-2.0 */
/* What the terminal allows (colour, width), and a progress line for work that takes long. The progress line
 * runs on a separate thread; everything else is single-threaded. */
#ifndef GPUFL_CLI_TERMINAL_H
#define GPUFL_CLI_TERMINAL_H

#include "analysis/message.h"

#include <stdbool.h>
#include <stdint.h>

/* mode: "auto" (a terminal, and NO_COLOR unset), "always" or "never". */
bool terminal_use_color(int fd, const char *mode);

struct progress; /* opaque */
/* After one second shows "gpufl: <what> · 42 % · 3 s, about 4 s left" on stderr, on a terminal only. total_bytes: how
 * much this process will read; 0: unknown, then only the time is shown. NULL if no progress is shown. */
struct progress *progress_start(const char *what, uint64_t total_bytes);
/* Sets how far the work is, from 0 to 1, for work that is not measured by bytes read. Any thread; NULL is a no-op. */
void progress_set(struct progress *progress, double share);
/* The same, and what is shown from now on in place of `what`. */
void progress_say(struct progress *progress, const char *what, double share);
void progress_finish(struct progress *progress); /* erases the line; NULL is a no-op */

/* Bytes of the plain files of a directory; 0 when it cannot be read. */
uint64_t directory_bytes(const char *path);

/* Ctrl-C from now on says `message` (a whole line, static storage) and ends the program with 130. */
void terminal_on_interrupt(const char *message);

#endif
