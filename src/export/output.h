/* SPDX-License-Identifier: Apache-2.0 */
/* A file that appears only when it is complete: written under another name in the same directory, then renamed. An
 * existing file is kept unless it may be replaced. One thread. */
#ifndef GPUFL_EXPORT_OUTPUT_H
#define GPUFL_EXPORT_OUTPUT_H

#include "base/status.h"

#include <limits.h>

struct output_file {
    int fd;
    bool is_stream; /* standard output, a device or a pipe: written data cannot be undone */
    bool may_replace;
    char path[PATH_MAX], temporary[PATH_MAX];
    void (*on_temporary)(const char *path);
};

/* path "-": standard output. An existing device or pipe is written to directly. on_temporary: called with the temporary
 * name while that file exists, and with NULL afterwards; may be NULL. */
NODISCARD gpufl_status output_open(struct output_file *file, const char *path, bool may_replace,
                                   void (*on_temporary)(const char *path), struct problem *problem);
/* Moves the file to its final name, on disk. */
NODISCARD gpufl_status output_commit(struct output_file *file, struct problem *problem);
/* Removes the file unless it was committed; then a no-op. */
void output_discard(struct output_file *file);

#endif
