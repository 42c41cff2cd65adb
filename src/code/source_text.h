/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a source file that a line table or a stack names. The name comes from
 * a cubin or a program and is not trusted: only regular files of at most 2 MiB with text in them and a
 * name like a source file's are read. Any thread; one owner. */
#ifndef GPUFL_CODE_SOURCE_TEXT_H
#define GPUFL_CODE_SOURCE_TEXT_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum { SOURCE_TEXT_BYTES_MAX = 2 << 20 };

struct source_line {
    const char *text; /* not NUL-terminated, without its line end */
    uint32_t size;
};

struct source_text {
    char *bytes; /* owned, as lines */
    size_t size;
    struct source_line *lines; /* lines[number - 1] */
    uint32_t line_count;
};

/* directory (may be NULL): where a relative path starts; without it, the current directory. On failure the problem says
 * why: GPUFL_E_NOT_FOUND, GPUFL_E_PERMISSION, GPUFL_E_LIMIT (too large), GPUFL_E_INVALID (no source file), GPUFL_E_IO. */
NODISCARD gpufl_status source_text_read(struct source_text *source, const char *path, const char *directory,
                                        struct problem *problem);
bool source_text_is_name(const char *path); /* like a source file's; no other is read */
void source_text_free(struct source_text *source);
/* NULL when the file has no such line. */
const struct source_line *source_text_line(const struct source_text *source, uint32_t number);

#endif
