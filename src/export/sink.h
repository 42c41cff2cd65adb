/* SPDX-License-Identifier: Apache-2.0 */
/* The output of an export: a buffer that is written when it is large, and optionally compressed. Writers append to
 * `buffer` and call sink_step after each event; the first failure is kept and ends the export. One thread. */
#ifndef GPUFL_EXPORT_SINK_H
#define GPUFL_EXPORT_SINK_H

#include "base/bytes.h"
#include "base/status.h"

enum { SINK_BUFFER_BYTES = 256 << 10 };

/* Reports the progress of an export; on_share NULL: no reports. */
struct sink_progress {
    void (*on_share)(void *user, double share);
    void *user;
    uint64_t rows_before, rows_expected; /* of previous files, and approximately of all files */
};
void progress_share(const struct sink_progress *progress, uint64_t rows);

struct export_sink {
    struct bytes buffer;
    struct sink_gzip *gzip; /* owned; NULL: plain */
    int fd;                 /* borrowed */
    int error;              /* errno of the first failure, 0 none */
    uint64_t written;       /* bytes written */
    uint64_t rows;          /* counted by sink_step */
    struct sink_progress progress;
};

NODISCARD gpufl_status sink_open(struct export_sink *sink, int fd, bool is_gzip);
/* Writes the buffer now; false: this or an earlier write failed. */
bool sink_flush(struct export_sink *sink);
/* Counts a row, and writes the buffer if it is large. */
static inline bool sink_step(struct export_sink *sink)
{
    sink->rows++;
    return sink->buffer.size < SINK_BUFFER_BYTES && !sink->buffer.failed ? !sink->error : sink_flush(sink);
}
/* Writes the rest and releases everything; what: name of the output in messages. */
NODISCARD gpufl_status sink_close(struct export_sink *sink, const char *what, struct problem *problem);

/* Appends the text as valid UTF-8: invalid bytes become U+FFFD. */
void text_append_utf8(struct bytes *out, const char *text, size_t size);

#endif
