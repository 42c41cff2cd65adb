/* SPDX-License-Identifier: Apache-2.0 */
#include "upload/body_coder.h"

#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

enum { ZSTD_LEVEL = 3 };

const char *const body_coding_names[BODY_CODING_COUNT] = {[BODY_GZIP] = "gzip", [BODY_ZSTD] = "zstd"};

static z_stream *gzip_make(void)
{
    z_stream *stream = calloc(1, sizeof *stream);
    if (stream &&
        deflateInit2(stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        free(stream);
        stream = NULL;
    }
    return stream;
}

static ZSTD_CCtx *zstd_make(void)
{
    ZSTD_CCtx *stream = ZSTD_createCCtx();
    if (stream)
        ZSTD_CCtx_setParameter(stream, ZSTD_c_compressionLevel, ZSTD_LEVEL);
    return stream;
}

gpufl_status body_coder_open(struct body_coder *coder, enum body_coding coding)
{
    coder->coding = coding;
    coder->stream = coding == BODY_GZIP ? (void *)gzip_make() : (void *)zstd_make();
    return coder->stream ? GPUFL_OK : GPUFL_E_NO_MEMORY;
}

void body_coder_close(struct body_coder *coder)
{
    if (coder->stream && coder->coding == BODY_GZIP) {
        deflateEnd(coder->stream);
        free(coder->stream);
    } else {
        ZSTD_freeCCtx(coder->stream);
    }
    *coder = (struct body_coder){0};
}

void body_coder_begin(struct body_coder *coder)
{
    if (coder->coding == BODY_GZIP)
        deflateReset(coder->stream);
    else
        ZSTD_CCtx_reset(coder->stream, ZSTD_reset_session_only);
}

static bool gzip_run(z_stream *stream, struct bytes *body, const void *data, size_t size, bool is_last)
{
    stream->next_in = (Bytef *)(uintptr_t)data;
    stream->avail_in = (uInt)size;
    for (;;) {
        if (!bytes_reserve(body, BODY_HELD_BACK_BYTES))
            return false;
        size_t room = body->capacity - body->size;
        stream->next_out = (Bytef *)body->data + body->size;
        stream->avail_out = (uInt)(room < UINT32_MAX / 2 ? room : UINT32_MAX / 2);
        uInt before = stream->avail_out;
        int result = deflate(stream, is_last ? Z_FINISH : Z_NO_FLUSH);
        body->size += before - stream->avail_out;
        if (result == Z_STREAM_ERROR)
            return false;
        if (is_last ? result == Z_STREAM_END : stream->avail_in == 0 && stream->avail_out > 0)
            return true;
    }
}

static bool zstd_run(ZSTD_CCtx *stream, struct bytes *body, const void *data, size_t size, bool is_last)
{
    ZSTD_inBuffer from = {data, size, 0};
    for (;;) {
        if (!bytes_reserve(body, BODY_HELD_BACK_BYTES))
            return false;
        ZSTD_outBuffer to = {body->data + body->size, body->capacity - body->size, 0};
        size_t left = ZSTD_compressStream2(stream, &to, &from, is_last ? ZSTD_e_end : ZSTD_e_continue);
        body->size += to.pos;
        if (ZSTD_isError(left))
            return false;
        if (is_last ? left == 0 : from.pos == from.size)
            return true;
    }
}

static bool run(struct body_coder *coder, struct bytes *body, const void *data, size_t size, bool is_last)
{
    return coder->coding == BODY_GZIP ? gzip_run(coder->stream, body, data, size, is_last)
                                      : zstd_run(coder->stream, body, data, size, is_last);
}

bool body_coder_add(struct body_coder *coder, struct bytes *body, const void *data, size_t size)
{
    return run(coder, body, data, size, false);
}

bool body_coder_end(struct body_coder *coder, struct bytes *body)
{
    return run(coder, body, NULL, 0, true);
}

uint32_t body_crc32(const void *data, size_t size)
{
    return (uint32_t)crc32(crc32(0, NULL, 0), data, (uInt)size);
}
