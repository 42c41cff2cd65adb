/* SPDX-License-Identifier: Apache-2.0 */
/* Named configurations on a server: the location of their local copies, and the options they must never set. `gpufl
 * agent` and `gpufl trace` download the copies; the recorder only reads them. Pure functions, any thread. */
#ifndef GPUFL_BASE_REMOTE_CONFIG_H
#define GPUFL_BASE_REMOTE_CONFIG_H

#include "base/status.h"

#include <stddef.h>

enum { REMOTE_CONFIG_BYTES_MAX = 64 << 10, REMOTE_CONFIG_NAME_MAX = 64 };
#define REMOTE_CONFIG_SYSTEM_DIR "/etc/gpufl/remote"

/* Letters, digits, '.', '_' and '-', not starting with a dot. */
bool remote_config_name_is_valid(const char *name);
/* $XDG_CONFIG_HOME/gpufl/remote or ~/.config/gpufl/remote; false: no home directory, or the path is too long. */
bool remote_config_home(char *out, size_t size);
/* The local copy of a valid name: in the home directory, else the machine-wide one. It may not exist. */
void remote_config_path(const char *name, char *out, size_t size);
/* False for options that only the machine may set: where data is stored and sent, and the key for it. */
bool remote_config_may_set(const char *option);

#endif
