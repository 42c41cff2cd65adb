/* SPDX-License-Identifier: Apache-2.0 */
/* Splits a stream of bytes into lines of bounded length. A longer line is reported once and skipped up to its end. Owns
 * its buffer. Single-threaded. */
#ifndef GPUFL_MCP_LINE_INPUT_H
#define GPUFL_MCP_LINE_INPUT_H

#include "base/bytes.h"

enum { LINE_INPUT_MAX = 1 << 20 };

struct line_input {
    struct bytes pending; /* bytes that were not consumed yet */
    size_t taken;         /* of pending */
    bool is_skipping;     /* within a line that was reported as too long */
};

enum line_result { LINE_NONE, LINE_WHOLE, LINE_TOO_LONG };

void line_input_free(struct line_input *input);
/* False: out of memory. */
bool line_input_feed(struct line_input *input, const char *data, size_t size);
/* The next line, without its LF or CR LF; valid until the next call. is_end: what is left without an LF is a line, too. */
enum line_result line_input_take(struct line_input *input, bool is_end, const char **line, size_t *size);

#endif
