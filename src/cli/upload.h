/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads for the commands that make them. Single-threaded. */
#ifndef GPUFL_CLI_UPLOAD_H
#define GPUFL_CLI_UPLOAD_H

#include "base/status.h"

/* Sends one finished session, or a directory of them; the key comes from GPUFL_API_KEY, the path from GPUFL_API_PATH. One
 * line goes to stderr; when quiet, on failure only. */
void upload_after_trace(const char *dir, const char *url, bool is_quiet);

#endif
