/* SPDX-License-Identifier: Apache-2.0 */
/* A growable byte string with a hard limit, and the fast number writers of the log encoder. When it cannot grow (memory
 * or limit), `failed` is set and further appends are dropped; the owner checks once at the end. */
#ifndef GPUFL_BASE_BYTES_H
#define GPUFL_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct bytes {
    char *data; /* owned; may be NULL while capacity is 0; not NUL-terminated */
    size_t size;
    size_t capacity;
    size_t limit; /* 0: no limit */
    bool failed;
};

void bytes_free(struct bytes *bytes);
static inline void bytes_clear(struct bytes *bytes)
{
    bytes->size = 0;
    bytes->failed = false;
}
/* Makes room for `extra` more bytes; false (with failed set): impossible. */
bool bytes_reserve(struct bytes *bytes, size_t extra);
void bytes_append(struct bytes *bytes, const void *data, size_t size);
void bytes_append_text(struct bytes *bytes, const char *text);
void bytes_append_format(struct bytes *bytes, const char *format, ...) __attribute__((format(printf, 2, 3)));
static inline void bytes_append_char(struct bytes *bytes, char c)
{
    if (bytes->size < bytes->capacity || bytes_reserve(bytes, 1))
        bytes->data[bytes->size++] = c;
}
/* The shortest decimal that reads back as the value, always with a decimal point; the value must be finite. */
void bytes_append_double(struct bytes *bytes, double value);
/* NUL-terminates without counting the NUL; returns "" on failure. */
const char *bytes_text(struct bytes *bytes);

/* Writes the decimal digits at `out` (room for 20 / 21 bytes) and returns the end. */
char *digits_u64(char *out, uint64_t value);
char *digits_i64(char *out, int64_t value);

#endif
