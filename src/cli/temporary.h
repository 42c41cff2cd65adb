/* SPDX-License-Identifier: Apache-2.0 */
/* A directory of a command's own, below TMPDIR, that is gone when the command ends. */
#ifndef GPUFL_CLI_TEMPORARY_H
#define GPUFL_CLI_TEMPORARY_H

#include <stdbool.h>

enum { TEMPORARY_PATH_MAX = 256 };

/* Both print what failed as the command's error. */
bool temporary_directory_make(const char *command, char dir[TEMPORARY_PATH_MAX]);
void temporary_directory_remove(const char *command, const char *dir);

#endif
