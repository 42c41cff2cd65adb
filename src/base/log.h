/* SPDX-License-Identifier: Apache-2.0 */
/* Diagnostics of the in-process library: to the caller's callback, to stderr
 * only when debug output was asked for, and to the launcher's message socket
 * when `gpufl trace` gave us one. Silent otherwise. errno is preserved. */
#ifndef GPUFL_BASE_LOG_H
#define GPUFL_BASE_LOG_H

#include "base/status.h"

void log_configure(gpufl_log_fn fn, void *user, bool to_stderr, int message_fd);
void log_abandon(void); /* in a forked child: a thread of the parent may have been in the callback */
void log_message(gpufl_log_level level, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
