/* SPDX-License-Identifier: Apache-2.0 */
/* Directories and whole files on disk. Pure functions, any thread. */
#ifndef GPUFL_BASE_DIRECTORY_H
#define GPUFL_BASE_DIRECTORY_H

#include "base/bytes.h"
#include "base/status.h"

/* mkdir -p with mode 0700; the parents that exist already keep their mode and may be links. */
NODISCARD gpufl_status directory_make(const char *path, struct problem *problem);
/* Writes `name` (0600) anew and puts it in place of the old one, on the disk before this returns: whatever happens,
 * either the old or the new file is there as a whole. A link in its place is replaced, never followed. GPUFL_E_IO with
 * errno. */
NODISCARD gpufl_status file_replace(int dir_fd, const char *name, const void *data, size_t size);
/* Appends a whole plain file of at most size_max bytes. GPUFL_E_NOT_FOUND, GPUFL_E_LIMIT or GPUFL_E_IO with errno, or
 * GPUFL_E_INVALID: not a plain file. */
NODISCARD gpufl_status file_load(int dir_fd, const char *name, size_t size_max, struct bytes *out);

#endif
