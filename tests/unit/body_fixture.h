/* SPDX-License-Identifier: Apache-2.0 */
/* Request bodies, encoded as a client sends them. */
#ifndef GPUFL_TESTS_BODY_FIXTURE_H
#define GPUFL_TESTS_BODY_FIXTURE_H

#include "server/body_decoder.h"

#include <zlib.h>
#include <zstd.h>

static inline struct bytes body_make(enum content_coding coding, const void *text, size_t size)
{
    struct bytes body = {0};
    assert_true(bytes_reserve(&body, size + size / 2 + 256));
    if (coding == CONTENT_PLAIN) {
        bytes_append(&body, text, size);
    } else if (coding == CONTENT_ZSTD) {
        ZSTD_CCtx *context = ZSTD_createCCtx();
        assert_non_null(context);
        ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
        body.size = ZSTD_compress2(context, body.data, body.capacity, text, size);
        assert_false(ZSTD_isError(body.size));
        ZSTD_freeCCtx(context);
    } else {
        z_stream stream = {.next_in = (Bytef *)(uintptr_t)text,
                           .avail_in = (uInt)size,
                           .next_out = (Bytef *)body.data,
                           .avail_out = (uInt)body.capacity};
        assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
        assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
        body.size = body.capacity - stream.avail_out;
        deflateEnd(&stream);
    }
    return body;
}

#endif
