/* SPDX-License-Identifier: Apache-2.0 */
/* Where gpufl's own files are, relative to the running program: in a build tree and where it was installed. */
#ifndef GPUFL_CLI_INSTALLATION_H
#define GPUFL_CLI_INSTALLATION_H

#include <limits.h>
#include <stdbool.h>

/* The first of the paths (NULL-terminated, relative to the directory of the program) that exists; absolute in out. */
bool installation_find(char out[PATH_MAX], const char *const *candidates);
/* The recorder that is loaded into traced programs. */
bool installation_find_recorder(char out[PATH_MAX]);

#endif
