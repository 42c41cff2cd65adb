/* SPDX-License-Identifier: Apache-2.0 */
/* Where an export's bytes go: a buffer that is written out when it is large,
 * compressed when asked. Writers append to `buffer` and call sink_step after
 * each event; the first failure is kept and ends the walk. One thread. */
#ifndef GPUFL_EXPORT_SINK_H
#define GPUFL_EXPORT_SINK_H

#include "base/bytes.h"
#include "base/status.h"

enum { SINK_BUFFER_BYTES = 256 << 10 };

/* Tells how far an export is; on_share NULL: nobody wants to know. */
struct sink_progress {
    void (*on_share)(void *user, double share);
    void *user;
    uint64_t rows_before, rows_expected; /* of other files, and of all, about */
};
void progress_share(const struct sink_progress *progress, uint64_t rows);

struct export_sink {
    struct bytes buffer;
    struct sink_gzip *gzip; /* owned; NULL: plain */
    int fd;                 /* borrowed */
    int error;              /* errno of the first failure, 0 none */
    uint64_t written;       /* bytes that left */
    uint64_t rows;          /* counted by sink_step */
    struct sink_progress progress;
};

NODISCARD gpufl_status sink_open(struct export_sink *sink, int fd, bool is_gzip);
/* Writes the buffer out now; false: failed, now or before. */
bool sink_flush(struct export_sink *sink);
/* Counts a row, and writes the buffer out when it is large. */
static inline bool sink_step(struct export_sink *sink)
{
    sink->rows++;
    return sink->buffer.size < SINK_BUFFER_BYTES && !sink->buffer.failed ? !sink->error : sink_flush(sink);
}
/* Writes what is left and releases everything; what: the output in messages. */
NODISCARD gpufl_status sink_close(struct export_sink *sink, const char *what, struct problem *problem);

/* Appends the text as well-formed UTF-8: what is none becomes U+FFFD. */
void text_append_utf8(struct bytes *out, const char *text, size_t size);

#endif
