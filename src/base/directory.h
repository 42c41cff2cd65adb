/* SPDX-License-Identifier: Apache-2.0 */
/* Directories and complete files on disk. Pure functions, any thread. */
#ifndef GPUFL_BASE_DIRECTORY_H
#define GPUFL_BASE_DIRECTORY_H

#include "base/bytes.h"
#include "base/status.h"

/* mkdir -p with mode 0700; existing parents keep their mode and may be symbolic links. */
NODISCARD gpufl_status directory_make(const char *path, struct problem *problem);
/* Writes a new file and renames it to `name` (0600), synced before this returns: after a crash either the complete old
 * or the complete new file exists. A symbolic link is replaced, not followed. GPUFL_E_IO with errno. */
NODISCARD gpufl_status file_replace(int dir_fd, const char *name, const void *data, size_t size);
/* Appends the content of a regular file of at most size_max bytes. GPUFL_E_NOT_FOUND, GPUFL_E_LIMIT or GPUFL_E_IO with
 * errno; GPUFL_E_INVALID: not a regular file. */
NODISCARD gpufl_status file_load(int dir_fd, const char *name, size_t size_max, struct bytes *out);

#endif
