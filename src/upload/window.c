/* SPDX-License-Identifier: Apache-2.0 */
#include "upload/window.h"

#include "base/clock.h"
#include "format/json.h"
#include "logfile/line.h"
#include "logfile/log_line.h"
#include "logfile/session_source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/* What the compressor may hold back: a window of 32 KiB, as much look-ahead and a block of symbols. */
#define HELD_BACK_BYTES ((size_t)192 << 10)

const struct window_limits window_limits_of_server = {.raw_bytes_max = 128000000, .gzip_bytes_max = 30000000};

gpufl_status window_source_open(struct window_source *source, const struct session_files *files,
                                const struct session_file *file, const struct window_limits *limits,
                                int64_t deadline_mono_ns, struct problem *problem)
{
    *source = (struct window_source){
        .fd = session_file_open(files->dir_fd, file->name), .limits = *limits, .deadline_mono_ns = deadline_mono_ns};
    if (source->fd < 0)
        return problem_set(problem, GPUFL_E_IO, "%s: it cannot be opened: %s", file->name, session_file_error(errno));
    gpufl_status status = line_source_open(&source->lines, source->fd, session_file_coding(file), UINT64_MAX);
    if (!status) {
        source->has_deflate = deflateInit2(&source->deflate, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8,
                                           Z_DEFAULT_STRATEGY) == Z_OK;
        status = source->has_deflate ? GPUFL_OK : GPUFL_E_NO_MEMORY;
    }
    if (status) {
        window_source_close(source);
        return problem_set(problem, status, "%s: no memory to read it", file->name);
    }
    return GPUFL_OK;
}

void window_source_close(struct window_source *source)
{
    line_source_close(&source->lines);
    if (source->has_deflate)
        deflateEnd(&source->deflate);
    batch_view_free(&source->view);
    bytes_free(&source->line);
    if (source->fd >= 0)
        close(source->fd);
    *source = (struct window_source){.fd = -1};
}

void window_free(struct window *window)
{
    bytes_free(&window->body);
    *window = (struct window){0};
}

/* Sealed lines go back to v1's rows, with a CRC of their new text; every other line goes as it is. */
static bool line_shape(struct window_source *source, const struct log_line *line, const char *text, size_t size)
{
    static const char cols_key[] = "\"cols\":";
    struct bytes *out = &source->line;
    bytes_clear(out);
    if (!line->batch || !memmem(text, size, cols_key, sizeof cols_key - 1)) {
        bytes_append(out, text, size);
        bytes_append_char(out, '\n');
        return true;
    }
    if (batch_expand(text, size, out) || !out->size)
        return false;
    if (line->seq >= 0) {
        out->size--; /* the brace */
        line_append_crc(out, 0);
    } else {
        bytes_append_char(out, '\n');
    }
    return true;
}

/* Makes `text` the source's next line; false when it cannot be sent. */
static bool line_take(struct window_source *source, const char *text, size_t size)
{
    struct log_line line = {.line = source->line_number};
    struct json_document document = {0};
    char reason[LINE_REASON_SIZE];
    bool is_good = log_line_decode(&line, &source->view, &document, text, size, reason);
    if (is_good && source->is_after_damage && line.type == RECORD_SHUTDOWN &&
        json_get_bool(line.object, "synthetic", false)) {
        /* Whoever noted the end of a killed program closed its torn line first. */
        source->damaged_lines--;
        source->has_torn_tail = true;
    }
    is_good = is_good && line_shape(source, &line, text, size);
    source->line_events = line.batch ? line.batch->row_count : 1;
    json_free(&document);
    return is_good;
}

/* Fills source->line. WINDOW_READY: there is one. */
static enum window_result line_read(struct window_source *source)
{
    while (!source->has_line) {
        const char *text;
        size_t size;
        if (clock_mono_ns() >= source->deadline_mono_ns)
            return WINDOW_LATE;
        enum line_result result = line_source_next(&source->lines, &text, &size);
        source->line_number++;
        if (result == LINE_NO_MORE)
            return WINDOW_NO_MORE;
        if (result == LINE_FAILED) {
            snprintf(source->reason, sizeof source->reason, "line %" PRIu64 ": %s", source->line_number,
                     source->lines.reason);
            return WINDOW_FAILED;
        }
        source->has_line = result != LINE_TOO_LONG && line_take(source, text, size);
        if (source->line.failed) {
            snprintf(source->reason, sizeof source->reason, "line %" PRIu64 ": no memory for it", source->line_number);
            return WINDOW_FAILED;
        }
        source->is_after_damage = !source->has_line;
        if (!source->has_line && result == LINE_UNENDED)
            source->has_torn_tail = true;
        else
            source->damaged_lines += !source->has_line;
    }
    return WINDOW_READY;
}

