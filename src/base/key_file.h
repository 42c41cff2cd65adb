/* SPDX-License-Identifier: Apache-2.0 */
/* API keys in files: never on a command line, where every user of the machine could read them. */
#ifndef GPUFL_BASE_KEY_FILE_H
#define GPUFL_BASE_KEY_FILE_H

#include "base/status.h"

#include <stddef.h>

enum { KEY_FILE_BYTES_MAX = 4096 };

/* The file's first line. The problem never holds the key. */
NODISCARD gpufl_status key_file_read(const char *path, char *key, size_t size, struct problem *problem);

#endif
