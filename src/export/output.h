/* SPDX-License-Identifier: Apache-2.0 */
/* A file that appears when it is whole: written beside its place under another
 * name, then moved there. What is there already stays unless it may be
 * replaced. One thread. */
#ifndef GPUFL_EXPORT_OUTPUT_H
#define GPUFL_EXPORT_OUTPUT_H

#include "base/status.h"

#include <limits.h>

struct output_file {
    int fd;
    bool is_stream; /* standard output, a device or a pipe: what was written there cannot be taken back */
    bool may_replace;
    char path[PATH_MAX], temporary[PATH_MAX];
    void (*on_temporary)(const char *path);
};

/* path "-": standard output. What is there already and no plain file (a device, a pipe) is written to as it is. on_temporary: told the other name while it exists, NULL
 * afterwards; may be NULL. */
NODISCARD gpufl_status output_open(struct output_file *file, const char *path, bool may_replace,
                                   void (*on_temporary)(const char *path), struct problem *problem);
/* Puts the file into its place, on the disk. */
NODISCARD gpufl_status output_commit(struct output_file *file, struct problem *problem);
/* Removes what was not committed; a no-op afterwards. */
void output_discard(struct output_file *file);

#endif
