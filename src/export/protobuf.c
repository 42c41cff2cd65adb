/* SPDX-License-Identifier: Apache-2.0 */
#include "export/protobuf.h"

#include "export/sink.h"

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, VARINT_BYTES_MAX = 10 };

void protobuf_varint(struct bytes *out, uint64_t value)
{
    if (!bytes_reserve(out, VARINT_BYTES_MAX))
        return;
    for (; value >= 0x80; value >>= 7)
        out->data[out->size++] = (char)(value | 0x80);
    out->data[out->size++] = (char)value;
}

static void field_tag(struct bytes *out, unsigned field, unsigned wire)
{
    protobuf_varint(out, (uint64_t)field << 3 | wire);
}

void protobuf_uint(struct bytes *out, unsigned field, uint64_t value)
{
    field_tag(out, field, WIRE_VARINT);
    protobuf_varint(out, value);
}

void protobuf_int(struct bytes *out, unsigned field, int64_t value)
{
    protobuf_uint(out, field, (uint64_t)value);
}

void protobuf_fixed64(struct bytes *out, unsigned field, uint64_t value)
{
    field_tag(out, field, WIRE_FIXED64);
    for (unsigned i = 0; i < 8; i++)
        bytes_append_char(out, (char)(value >> 8 * i));
}

void protobuf_double(struct bytes *out, unsigned field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    protobuf_fixed64(out, field, bits);
}

void protobuf_text(struct bytes *out, unsigned field, const char *text)
{
    size_t begin = protobuf_begin(out, field);
    text_append_utf8(out, text, strlen(text));
    protobuf_end(out, begin);
}

size_t protobuf_begin(struct bytes *out, unsigned field)
{
    field_tag(out, field, WIRE_BYTES);
    bytes_append_char(out, 0);
    return out->size;
}

void protobuf_end(struct bytes *out, size_t begin)
{
    if (out->failed || begin > out->size)
        return;
    size_t size = out->size - begin;
    unsigned extra = 0; /* one byte is reserved for the length */
    for (size_t rest = size >> 7; rest; rest >>= 7)
        extra++;
    if (extra && !bytes_reserve(out, extra))
        return;
    if (extra)
        memmove(out->data + begin + extra, out->data + begin, size);
    out->size = begin - 1;
    protobuf_varint(out, size);
    out->size += size;
}
