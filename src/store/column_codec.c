/* SPDX-License-Identifier: Apache-2.0 */
#include "store/column_codec.h"

#include "format/batch.h"

#include <stdlib.h>
#include <zstd.h>

/* First byte of a column. */
enum { FORM_UNKNOWN, FORM_CONSTANT, FORM_OFFSET, FORM_DELTA, FORM_COUNT, FORM_HAS_UNKNOWN = 0x80 };
/* First byte of a plane. */
enum { PLANE_PLAIN, PLANE_CONSTANT, PLANE_ZSTD };
enum { SAMPLE_ROWS = 4096, PACK_MIN = 48, BLOCK = 512 };

void column_coder_init(struct column_coder *coder, int level)
{
    *coder = (struct column_coder){.level = level};
}

void column_coder_free(struct column_coder *coder)
{
    ZSTD_freeCCtx(coder->compressor);
    ZSTD_freeDCtx(coder->decompressor);
    free(coder->values);
    free(coder->plane);
    free(coder->packed);
    *coder = (struct column_coder){0};
}

size_t column_coder_pack(struct column_coder *coder, void *out, size_t room, const void *data, size_t size)
{
    if (!coder->compressor)
        coder->compressor = ZSTD_createCCtx();
    size_t packed = coder->compressor ? ZSTD_compressCCtx(coder->compressor, out, room, data, size, coder->level) : 0;
    return ZSTD_isError(packed) ? 0 : packed;
}

bool column_coder_unpack(struct column_coder *coder, void *out, size_t size, const void *packed, size_t packed_size)
{
    if (!coder->decompressor)
        coder->decompressor = ZSTD_createDCtx();
    return coder->decompressor && ZSTD_decompressDCtx(coder->decompressor, out, size, packed, packed_size) == size;
}

static bool coder_reserve(struct column_coder *coder, size_t count)
{
    if (count <= coder->room)
        return true;
    free(coder->values);
    free(coder->plane);
    free(coder->packed);
    coder->values = malloc(count * sizeof *coder->values);
    coder->plane = malloc(8 * count);
    coder->packed = malloc(ZSTD_compressBound(count));
    coder->room = coder->values && coder->plane && coder->packed ? count : 0;
    return coder->room != 0;
}

void varint_append(struct bytes *out, uint64_t value)
{
    uint8_t text[VARINT_SIZE_MAX];
    size_t size = 0;
    for (; value >= 0x80; value >>= 7)
        text[size++] = (uint8_t)(value | 0x80);
    text[size++] = (uint8_t)value;
    bytes_append(out, text, size);
}

bool varint_read(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    uint64_t sum = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        uint8_t byte = *(*at)++;
        if (shift == 63 && byte > 1)
            return false;
        sum |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *value = sum;
            return true;
        }
    }
    return false;
}

static void plane_append(struct column_coder *coder, const uint8_t *plane, size_t count, struct bytes *out)
{
    size_t same = 1;
    while (same < count && plane[same] == plane[0])
        same++;
    if (same == count) {
        const uint8_t head[2] = {PLANE_CONSTANT, plane[0]};
        bytes_append(out, head, sizeof head);
        return;
    }
    size_t packed = 0;
    if (count >= PACK_MIN) {
        packed = column_coder_pack(coder, coder->packed, ZSTD_compressBound(coder->room), plane, count);
        /* Nearly incompressible bytes are stored plain: reading them is then a copy. */
        if (packed > count - count / 16)
            packed = 0;
    }
    bytes_append_char(out, packed ? PLANE_ZSTD : PLANE_PLAIN);
    if (packed)
        varint_append(out, packed);
    bytes_append(out, packed ? coder->packed : plane, packed ? packed : count);
}

static unsigned bits_of(uint64_t value)
{
    return value ? 64 - (unsigned)__builtin_clzll(value) : 0;
}

/* Replaces unknown cells by a neighbour, so that they cost nothing, and writes their bit plane. */
static bool unknown_split(struct column_coder *coder, const int64_t *cells, size_t count)
{
    size_t known = 0;
    while (known < count && cells[known] == CELL_UNKNOWN)
        known++;
    if (known == count)
        return false;
    uint64_t last = (uint64_t)cells[known];
    memset(coder->plane, 0, (count + 7) / 8);
    for (size_t i = 0; i < count; i++) {
        bool is_unknown = cells[i] == CELL_UNKNOWN;
        coder->plane[i / 8] |= (uint8_t)((unsigned)is_unknown << (i % 8));
        last = is_unknown ? last : (uint64_t)cells[i];
        coder->values[i] = last;
    }
    return true;
}

static bool delta_is_smaller(const uint64_t *values, size_t count, int64_t least)
{
    uint64_t offset_bits = 0, delta_bits = 0;
    size_t sample = count < SAMPLE_ROWS ? count : SAMPLE_ROWS;
    for (size_t i = 1; i < sample; i++) {
        offset_bits += bits_of(values[i] - (uint64_t)least);
        delta_bits += bits_of(zigzag((int64_t)(values[i] - values[i - 1])));
    }
    return delta_bits < offset_bits;
}

