/* SPDX-License-Identifier: Apache-2.0 */
/* Renews the local copy of a named remote configuration before a program that reads it starts. Single-threaded. */
#ifndef GPUFL_CLI_REMOTE_CONFIG_H
#define GPUFL_CLI_REMOTE_CONFIG_H

#include <stdbool.h>

/* Does nothing unless GPUFL_REMOTE_CONFIG and GPUFL_BACKEND_URL are set. A failure is reported in one line,
 * unless quiet, and the previous copy, if any, stays in use. */
void remote_config_refresh(const char *command, bool is_quiet);
/* Whether the local copy sets the option: then the launcher's own default must not hide it. */
bool remote_config_sets(const char *option);

#endif
