/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bytes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void bytes_free(struct bytes *bytes)
{
    free(bytes->data);
    bytes->data = NULL;
    bytes->size = bytes->capacity = 0;
    bytes->failed = false;
}

bool bytes_reserve(struct bytes *bytes, size_t extra)
{
    if (bytes->failed)
        return false;
    if (extra <= bytes->capacity - bytes->size)
        return true;
    size_t needed = bytes->size + extra;
    size_t capacity = bytes->capacity ? bytes->capacity : 256;
    while (capacity < needed)
        capacity *= 2;
    if (needed < extra || (bytes->limit && needed > bytes->limit)) {
        bytes->failed = true;
        return false;
    }
    char *data = realloc(bytes->data, capacity);
    if (!data) {
        bytes->failed = true;
        return false;
    }
    bytes->data = data;
    bytes->capacity = capacity;
    return true;
}

void bytes_append(struct bytes *bytes, const void *data, size_t size)
{
    if (size && bytes_reserve(bytes, size)) {
        memcpy(bytes->data + bytes->size, data, size);
        bytes->size += size;
    }
}

void bytes_append_text(struct bytes *bytes, const char *text)
{
    bytes_append(bytes, text, strlen(text));
}

void bytes_append_format(struct bytes *bytes, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    int size = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (size > 0 && bytes_reserve(bytes, (size_t)size + 1)) {
        vsnprintf(bytes->data + bytes->size, (size_t)size + 1, format, again);
        bytes->size += (size_t)size;
    }
    va_end(again);
}

void bytes_append_double(struct bytes *bytes, double value)
{
    char text[64];
    int size = 0;
    for (int precision = 15; precision <= 17; precision++) {
        size = snprintf(text, sizeof text, "%.*g", precision, value);
        if (strtod(text, NULL) == value)
            break;
    }
    /* The host program's locale decides the radix character; we always write a point. */
    size_t written = 0;
    bool is_in_radix = false;
    for (int i = 0; i < size; i++) {
        bool is_radix = !strchr("0123456789+-e", text[i]);
        if (!is_radix)
            text[written++] = text[i];
        else if (!is_in_radix)
            text[written++] = '.';
        is_in_radix = is_radix;
    }
    bytes_append(bytes, text, written);
}

const char *bytes_text(struct bytes *bytes)
{
    if (!bytes_reserve(bytes, 1))
        return "";
    bytes->data[bytes->size] = '\0';
    return bytes->data;
}

static const char digit_pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
                                  "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
                                  "8081828384858687888990919293949596979899";

char *digits_u64(char *out, uint64_t value)
{
    if (value < 10) {
        *out = (char)('0' + value);
        return out + 1;
    }
    char reversed[20];
    char *at = reversed + sizeof reversed;
    while (value >= 100) {
        unsigned pair = (unsigned)(value % 100) * 2;
        value /= 100;
        *--at = digit_pairs[pair + 1];
        *--at = digit_pairs[pair];
    }
    if (value >= 10) {
        *--at = digit_pairs[value * 2 + 1];
        *--at = digit_pairs[value * 2];
    } else {
        *--at = (char)('0' + value);
    }
    size_t size = (size_t)(reversed + sizeof reversed - at);
    memcpy(out, at, size);
    return out + size;
}

char *digits_i64(char *out, int64_t value)
{
    uint64_t magnitude = (uint64_t)value;
    if (value < 0) {
        *out++ = '-';
        magnitude = 0 - magnitude;
    }
    return digits_u64(out, magnitude);
}
