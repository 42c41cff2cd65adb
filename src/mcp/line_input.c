/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/line_input.h"

void line_input_free(struct line_input *input)
{
    bytes_free(&input->pending);
    *input = (struct line_input){.taken = 0};
}

bool line_input_feed(struct line_input *input, const char *data, size_t size)
{
    if (input->taken) {
        input->pending.size -= input->taken;
        memmove(input->pending.data, input->pending.data + input->taken, input->pending.size);
        input->taken = 0;
    }
    bytes_append(&input->pending, data, size);
    return !input->pending.failed;
}

/* Drops what belongs to a line that is too long; false: its end has not come yet. */
static bool skip_rest(struct line_input *input)
{
    const char *start = input->pending.data + input->taken;
    size_t rest = input->pending.size - input->taken;
    const char *end = rest ? memchr(start, '\n', rest) : NULL;
    input->taken += end ? (size_t)(end - start) + 1 : rest;
    input->is_skipping = !end;
    return end != NULL;
}

enum line_result line_input_take(struct line_input *input, bool is_end, const char **line, size_t *size)
{
    if (input->taken == input->pending.size || (input->is_skipping && !skip_rest(input)))
        return LINE_NONE; /* before the first byte there is no buffer either */
    const char *start = input->pending.data + input->taken;
    size_t rest = input->pending.size - input->taken;
    const char *end = rest ? memchr(start, '\n', rest) : NULL;
    size_t length = end ? (size_t)(end - start) : rest;
    if (length > LINE_INPUT_MAX) {
        skip_rest(input);
        return LINE_TOO_LONG;
    }
    if (!end && (!is_end || !rest))
        return LINE_NONE;
    input->taken += length + (end != NULL);
    if (length && start[length - 1] == '\r')
        length--;
    *line = start;
    *size = length;
    return LINE_WHOLE;
}
