/* SPDX-License-Identifier: Apache-2.0 */
#include "http/http_compression.h"

#include <zlib.h>
#include <zstd.h>

/* Fast: an answer is compressed once and read once. */
enum { ZSTD_LEVEL = 1, GZIP_LEVEL = 1, GZIP_WINDOW_BITS = 15 + 16 };

static bool gzip_into(struct bytes *out, const struct bytes *body)
{
    z_stream stream = {0};
    if (body->size > UINT32_MAX || deflateInit2(&stream, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW_BITS, 8, 0) != Z_OK)
        return false;
    bool is_done = false;
    if (bytes_reserve(out, body->size)) {
        stream.next_in = (Bytef *)body->data;
        stream.avail_in = (uInt)body->size;
        stream.next_out = (Bytef *)out->data;
        stream.avail_out = (uInt)body->size;
        is_done = deflate(&stream, Z_FINISH) == Z_STREAM_END;
        out->size = body->size - stream.avail_out;
    }
    deflateEnd(&stream);
    return is_done;
}

static bool zstd_into(struct bytes *out, const struct bytes *body)
{
    if (!bytes_reserve(out, body->size))
        return false;
    size_t size = ZSTD_compress(out->data, body->size, body->data, body->size, ZSTD_LEVEL);
    out->size = ZSTD_isError(size) ? 0 : size;
    return !ZSTD_isError(size);
}

bool http_compress(struct bytes *body, enum http_encoding encoding)
{
    struct bytes out = {0};
    bool is_smaller = encoding == HTTP_ZSTD   ? zstd_into(&out, body)
                      : encoding == HTTP_GZIP ? gzip_into(&out, body)
                                              : false;
    if (is_smaller) {
        bytes_free(body);
        *body = out;
    } else {
        bytes_free(&out);
    }
    return is_smaller;
}