/* Compresses `size` bytes, or with Z_FINISH the rest, into the window's body. */
static bool compress_to(struct window_source *source, struct window *window, char *data, size_t size, int flush)
{
    z_stream *stream = &source->deflate;
    stream->next_in = (Bytef *)data;
    stream->avail_in = (uInt)size;
    for (;;) {
        if (!bytes_reserve(&window->body, HELD_BACK_BYTES))
            return false;
        size_t room = window->body.capacity - window->body.size;
        stream->next_out = (Bytef *)window->body.data + window->body.size;
        stream->avail_out = (uInt)(room < UINT32_MAX / 2 ? room : UINT32_MAX / 2);
        uInt before = stream->avail_out;
        int result = deflate(stream, flush);
        window->body.size += before - stream->avail_out;
        if (result == Z_STREAM_ERROR)
            return false;
        if (flush == Z_FINISH ? result == Z_STREAM_END : stream->avail_in == 0 && stream->avail_out > 0)
            return true;
    }
}

static bool line_fits(const struct window_source *source, const struct window *window)
{
    if (!window->lines)
        return true;
    size_t size = source->line.size, grown = size + size / 1024 + 64; /* deflate's own worst case */
    return window->raw_bytes + size <= source->limits.raw_bytes_max &&
           window->body.size + HELD_BACK_BYTES + grown <= source->limits.gzip_bytes_max;
}

enum window_result window_source_next(struct window_source *source, struct window *window)
{
    bytes_clear(&window->body);
    window->lines = window->events = window->raw_bytes = 0;
    deflateReset(&source->deflate);
    enum window_result result;
    while ((result = line_read(source)) == WINDOW_READY && line_fits(source, window)) {
        source->has_line = false;
        if (source->line.size > source->limits.raw_bytes_max)
            return WINDOW_TOO_LARGE;
        if (!compress_to(source, window, source->line.data, source->line.size, Z_NO_FLUSH))
            break;
        window->lines++;
        window->events += source->line_events;
        window->raw_bytes += source->line.size;
    }
    if (result == WINDOW_LATE || (result != WINDOW_READY && !window->lines))
        return result; /* a failure is told by the call after what was read before it */
    if (window->body.failed || !compress_to(source, window, NULL, 0, Z_FINISH)) {
        snprintf(source->reason, sizeof source->reason, "no memory to compress it");
        return WINDOW_FAILED;
    }
    if (window->body.size > source->limits.gzip_bytes_max)
        return WINDOW_TOO_LARGE;
    window->crc32 = (uint32_t)crc32(crc32(0, NULL, 0), (const Bytef *)window->body.data, (uInt)window->body.size);
    return WINDOW_READY;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    /* Every bit of the input reaches every bit of the name. */
    hash = (hash ^ hash >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ hash >> 27) * UINT64_C(0x94d049bb133111eb);
    return hash ^ hash >> 31;
}

void window_id_make(char out[WINDOW_ID_SIZE + 1], const char *session_id, enum channel channel, uint64_t sequence)
{
    char name[160];
    snprintf(name, sizeof name, "%.100s/%s/%" PRIu64, session_id, channel_names[channel], sequence);
    uint64_t high = hash_text(UINT64_C(0xcbf29ce484222325), name), low = hash_text(high, name);
    high = (high & ~UINT64_C(0xf000)) | UINT64_C(0x8000);                      /* UUID version 8: our own scheme */
    low = (low & UINT64_C(0x3fffffffffffffff)) | UINT64_C(0x8000000000000000); /* the standard's variant */
    snprintf(out, WINDOW_ID_SIZE + 1, "%08" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%012" PRIx64, high >> 32,
             high >> 16 & 0xffff, high & 0xffff, low >> 48, low & UINT64_C(0xffffffffffff));
}
