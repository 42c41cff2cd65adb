/* SPDX-License-Identifier: Apache-2.0 */
#include "upload/window.h"

#include "base/clock.h"
#include "logfile/session_source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

const struct window_limits window_limits_of_server = {.raw_bytes_max = 128000000, .gzip_bytes_max = 30000000};

gpufl_status window_source_open(struct window_source *source, const struct session_files *files,
                                const struct session_file *file, const struct window_limits *limits,
                                int64_t deadline_mono_ns, struct problem *problem)
{
    *source = (struct window_source){
        .fd = session_file_open(files->dir_fd, file->name), .limits = *limits, .deadline_mono_ns = deadline_mono_ns};
    if (source->fd < 0)
        return problem_set(problem, GPUFL_E_IO, "cannot open %s: %s", file->name, session_file_error(errno));
    gpufl_status status = line_source_open(&source->lines, source->fd, session_file_coding(file), UINT64_MAX);
    if (!status)
        status = body_coder_open(&source->coder, BODY_GZIP);
    if (status) {
        window_source_close(source);
        return problem_set(problem, status, "no memory to read %s", file->name);
    }
    return GPUFL_OK;
}

void window_source_close(struct window_source *source)
{
    line_source_close(&source->lines);
    body_coder_close(&source->coder);
    wire_line_free(&source->line);
    if (source->fd >= 0)
        close(source->fd);
    *source = (struct window_source){.fd = -1};
}

void window_free(struct window *window)
{
    bytes_free(&window->body);
    *window = (struct window){0};
}

/* Makes `text` the source's next line. GPUFL_E_DAMAGED: the line cannot be sent. */
static gpufl_status line_take(struct window_source *source, const char *text, size_t size)
{
    gpufl_status status = wire_line_make(&source->line, text, size);
    if (status == GPUFL_OK && source->is_after_damage && source->line.is_synthetic) {
        /* Whoever recorded the end of a killed program terminated its torn line first. */
        source->damaged_lines--;
        source->has_torn_tail = true;
    }
    return status;
}

/* Fills source->line. WINDOW_READY: a line was read. */
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
        gpufl_status status = result == LINE_TOO_LONG ? GPUFL_E_DAMAGED : line_take(source, text, size);
        source->has_line = status == GPUFL_OK;
        if (status == GPUFL_E_NO_MEMORY) {
            snprintf(source->reason, sizeof source->reason, "line %" PRIu64 ": out of memory", source->line_number);
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

static bool line_fits(const struct window_source *source, const struct window *window)
{
    if (!window->lines)
        return true;
    size_t size = source->line.text.size, grown = size + size / 1024 + 64; /* deflate's own worst case */
    return window->raw_bytes + size <= source->limits.raw_bytes_max &&
           window->body.size + BODY_HELD_BACK_BYTES + grown <= source->limits.gzip_bytes_max;
}

enum window_result window_source_next(struct window_source *source, struct window *window)
{
    bytes_clear(&window->body);
    window->lines = window->events = window->raw_bytes = 0;
    body_coder_begin(&source->coder);
    enum window_result result;
    while ((result = line_read(source)) == WINDOW_READY && line_fits(source, window)) {
        source->has_line = false;
        if (source->line.text.size > source->limits.raw_bytes_max)
            return WINDOW_TOO_LARGE;
        if (!body_coder_add(&source->coder, &window->body, source->line.text.data, source->line.text.size))
            break;
        window->lines++;
        window->events += source->line.events;
        window->raw_bytes += source->line.text.size;
    }
    if (result == WINDOW_LATE || (result != WINDOW_READY && !window->lines))
        return result; /* the next call reports the failure; first return what was read before it */
    if (window->body.failed || !body_coder_end(&source->coder, &window->body)) {
        snprintf(source->reason, sizeof source->reason, "no memory to compress the window");
        return WINDOW_FAILED;
    }
    if (window->body.size > source->limits.gzip_bytes_max)
        return WINDOW_TOO_LARGE;
    window->crc32 = body_crc32(window->body.data, window->body.size);
    return WINDOW_READY;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    /* Mix so that every input bit affects every bit of the id. */
    hash = (hash ^ hash >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ hash >> 27) * UINT64_C(0x94d049bb133111eb);
    return hash ^ hash >> 31;
}

static void id_of_name(char out[WINDOW_ID_SIZE + 1], const char *name)
{
    uint64_t high = hash_text(UINT64_C(0xcbf29ce484222325), name), low = hash_text(high, name);
    high = (high & ~UINT64_C(0xf000)) | UINT64_C(0x8000);                      /* UUID version 8: custom layout */
    low = (low & UINT64_C(0x3fffffffffffffff)) | UINT64_C(0x8000000000000000); /* RFC 4122 variant */
    snprintf(out, WINDOW_ID_SIZE + 1, "%08" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%012" PRIx64, high >> 32,
             high >> 16 & 0xffff, high & 0xffff, low >> 48, low & UINT64_C(0xffffffffffff));
}

void window_id_make(char out[WINDOW_ID_SIZE + 1], const char *session_id, enum channel channel, uint64_t sequence)
{
    char name[160];
    snprintf(name, sizeof name, "%.100s/%s/%" PRIu64, session_id, channel_names[channel], sequence);
    id_of_name(out, name);
}

void window_id_of_lines(char out[WINDOW_ID_SIZE + 1], const char *session_id, enum channel channel, uint64_t first,
                        uint64_t last)
{
    char name[180];
    snprintf(name, sizeof name, "%.100s/%s/lines %" PRIu64 "-%" PRIu64, session_id, channel_names[channel], first,
             last);
    id_of_name(out, name);
}
