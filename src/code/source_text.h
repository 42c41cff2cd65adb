/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a source file that a line table or a stack refers to. The name comes from a cubin or a program and is not
 * trusted: only regular files of at most 2 MiB that contain text and have the name of a source file are read. Thread-
 * safe; one owner. */
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
    char *bytes; /* owned, like lines */
    size_t size;
    struct source_line *lines; /* lines[number - 1] */
    uint32_t line_count;
};

/* directory (may be NULL): the base of a relative path; otherwise the current directory. On failure the problem has the
 * reason: GPUFL_E_NOT_FOUND, GPUFL_E_PERMISSION, GPUFL_E_LIMIT (too large), GPUFL_E_INVALID (not a source file),
 * GPUFL_E_IO. */
NODISCARD gpufl_status source_text_read(struct source_text *source, const char *path, const char *directory,
                                        struct problem *problem);
bool source_text_is_name(const char *path); /* has the name of a source file; other files are not read */
void source_text_free(struct source_text *source);
/* NULL if the file has no such line. */
const struct source_line *source_text_line(const struct source_text *source, uint32_t number);

#endif
