/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the lines of one file, plain, gzip or zstd, in bounded memory. Lines are returned inside the source's buffer,
 * not copied. Files are read, not mapped: a live file may be truncated while it is read. One thread at a time. */
#ifndef GPUFL_LOGFILE_LINE_SOURCE_H
#define GPUFL_LOGFILE_LINE_SOURCE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum line_coding { LINE_CODING_PLAIN, LINE_CODING_GZIP, LINE_CODING_ZSTD };

enum line_result {
    LINE_WHOLE,    /* terminated by LF, which is not included */
    LINE_UNENDED,  /* the last bytes of the file, without LF */
    LINE_TOO_LONG, /* exceeds LINE_SIZE_MAX and was skipped */
    LINE_FAILED,   /* reading or decoding failed; see reason; nothing follows */
    LINE_NO_MORE
};

struct line_source {
    int fd; /* borrowed */
    enum line_coding coding;
    uint64_t input_left; /* bytes of the file still to be read */
    uint64_t plain_bytes;
    char *buffer; /* owned */
    size_t begin, end, scanned, capacity;
    char *input; /* owned; coded files only */
    size_t input_begin, input_end;
    void *decoder; /* owned: z_stream or ZSTD_DCtx */
    bool is_mid_frame, is_exhausted, has_failed;
    char reason[160];
};

/* Reads at most input_bytes from the descriptor's current offset. */
NODISCARD gpufl_status line_source_open(struct line_source *source, int fd, enum line_coding coding,
                                        uint64_t input_bytes);
void line_source_close(struct line_source *source);
/* The line is valid until the next call. */
enum line_result line_source_next(struct line_source *source, const char **line, size_t *size);

#endif
