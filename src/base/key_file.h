/* SPDX-License-Identifier: Apache-2.0 */
/* Reads API keys from files. Keys are never passed on a command line, which every user of the machine can read. */
#ifndef GPUFL_BASE_KEY_FILE_H
#define GPUFL_BASE_KEY_FILE_H

#include "base/status.h"

#include <stddef.h>

enum { KEY_FILE_BYTES_MAX = 4096 };

/* Reads the file's first line. The problem never contains the key. */
NODISCARD gpufl_status key_file_read(const char *path, char *key, size_t size, struct problem *problem);

#endif
