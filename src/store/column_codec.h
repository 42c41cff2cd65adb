/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes one column of cells and decodes it. A column is stored as the value that all cells share, or as differences
 * to its smallest value or to the previous cell, truncated to the bytes needed and grouped by byte (all lowest bytes
 * first). Each such plane is compressed with zstd where that helps. Unknown cells are a separate bit plane. No I/O; the
 * decoder trusts nothing. One coder per thread. */
#ifndef GPUFL_STORE_COLUMN_CODEC_H
#define GPUFL_STORE_COLUMN_CODEC_H

#include "base/bytes.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum { COLUMN_ROWS_MAX = 1 << 20, VARINT_SIZE_MAX = 10 };

struct column_coder {
    struct ZSTD_CCtx_s *compressor;
    struct ZSTD_DCtx_s *decompressor;
    uint64_t *values; /* the encoder's scratch buffer */
    uint8_t *plane;   /* eight planes: the decoder needs them all at once */
    uint8_t *packed;
    size_t room;
    int level;
};

/* Memory is allocated on first use: small columns need none. */
void column_coder_init(struct column_coder *coder, int level);
void column_coder_free(struct column_coder *coder);

/* Compresses with zstd. Returns the size written to out; 0 when it does not fit or memory is out. */
size_t column_coder_pack(struct column_coder *coder, void *out, size_t room, const void *data, size_t size);
/* Decompresses. False unless the result has exactly `size` bytes. */
bool column_coder_unpack(struct column_coder *coder, void *out, size_t size, const void *packed, size_t packed_size);

/* Appends to out; running out of memory sets out->failed. count is 1 to COLUMN_ROWS_MAX. */
void column_encode(struct column_coder *coder, const int64_t *cells, size_t count, struct bytes *out);
/* GPUFL_E_DAMAGED unless the bytes are exactly one column of count cells. */
NODISCARD gpufl_status column_decode(struct column_coder *coder, const void *data, size_t size, int64_t *cells,
                                     size_t count);

/* LEB128. */
void varint_append(struct bytes *out, uint64_t value);
/* Advances *at; false when the bytes end or the value exceeds 64 bits. */
bool varint_read(const uint8_t **at, const uint8_t *end, uint64_t *value);
static inline uint64_t zigzag(int64_t value)
{
    return ((uint64_t)value << 1) ^ (0 - ((uint64_t)value >> 63));
}
static inline int64_t unzigzag(uint64_t value)
{
    return (int64_t)((value >> 1) ^ (0 - (value & 1)));
}

#endif
