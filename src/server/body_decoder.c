/* SPDX-License-Identifier: Apache-2.0 */
#include "server/body_decoder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <zlib.h>
#include <zstd.h>

enum { ZSTD_WINDOW_LOG_MAX = 23 /* 8 MiB; only zstd's extreme levels use more */ };
enum { CONTEXT_BYTES_MAX = 1 << 20, GZIP_BYTES = 48 << 10, GROWTH = 8 };
#define PIECE_BYTES ((size_t)256 << 10)
#define PIECE_BYTES_MIN ((size_t)16 << 10)

bool content_coding_parse(const char *text, enum content_coding *coding)
{
    static const struct {
        const char *word;
        enum content_coding coding;
    } codings[] = {{"", CONTENT_PLAIN},
                   {"identity", CONTENT_PLAIN},
                   {"gzip", CONTENT_GZIP},
                   {"x-gzip", CONTENT_GZIP},
                   {"zstd", CONTENT_ZSTD}};
    for (size_t i = 0; i < sizeof codings / sizeof *codings; i++)
        if (!strcasecmp(text ? text : "", codings[i].word)) {
            *coding = codings[i].coding;
            return true;
        }
    return false;
}

void body_decoder_pool_open(struct body_decoder_pool *pool)
{
    pthread_mutex_init(&pool->lock, NULL);
    pool->count = 0;
}

void body_decoder_pool_close(struct body_decoder_pool *pool)
{
    while (pool->count)
        ZSTD_freeDCtx(pool->idle[--pool->count]);
    pthread_mutex_destroy(&pool->lock);
}

static ZSTD_DCtx *context_take(struct body_decoder_pool *pool)
{
    ZSTD_DCtx *context = NULL;
    if (pool) {
        pthread_mutex_lock(&pool->lock);
        context = pool->count ? pool->idle[--pool->count] : NULL;
        pthread_mutex_unlock(&pool->lock);
    }
    if (!context && (context = ZSTD_createDCtx()))
        ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG_MAX);
    return context;
}

/* Contexts that grew large are not kept. */
static void context_give(struct body_decoder_pool *pool, ZSTD_DCtx *context)
{
    if (pool && ZSTD_sizeof_DCtx(context) <= CONTEXT_BYTES_MAX &&
        !ZSTD_isError(ZSTD_DCtx_reset(context, ZSTD_reset_session_only))) {
        pthread_mutex_lock(&pool->lock);
        if (pool->count < BODY_DECODER_POOL_MAX) {
            pool->idle[pool->count++] = context;
            context = NULL;
        }
        pthread_mutex_unlock(&pool->lock);
    }
    ZSTD_freeDCtx(context);
}

gpufl_status body_decoder_open(struct body_decoder *decoder, enum content_coding coding,
                               const struct body_limits *limits, struct body_decoder_pool *pool)
{
    *decoder = (struct body_decoder){.coding = coding, .limits = *limits, .pool = pool};
    if (coding != CONTENT_GZIP)
        return GPUFL_OK; /* the zstd context is created with the first byte */
    z_stream *stream = calloc(1, sizeof *stream);
    if (stream && inflateInit2(stream, 16 + MAX_WBITS) != Z_OK) {
        free(stream);
        stream = NULL;
    }
    decoder->stream = stream;
    return stream ? GPUFL_OK : GPUFL_E_NO_MEMORY;
}

void body_decoder_rest(struct body_decoder *decoder)
{
    if (decoder->stream && decoder->coding == CONTENT_ZSTD)
        context_give(decoder->pool, decoder->stream);
    if (decoder->stream && decoder->coding == CONTENT_GZIP) {
        inflateEnd(decoder->stream);
        free(decoder->stream);
    }
    decoder->stream = NULL;
    bytes_free(&decoder->plain);
}

void body_decoder_close(struct body_decoder *decoder)
{
    body_decoder_rest(decoder);
    *decoder = (struct body_decoder){0};
}

size_t body_decoder_memory(const struct body_decoder *decoder)
{
    size_t memory = decoder->plain.capacity;
    if (decoder->stream)
        memory += decoder->coding == CONTENT_ZSTD ? ZSTD_sizeof_DCtx(decoder->stream) : GZIP_BYTES;
    return memory;
}

PRINTF_LIKE(3, 4)
static enum body_result fail(struct body_decoder *decoder, enum body_result result, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(decoder->reason, sizeof decoder->reason, format, args);
    va_end(args);
    return result;
}

/* Passes on the complete lines of decoder->plain and keeps the rest. The first `scanned` bytes contain no LF. */
static void cut_lines(struct body_decoder *decoder, size_t scanned, body_line_fn *on_line, void *user)
{
    struct bytes *plain = &decoder->plain;
    size_t begin = 0;
    for (;;) {
        char *from = plain->data + scanned;
        char *feed = plain->size > scanned ? memchr(from, '\n', plain->size - scanned) : NULL;
        if (!feed)
            break;
        const char *line = plain->data + begin;
        size_t size = (size_t)(feed - line);
        begin = scanned = (size_t)(feed - plain->data) + 1;
        decoder->line_number++;
        if (size && line[size - 1] == '\r')
            size--;
        if (decoder->is_skipping || size > decoder->limits.line_bytes_max)
            on_line(user, BODY_LINE_TOO_LONG, decoder->line_number, "", 0);
        else if (size)
            on_line(user, BODY_LINE_WHOLE, decoder->line_number, line, size);
        decoder->is_skipping = false;
    }
    plain->size -= begin;
    if (decoder->is_skipping || plain->size > decoder->limits.line_bytes_max) {
        decoder->is_skipping = true;
        plain->size = 0;
    }
    if (begin && plain->size)
        memmove(plain->data, plain->data + begin, plain->size);
}

