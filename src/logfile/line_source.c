/* SPDX-License-Identifier: Apache-2.0 */
#include "logfile/line_source.h"

#include "logfile/line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#define BUFFER_BYTES ((size_t)1 << 20)
#define INPUT_BYTES ((size_t)128 << 10)
#define PLAIN_BYTES_MAX ((uint64_t)64 << 30)

static gpufl_status make_decoder(struct line_source *source)
{
    source->input = malloc(INPUT_BYTES);
    if (!source->input)
        return GPUFL_E_NO_MEMORY;
    if (source->coding == LINE_CODING_ZSTD) {
        source->decoder = ZSTD_createDCtx();
        return source->decoder ? GPUFL_OK : GPUFL_E_NO_MEMORY;
    }
    z_stream *stream = calloc(1, sizeof *stream);
    if (stream && inflateInit2(stream, 16 + MAX_WBITS) != Z_OK) {
        free(stream);
        stream = NULL;
    }
    source->decoder = stream;
    return stream ? GPUFL_OK : GPUFL_E_NO_MEMORY;
}

gpufl_status line_source_open(struct line_source *source, int fd, enum line_coding coding, uint64_t input_bytes)
{
    *source = (struct line_source){.fd = fd, .coding = coding, .input_left = input_bytes};
    source->buffer = malloc(BUFFER_BYTES);
    source->capacity = BUFFER_BYTES;
    gpufl_status status = source->buffer ? GPUFL_OK : GPUFL_E_NO_MEMORY;
    if (!status && coding != LINE_CODING_PLAIN)
        status = make_decoder(source);
    if (status)
        line_source_close(source);
    return status;
}

void line_source_close(struct line_source *source)
{
    if (source->decoder && source->coding == LINE_CODING_ZSTD)
        ZSTD_freeDCtx(source->decoder);
    if (source->decoder && source->coding == LINE_CODING_GZIP) {
        inflateEnd(source->decoder);
        free(source->decoder);
    }
    free(source->input);
    free(source->buffer);
    *source = (struct line_source){.fd = -1};
}

static size_t fail(struct line_source *source, const char *what, const char *detail)
{
    source->has_failed = true;
    snprintf(source->reason, sizeof source->reason, "%s%s%s", what, detail ? ": " : "", detail ? detail : "");
    return 0;
}

/* Reads file bytes to `to`; 0 at the end or on failure. */
static size_t read_file(struct line_source *source, char *to, size_t size)
{
    if (size > source->input_left)
        size = (size_t)source->input_left;
    ssize_t got;
    do
        got = size ? read(source->fd, to, size) : 0;
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return fail(source, "cannot be read", strerror(errno));
    source->input_left -= (uint64_t)got;
    return (size_t)got;
}

static bool decode_zstd(struct line_source *source, ZSTD_outBuffer *to)
{
    ZSTD_inBuffer from = {source->input, source->input_end, source->input_begin};
    size_t hint = ZSTD_decompressStream(source->decoder, to, &from);
    source->input_begin = from.pos;
    if (ZSTD_isError(hint))
        return fail(source, "the compressed data is damaged", ZSTD_getErrorName(hint));
    source->is_mid_frame = hint != 0;
    return true;
}

static bool decode_gzip(struct line_source *source, ZSTD_outBuffer *to)
{
    z_stream *stream = source->decoder;
    if (!source->is_mid_frame && inflateReset(stream) != Z_OK)
        return fail(source, "the compressed data cannot be read", NULL);
    source->is_mid_frame = true;
    stream->next_in = (Bytef *)source->input + source->input_begin;
    stream->avail_in = (uInt)(source->input_end - source->input_begin);
    stream->next_out = (Bytef *)to->dst + to->pos;
    stream->avail_out = (uInt)(to->size - to->pos > UINT32_MAX / 2 ? UINT32_MAX / 2 : to->size - to->pos);
    uInt room = stream->avail_out;
    int result = inflate(stream, Z_NO_FLUSH);
    source->input_begin = source->input_end - stream->avail_in;
    to->pos += room - stream->avail_out;
    if (result == Z_STREAM_END)
        source->is_mid_frame = false;
    else if (result != Z_OK && result != Z_BUF_ERROR)
        return fail(source, "the compressed data is damaged", stream->msg);
    return true;
}

