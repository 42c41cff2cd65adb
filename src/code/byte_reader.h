/* SPDX-License-Identifier: Apache-2.0 */
/* Reads little-endian values from untrusted bytes. A read beyond the end returns 0 and sets `failed`; the owner checks
 * once after reading. */
#ifndef GPUFL_CODE_BYTE_READER_H
#define GPUFL_CODE_BYTE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct byte_reader {
    const uint8_t *data; /* borrowed */
    size_t size, at;
    bool failed;
};

static inline struct byte_reader byte_reader_over(const uint8_t *data, size_t size)
{
    return (struct byte_reader){.data = data, .size = size};
}
static inline size_t byte_reader_left(const struct byte_reader *reader)
{
    return reader->failed ? 0 : reader->size - reader->at;
}
/* A value of 1 to 8 bytes. */
uint64_t byte_reader_number(struct byte_reader *reader, unsigned width);
uint64_t byte_reader_uleb(struct byte_reader *reader); /* bits above 64 are dropped */
int64_t byte_reader_sleb(struct byte_reader *reader);
/* A NUL-terminated string in place; "" on failure. */
const char *byte_reader_text(struct byte_reader *reader);
void byte_reader_skip(struct byte_reader *reader, uint64_t count);

static inline uint8_t byte_reader_u8(struct byte_reader *reader)
{
    return (uint8_t)byte_reader_number(reader, 1);
}
static inline uint16_t byte_reader_u16(struct byte_reader *reader)
{
    return (uint16_t)byte_reader_number(reader, 2);
}
static inline uint32_t byte_reader_u32(struct byte_reader *reader)
{
    return (uint32_t)byte_reader_number(reader, 4);
}
static inline uint64_t byte_reader_u64(struct byte_reader *reader)
{
    return byte_reader_number(reader, 8);
}

#endif
