/* SPDX-License-Identifier: Apache-2.0 */
#include "base/stack_frame.h"

#include <string.h>

/* 0: not a line number. */
static uint32_t line_number(const char *text, size_t size)
{
    uint64_t line = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9' || line > UINT32_MAX / 10)
            return 0;
        line = line * 10 + (uint64_t)(text[i] - '0');
    }
    return line <= UINT32_MAX ? (uint32_t)line : 0;
}

struct stack_frame stack_frame_split(const char *text, size_t size)
{
    struct stack_frame frame = {.function_size = size};
    const char *absolute = memmem(text, size, "@/", 2), *end = text + size; /* directory names may contain an @ */
    const char *at = absolute ? absolute : memrchr(text, '@', size);
    if (!at || at == text || at + 1 == end)
        return frame;
    frame.function_size = (size_t)(at - text);
    frame.file = at + 1;
    frame.file_size = (size_t)(end - frame.file);
    const char *colon = memrchr(frame.file, ':', frame.file_size);
    uint32_t line = colon && colon > frame.file ? line_number(colon + 1, (size_t)(end - colon - 1)) : 0;
    if (line) {
        frame.line = line;
        frame.file_size = (size_t)(colon - frame.file);
    }
    return frame;
}
