/* SPDX-License-Identifier: Apache-2.0 */
/* Cache of the output of nvdisasm and llvm-objdump on disk: one file per function, named after the content of the code
 * and the tool. It may be deleted at any time. Failures to store or find a text only cost time. Thread-safe. */
#ifndef GPUFL_CODE_SASS_CACHE_H
#define GPUFL_CODE_SASS_CACHE_H

#include "code/image.h"

#include <limits.h>

struct sass_cache_key {
    const struct code_image *image;
    uint32_t symbol_index;
    const char *tool; /* its path, size and modification time are part of the key */
};

/* $XDG_CACHE_HOME/gpufl/sass or ~/.cache/gpufl/sass, created if missing; false: no directory available. */
bool sass_cache_directory(char path[PATH_MAX]);
/* Appends the text; false if it is not cached. */
bool sass_cache_read(const char *directory, const struct sass_cache_key *key, struct bytes *out);
void sass_cache_write(const char *directory, const struct sass_cache_key *key, const struct bytes *text);

#endif
