/* SPDX-License-Identifier: Apache-2.0 */
#include "code/byte_reader.h"

uint64_t byte_reader_number(struct byte_reader *reader, unsigned width)
{
    if (byte_reader_left(reader) < width) {
        reader->failed = true;
        return 0;
    }
    uint64_t value = 0;
    for (unsigned i = 0; i < width; i++)
        value |= (uint64_t)reader->data[reader->at + i] << (8 * i);
    reader->at += width;
    return value;
}

/* The bits of a LEB128 number, their count, and the number's last byte. */
static uint64_t leb_bits(struct byte_reader *reader, unsigned *bit_count, uint8_t *last)
{
    uint64_t value = 0;
    *bit_count = 0;
    *last = 0;
    do {
        *last = byte_reader_u8(reader);
        if (*bit_count < 64)
            value |= (uint64_t)(*last & 0x7f) << *bit_count;
        if (*bit_count < 70)
            *bit_count += 7;
    } while (*last & 0x80 && !reader->failed);
    return value;
}

uint64_t byte_reader_uleb(struct byte_reader *reader)
{
    unsigned bit_count;
    uint8_t last;
    return leb_bits(reader, &bit_count, &last);
}

int64_t byte_reader_sleb(struct byte_reader *reader)
{
    unsigned bit_count;
    uint8_t last;
    uint64_t value = leb_bits(reader, &bit_count, &last);
    if (last & 0x40 && bit_count < 64)
        value |= ~(uint64_t)0 << bit_count;
    return (int64_t)value;
}

const char *byte_reader_text(struct byte_reader *reader)
{
    size_t left = byte_reader_left(reader);
    const uint8_t *begin = left ? reader->data + reader->at : NULL;
    const uint8_t *end = left ? memchr(begin, 0, left) : NULL;
    if (!end) {
        reader->failed = true;
        return "";
    }
    reader->at += (size_t)(end - begin) + 1;
    return (const char *)begin;
}

void byte_reader_skip(struct byte_reader *reader, uint64_t count)
{
    if (byte_reader_left(reader) < count)
        reader->failed = true;
    else
        reader->at += (size_t)count;
}