static enum body_result count_plain(struct body_decoder *decoder, size_t size)
{
    decoder->plain_bytes += size;
    if (decoder->plain_bytes > decoder->limits.plain_bytes_max)
        return fail(decoder, BODY_TOO_LARGE, "the body has more than %" PRIu64 " bytes when decoded",
                    decoder->limits.plain_bytes_max);
    if (decoder->coding != CONTENT_PLAIN && decoder->plain_bytes > decoder->limits.ratio_free_bytes &&
        decoder->plain_bytes / decoder->limits.ratio_max > decoder->sent_bytes)
        return fail(decoder, BODY_TOO_LARGE, "the body grows more than %" PRIu64 " times when decoded",
                    decoder->limits.ratio_max);
    return BODY_GOOD;
}

/* One step of the codec: consumes input from `from` and writes at most `room` bytes to `to`. */
static enum body_result decode_zstd(struct body_decoder *decoder, ZSTD_inBuffer *from, char *to, size_t *room)
{
    ZSTD_outBuffer out = {to, *room, 0};
    size_t hint = ZSTD_decompressStream(decoder->stream, &out, from);
    *room = out.pos;
    if (ZSTD_isError(hint))
        return fail(decoder, BODY_DAMAGED, "the body is not valid zstd data: %s", ZSTD_getErrorName(hint));
    decoder->is_mid_frame = hint != 0;
    return BODY_GOOD;
}

static enum body_result decode_gzip(struct body_decoder *decoder, ZSTD_inBuffer *from, char *to, size_t *room)
{
    z_stream *stream = decoder->stream;
    if (!decoder->is_mid_frame && inflateReset(stream) != Z_OK)
        return fail(decoder, BODY_NO_MEMORY, "no memory to decode the body");
    size_t size = from->size - from->pos < UINT32_MAX ? from->size - from->pos : UINT32_MAX;
    stream->next_in = (Bytef *)((uintptr_t)from->src + from->pos);
    stream->avail_in = (uInt)size;
    stream->next_out = (Bytef *)to;
    stream->avail_out = (uInt)*room;
    int result = inflate(stream, Z_NO_FLUSH);
    from->pos += size - stream->avail_in;
    *room -= stream->avail_out;
    decoder->is_mid_frame = result != Z_STREAM_END;
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
        return fail(decoder, BODY_DAMAGED, "the body is not valid gzip data: %s",
                    stream->msg ? stream->msg : "damaged");
    return BODY_GOOD;
}

static enum body_result feed_coded(struct body_decoder *decoder, const void *data, size_t size, body_line_fn *on_line,
                                   void *user)
{
    ZSTD_inBuffer from = {data, size, 0};
    bool is_full = false; /* the codec may have more output than it had room for */
    size_t piece = size < PIECE_BYTES / GROWTH ? size * GROWTH : PIECE_BYTES;
    piece = piece > PIECE_BYTES_MIN ? piece : PIECE_BYTES_MIN;
    if (!decoder->stream && !(decoder->stream = context_take(decoder->pool)))
        return fail(decoder, BODY_NO_MEMORY, "no memory to decode the body");
    while (from.pos < from.size || is_full) {
        if (!bytes_reserve(&decoder->plain, piece))
            return fail(decoder, BODY_NO_MEMORY, "no memory for a line");
        size_t scanned = decoder->plain.size, room = decoder->plain.capacity - scanned, got = room;
        char *to = decoder->plain.data + scanned;
        enum body_result result = decoder->coding == CONTENT_ZSTD ? decode_zstd(decoder, &from, to, &got)
                                                                  : decode_gzip(decoder, &from, to, &got);
        if (result == BODY_GOOD)
            result = count_plain(decoder, got);
        if (result != BODY_GOOD)
            return result;
        is_full = got == room && decoder->is_mid_frame;
        decoder->plain.size += got;
        cut_lines(decoder, scanned, on_line, user);
    }
    /* Many bodies wait for others after their last byte: they need no context for that. */
    if (!decoder->is_mid_frame && !decoder->plain.size && decoder->coding == CONTENT_ZSTD)
        body_decoder_rest(decoder);
    return BODY_GOOD;
}

enum body_result body_decoder_feed(struct body_decoder *decoder, const void *data, size_t size, body_line_fn *on_line,
                                   void *user)
{
    decoder->sent_bytes += size;
    if (decoder->coding != CONTENT_PLAIN)
        return feed_coded(decoder, data, size, on_line, user);
    for (size_t at = 0; at < size;) {
        size_t piece = size - at < PIECE_BYTES ? size - at : PIECE_BYTES, scanned = decoder->plain.size;
        bytes_append(&decoder->plain, (const char *)data + at, piece);
        if (decoder->plain.failed)
            return fail(decoder, BODY_NO_MEMORY, "no memory for a line");
        enum body_result result = count_plain(decoder, piece);
        if (result != BODY_GOOD)
            return result;
        cut_lines(decoder, scanned, on_line, user);
        at += piece;
    }
    return BODY_GOOD;
}

enum body_result body_decoder_finish(struct body_decoder *decoder, body_line_fn *on_line, void *user)
{
    if (decoder->is_mid_frame)
        return fail(decoder, BODY_DAMAGED, "the body ends in the middle of its compressed data");
    if (decoder->plain.size || decoder->is_skipping) {
        decoder->line_number++;
        on_line(user, decoder->is_skipping ? BODY_LINE_TOO_LONG : BODY_LINE_UNENDED, decoder->line_number,
                decoder->is_skipping ? "" : decoder->plain.data, decoder->is_skipping ? 0 : decoder->plain.size);
        decoder->plain.size = 0;
        decoder->is_skipping = false;
    }
    return BODY_GOOD;
}
