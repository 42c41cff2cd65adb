/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads for the commands that make them. Single-threaded. */
#ifndef GPUFL_CLI_UPLOAD_H
#define GPUFL_CLI_UPLOAD_H

#include "base/status.h"

/* Before the work whose outcome is to go there. False: the address cannot be right, and a line on stderr says so. Where
 * uploads are not installed nothing is checked: whoever sends says that. */
bool upload_address_check(const char *command, const char *option, const char *url, const char *api_path);
/* Sends one finished session, or a directory of them; the key comes from GPUFL_API_KEY, the path from GPUFL_API_PATH. One
 * line goes to stderr; when quiet, on failure only. */
void upload_after_trace(const char *dir, const char *url, bool is_quiet);

#endif
