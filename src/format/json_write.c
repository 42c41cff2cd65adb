/* SPDX-License-Identifier: Apache-2.0 */
#include "format/json.h"
#include "format/json_lex.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void escape_append(struct bytes *out, unsigned char c)
{
    static const char short_forms[32] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    static const char hex[] = "0123456789abcdef";
    char text[6] = {'\\', (char)c, '0', '0'};
    size_t size = 2;
    if (c < 0x20 && short_forms[c]) {
        text[1] = short_forms[c];
    } else if (c < 0x20) {
        text[1] = 'u';
        text[2] = text[3] = '0';
        text[4] = hex[c >> 4];
        text[5] = hex[c & 15];
        size = 6;
    }
    bytes_append(out, text, size);
}

void json_string(struct bytes *out, const char *text, size_t size)
{
    if (!size)
        text = ""; /* it may be NULL, which has no offsets */
    const char *at = text, *end = text + size, *plain = text;
    bytes_append_char(out, '"');
    while (at < end) {
        unsigned char c = (unsigned char)*at;
        size_t step = c < 0x80 ? 1 : utf8_sequence_size(at, end);
        if (step && c >= 0x20 && c != '"' && c != '\\') {
            at += step;
            continue;
        }
        bytes_append(out, plain, (size_t)(at - plain));
        if (step)
            escape_append(out, c);
        else
            bytes_append(out, "\xEF\xBF\xBD", 3);
        plain = ++at;
    }
    bytes_append(out, plain, (size_t)(end - plain));
    bytes_append_char(out, '"');
}

void json_text(struct bytes *out, const char *text)
{
    if (text)
        json_string(out, text, strlen(text));
    else
        bytes_append(out, "null", 4);
}

void json_int(struct bytes *out, int64_t value)
{
    if (bytes_reserve(out, 21))
        out->size = (size_t)(digits_i64(out->data + out->size, value) - out->data);
}

void json_uint(struct bytes *out, uint64_t value)
{
    if (bytes_reserve(out, 20))
        out->size = (size_t)(digits_u64(out->data + out->size, value) - out->data);
}

void json_double(struct bytes *out, double value)
{
    if (!isfinite(value)) {
        bytes_append(out, "null", 4);
        return;
    }
    bytes_append_double(out, value);
}

void json_bool(struct bytes *out, bool value)
{
    bytes_append_text(out, value ? "true" : "false");
}

void json_key(struct bytes *out, const char *key)
{
    char last = out->size ? out->data[out->size - 1] : '{';
    if (last != '{' && last != '[' && last != ':')
        bytes_append_char(out, ',');
    json_text(out, key);
    bytes_append_char(out, ':');
}
