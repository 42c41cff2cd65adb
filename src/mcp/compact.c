/* SPDX-License-Identifier: Apache-2.0 */
/* Answers are read by a model, for which every digit costs: six digits tell as much as seventeen, and a counter that an
 * instruction does not have need not be listed. */
#include "mcp/tool.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { DIGITS = 6, LARGE_FROM = 100000 /* has DIGITS digits */, NUMBER_BYTES_MAX = 40 };

/* Returns the end of the string that starts here. */
static const char *string_end(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        at += *at == '\\' && at + 1 < end;
    return at < end ? at + 1 : end;
}

static const char *number_end(const char *at, const char *end)
{
    while (at < end && strchr("+-.0123456789eE", *at) && *at)
        at++;
    return at;
}

/* Integers are exact and stay unchanged. */
static void number_write(struct bytes *out, const char *at, const char *end)
{
    char text[NUMBER_BYTES_MAX];
    size_t size = (size_t)(end - at);
    if (size >= sizeof text || strcspn(at, ".eE") >= size) {
        bytes_append(out, at, size);
        return;
    }
    memcpy(text, at, size);
    text[size] = '\0';
    double value = strtod(text, NULL);
    bool is_large = fabs(value) >= LARGE_FROM && fabs(value) < 1e15;
    if (is_large)
        bytes_append_format(out, "%.0f", value);
    else
        bytes_append_format(out, "%.*g", DIGITS, value);
}

void answer_compact(const char *at, size_t size, struct bytes *out)
{
    static const char counters[] = "\"counters\":{";
    const char *end = at + size;
    bool is_counters = false;
    while (at < end) {
        const char *next = *at == '"' ? string_end(at, end) : at + 1;
        bool is_key = *at == '"' && next < end && *next == ':';
        if (is_counters && is_key && (size_t)(end - next) > 5 && !memcmp(next, ":null", 5)) {
            at = next + 5;
            /* The comma is the one behind it, or if it was the last one, that in front. */
            if (at < end && *at == ',')
                at++;
            else if (out->size && out->data[out->size - 1] == ',')
                out->size--;
            continue;
        }
        if (*at == '-' || (*at >= '0' && *at <= '9')) {
            next = number_end(at, end);
            number_write(out, at, next);
        } else {
            if ((size_t)(end - at) >= sizeof counters - 1 && !memcmp(at, counters, sizeof counters - 1)) {
                next = at + sizeof counters - 1;
                is_counters = true;
            } else if (*at == '}') {
                is_counters = false;
            }
            bytes_append(out, at, (size_t)(next - at));
        }
        at = next;
    }
}
