/* SPDX-License-Identifier: Apache-2.0 */
#include "export/sink.h"

#include "format/json_lex.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

struct sink_gzip {
    z_stream stream;
    unsigned char packed[64 << 10];
};

gpufl_status sink_open(struct export_sink *sink, int fd, bool is_gzip)
{
    *sink = (struct export_sink){.fd = fd};
    if (!is_gzip)
        return GPUFL_OK;
    sink->gzip = calloc(1, sizeof *sink->gzip);
    if (!sink->gzip)
        return GPUFL_E_NO_MEMORY;
    enum { gzip_window = 15 + 16, memory_level = 8, level = 6 };
    if (deflateInit2(&sink->gzip->stream, level, Z_DEFLATED, gzip_window, memory_level, Z_DEFAULT_STRATEGY) == Z_OK)
        return GPUFL_OK;
    free(sink->gzip);
    sink->gzip = NULL;
    return GPUFL_E_NO_MEMORY;
}

static bool sink_put(struct export_sink *sink, const void *data, size_t size)
{
    for (size_t done = 0; done < size && !sink->error;) {
        ssize_t part = write(sink->fd, (const char *)data + done, size - done);
        if (part >= 0)
            done += (size_t)part;
        else if (errno != EINTR)
            sink->error = errno;
    }
    if (!sink->error)
        sink->written += size;
    return !sink->error;
}

static bool sink_pack(struct export_sink *sink, const struct bytes *plain, int flush)
{
    struct sink_gzip *gzip = sink->gzip;
    gzip->stream.next_in = (unsigned char *)plain->data;
    gzip->stream.avail_in = (unsigned)plain->size;
    do {
        gzip->stream.next_out = gzip->packed;
        gzip->stream.avail_out = sizeof gzip->packed;
        if (deflate(&gzip->stream, flush) == Z_STREAM_ERROR)
            sink->error = EINVAL;
        else if (!sink_put(sink, gzip->packed, sizeof gzip->packed - gzip->stream.avail_out))
            return false;
    } while (!sink->error && gzip->stream.avail_out == 0);
    return !sink->error;
}

void progress_share(const struct sink_progress *progress, uint64_t rows)
{
    if (!progress->on_share || !progress->rows_expected)
        return;
    double share = (double)(progress->rows_before + rows) / (double)progress->rows_expected;
    progress->on_share(progress->user, share < 1 ? share : 1);
}

bool sink_flush(struct export_sink *sink)
{
    progress_share(&sink->progress, sink->rows);
    if (sink->buffer.failed && !sink->error)
        sink->error = ENOMEM;
    if (!sink->error && sink->gzip)
        sink_pack(sink, &sink->buffer, Z_NO_FLUSH);
    else if (!sink->error)
        sink_put(sink, sink->buffer.data, sink->buffer.size);
    bytes_clear(&sink->buffer);
    return !sink->error;
}

gpufl_status sink_close(struct export_sink *sink, const char *what, struct problem *problem)
{
    sink_flush(sink);
    if (sink->gzip) {
        if (!sink->error)
            sink_pack(sink, &(struct bytes){.data = (char *)""}, Z_FINISH);
        deflateEnd(&sink->gzip->stream);
        free(sink->gzip);
        sink->gzip = NULL;
    }
    bytes_free(&sink->buffer);
    if (!sink->error)
        return GPUFL_OK;
    if (sink->error == ENOMEM)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory");
    return problem_set(problem, GPUFL_E_IO, "cannot write to %s: %s", what, strerror(sink->error));
}

void text_append_utf8(struct bytes *out, const char *text, size_t size)
{
    const char *at = text, *end = text + size, *plain = text;
    while (at < end) {
        size_t step = (unsigned char)*at < 0x80 ? 1 : utf8_sequence_size(at, end);
        if (step) {
            at += step;
            continue;
        }
        bytes_append(out, plain, (size_t)(at - plain));
        bytes_append(out, "\xEF\xBF\xBD", 3);
        plain = ++at;
    }
    bytes_append(out, plain, (size_t)(end - plain));
}