static void values_append(struct column_coder *coder, size_t count, unsigned flags, struct bytes *out)
{
    uint64_t *values = coder->values, most = 0;
    int64_t least = (int64_t)values[0], greatest = least;
    for (size_t i = 1; i < count; i++) {
        int64_t value = (int64_t)values[i];
        least = value < least ? value : least;
        greatest = value > greatest ? value : greatest;
    }
    unsigned form = least == greatest                        ? FORM_CONSTANT
                    : delta_is_smaller(values, count, least) ? FORM_DELTA
                                                             : FORM_OFFSET;
    uint64_t base = form == FORM_DELTA ? values[0] : (uint64_t)least;
    if (form == FORM_DELTA) {
        uint64_t before = base;
        for (size_t i = 0; i < count; i++) {
            uint64_t value = values[i];
            values[i] = zigzag((int64_t)(value - before));
            most |= values[i];
            before = value;
        }
    } else if (form == FORM_OFFSET) {
        for (size_t i = 0; i < count; i++)
            values[i] -= base;
        most = (uint64_t)greatest - base;
    }
    bytes_append_char(out, (char)(form | flags));
    if (flags) /* still in the scratch buffer */
        plane_append(coder, coder->plane, (count + 7) / 8, out);
    varint_append(out, zigzag((int64_t)base));
    if (form == FORM_CONSTANT)
        return;
    unsigned width = (bits_of(most) + 7) / 8;
    bytes_append_char(out, (char)width);
    for (unsigned p = 0; p < width; p++) {
        for (size_t i = 0; i < count; i++)
            coder->plane[i] = (uint8_t)(values[i] >> (8 * p));
        plane_append(coder, coder->plane, count, out);
    }
}

void column_encode(struct column_coder *coder, const int64_t *cells, size_t count, struct bytes *out)
{
    if (!count || count > COLUMN_ROWS_MAX || !coder_reserve(coder, count)) {
        out->failed = true;
        return;
    }
    bool has_unknown = false;
    for (size_t i = 0; i < count; i++)
        has_unknown |= cells[i] == CELL_UNKNOWN;
    if (!has_unknown) {
        memcpy(coder->values, cells, count * sizeof *cells);
        values_append(coder, count, 0, out);
    } else if (unknown_split(coder, cells, count)) {
        values_append(coder, count, FORM_HAS_UNKNOWN, out);
    } else {
        bytes_append_char(out, FORM_UNKNOWN);
    }
}

/* Points *plane at count bytes: in the data, or decompressed into `room`. */
static bool plane_read(struct column_coder *coder, const uint8_t **at, const uint8_t *end, size_t count, uint8_t *room,
                       const uint8_t **plane)
{
    if (*at == end)
        return false;
    unsigned kind = *(*at)++;
    size_t left = (size_t)(end - *at);
    uint64_t size;
    switch (kind) {
    case PLANE_PLAIN:
        if (left < count)
            return false;
        *plane = *at;
        *at += count;
        return true;
    case PLANE_CONSTANT:
        if (!left)
            return false;
        memset(room, *(*at)++, count);
        *plane = room;
        return true;
    case PLANE_ZSTD:
        if (!varint_read(at, end, &size) || size > (size_t)(end - *at))
            return false;
        if (!column_coder_unpack(coder, room, count, *at, (size_t)size))
            return false;
        *at += size;
        *plane = room;
        return true;
    default:
        return false;
    }
}

static void planes_join(const uint8_t *const planes[8], unsigned width, uint64_t *values, size_t count)
{
    for (size_t from = 0; from < count; from += BLOCK) {
        size_t to = count - from < BLOCK ? count : from + BLOCK;
        for (size_t i = from; i < to; i++)
            values[i] = planes[0][i];
        for (unsigned p = 1; p < width; p++)
            for (size_t i = from; i < to; i++)
                values[i] |= (uint64_t)planes[p][i] << (8 * p);
    }
}

static bool values_read(struct column_coder *coder, unsigned form, const uint8_t **at, const uint8_t *end,
                        uint64_t *values, size_t count)
{
    uint64_t base;
    if (!varint_read(at, end, &base))
        return false;
    base = (uint64_t)unzigzag(base);
    if (form == FORM_CONSTANT) {
        for (size_t i = 0; i < count; i++)
            values[i] = base;
        return true;
    }
    if (*at == end)
        return false;
    unsigned width = *(*at)++;
    if (width < 1 || width > 8)
        return false;
    const uint8_t *planes[8];
    for (unsigned p = 0; p < width; p++)
        if (!plane_read(coder, at, end, count, coder->plane + p * count, &planes[p]))
            return false;
    planes_join(planes, width, values, count);
    if (form == FORM_OFFSET) {
        for (size_t i = 0; i < count; i++)
            values[i] += base;
        return true;
    }
    for (size_t i = 0; i < count; i++)
        values[i] = base += (uint64_t)unzigzag(values[i]);
    return true;
}

gpufl_status column_decode(struct column_coder *coder, const void *data, size_t size, int64_t *cells, size_t count)
{
    if (!count || count > COLUMN_ROWS_MAX || !size)
        return GPUFL_E_DAMAGED;
    if (!coder_reserve(coder, count))
        return GPUFL_E_NO_MEMORY;
    const uint8_t *at = data, *end = at + size, *unknown = NULL;
    unsigned form = *at++, flags = form & FORM_HAS_UNKNOWN;
    form &= ~(unsigned)FORM_HAS_UNKNOWN;
    if (form >= FORM_COUNT)
        return GPUFL_E_DAMAGED;
    if (form == FORM_UNKNOWN) {
        for (size_t i = 0; i < count; i++)
            cells[i] = CELL_UNKNOWN;
        return at == end && !flags ? GPUFL_OK : GPUFL_E_DAMAGED;
    }
    /* The encoder's scratch buffer is free here: it holds the bit plane while the values are read. */
    if (flags && !plane_read(coder, &at, end, (count + 7) / 8, (uint8_t *)coder->values, &unknown))
        return GPUFL_E_DAMAGED;
    if (!values_read(coder, form, &at, end, (uint64_t *)cells, count) || at != end)
        return GPUFL_E_DAMAGED;
    for (size_t i = 0; unknown && i < count; i++)
        if (unknown[i / 8] >> (i % 8) & 1)
            cells[i] = CELL_UNKNOWN;
    return GPUFL_OK;
}
