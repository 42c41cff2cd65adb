/* SPDX-License-Identifier: Apache-2.0 */
/* Compresses the lines of a request body with gzip or zstd. The output is deterministic. A coder owns its compressor
 * and is reused; the caller owns the body. Single-threaded. */
#ifndef GPUFL_UPLOAD_BODY_CODER_H
#define GPUFL_UPLOAD_BODY_CODER_H

#include "base/bytes.h"
#include "base/status.h"

enum body_coding { BODY_GZIP, BODY_ZSTD, BODY_CODING_COUNT };
extern const char *const body_coding_names[BODY_CODING_COUNT]; /* as in Content-Encoding */

/* What a compressor may buffer before its output appears in the body. */
#define BODY_HELD_BACK_BYTES ((size_t)192 << 10)

struct body_coder {
    enum body_coding coding;
    void *stream; /* owned: z_stream or ZSTD_CCtx */
};

NODISCARD gpufl_status body_coder_open(struct body_coder *coder, enum body_coding coding);
void body_coder_close(struct body_coder *coder);
/* Starts a new body, which must be empty. */
void body_coder_begin(struct body_coder *coder);
/* false: no memory. */
bool body_coder_add(struct body_coder *coder, struct bytes *body, const void *data, size_t size);
bool body_coder_end(struct body_coder *coder, struct bytes *body);
/* zlib's CRC-32, which the body's headers carry. */
uint32_t body_crc32(const void *data, size_t size);

#endif