/* Reads decoded bytes to `to`; 0 at the end or on failure. */
static size_t read_coded(struct line_source *source, char *to, size_t size)
{
    ZSTD_outBuffer out = {to, size, 0};
    while (!out.pos) {
        /* zstd may have buffered output while it needs no input, so call it once more before reporting the end. */
        bool is_input_over = false;
        if (source->input_begin == source->input_end) {
            source->input_begin = 0;
            source->input_end = read_file(source, source->input, INPUT_BYTES);
            if (source->has_failed)
                return 0;
            is_input_over = source->input_end == 0;
        }
        if (is_input_over && !source->is_mid_frame)
            return 0;
        bool is_good = source->coding == LINE_CODING_ZSTD ? decode_zstd(source, &out) : decode_gzip(source, &out);
        if (!is_good && !out.pos)
            return 0;
        if (is_input_over && !out.pos)
            return fail(source, "the compressed data is truncated", NULL);
        if (!is_good)
            break;
    }
    return out.pos;
}

/* Reads more bytes into the buffer; false: there are none. */
static bool fill(struct line_source *source)
{
    if (source->is_exhausted || source->has_failed)
        return false;
    if (source->begin) {
        memmove(source->buffer, source->buffer + source->begin, source->end - source->begin);
        source->end -= source->begin;
        source->scanned -= source->begin;
        source->begin = 0;
    }
    if (source->end == source->capacity) {
        char *buffer = realloc(source->buffer, source->capacity * 2);
        if (!buffer)
            return fail(source, "out of memory for a long line", NULL);
        source->buffer = buffer;
        source->capacity *= 2;
    }
    char *to = source->buffer + source->end;
    size_t room = source->capacity - source->end;
    size_t got = source->coding == LINE_CODING_PLAIN ? read_file(source, to, room) : read_coded(source, to, room);
    source->end += got;
    source->plain_bytes += got;
    if (source->plain_bytes > PLAIN_BYTES_MAX)
        return fail(source, "the decompressed data exceeds 64 GiB", NULL);
    source->is_exhausted = !got;
    return got != 0;
}

/* Skips the rest of a line that exceeds the size limit. */
static enum line_result skip_line(struct line_source *source)
{
    for (;;) {
        source->begin = source->scanned = source->end;
        if (!fill(source))
            return LINE_TOO_LONG;
        char *feed = memchr(source->buffer + source->begin, '\n', source->end - source->begin);
        if (feed) {
            source->begin = source->scanned = (size_t)(feed - source->buffer) + 1;
            return LINE_TOO_LONG;
        }
    }
}

enum line_result line_source_next(struct line_source *source, const char **line, size_t *size)
{
    for (;;) {
        char *from = source->buffer + source->scanned;
        char *feed = source->end > source->scanned ? memchr(from, '\n', source->end - source->scanned) : NULL;
        if (feed) {
            *line = source->buffer + source->begin;
            *size = (size_t)(feed - *line);
            source->begin = source->scanned = (size_t)(feed - source->buffer) + 1;
            return *size > LINE_SIZE_MAX ? LINE_TOO_LONG : LINE_WHOLE;
        }
        source->scanned = source->end;
        if (source->end - source->begin > LINE_SIZE_MAX)
            return skip_line(source);
        if (!fill(source))
            break;
    }
    /* Data decoded before a failure is delivered first; the next call reports the failure. */
    *line = source->buffer + source->begin;
    *size = source->end - source->begin;
    source->begin = source->scanned = source->end;
    if (*size)
        return LINE_UNENDED;
    return source->has_failed ? LINE_FAILED : LINE_NO_MORE;
}
