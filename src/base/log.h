/* SPDX-License-Identifier: Apache-2.0 */
/* Diagnostics of the in-process library: sent to the caller's callback, to stderr if debug output was requested, and to
 * the message socket of `gpufl trace`. Without any of these, warnings and errors are held until log_print_held prints
 * them as one line. errno is preserved. */
#ifndef GPUFL_BASE_LOG_H
#define GPUFL_BASE_LOG_H

#include "base/status.h"

void log_configure(gpufl_log_fn fn, void *user, bool to_stderr, int message_fd);
void log_abandon(void); /* in a forked child: a thread of the parent may have been in the callback */
void log_message(gpufl_log_level level, const char *format, ...) PRINTF_LIKE(2, 3);
/* Prints the held messages to stderr on one line, unless GPUFL_QUIET is set; clears them in both cases. */
void log_print_held(void);

#endif
