/* SPDX-License-Identifier: Apache-2.0 */
/* A sealed segment that is being written line by line: <name>.zst.part, renamed to <name>.zst when it is complete
 * (segment.h). Single-threaded. */
#ifndef GPUFL_LOGFILE_SEGMENT_OUTPUT_H
#define GPUFL_LOGFILE_SEGMENT_OUTPUT_H

#include "base/bytes.h"
#include "logfile/segment.h"

struct segment_output {
    int dir_fd, part_fd;
    void *encoder; /* ZSTD_CCtx */
    char *output;
    size_t output_size;
    struct bytes line; /* in sealed form */
    struct segment_footer footer;
    char part[64], sealed[64];
    struct problem *problem;
};

NODISCARD gpufl_status segment_output_open(struct segment_output *out, int dir_fd, enum channel channel, uint64_t index,
                                           struct problem *problem);
/* Writes one line. object: without closing brace and crc, with its seq. */
NODISCARD gpufl_status segment_output_line(struct segment_output *out, const char *object, size_t size, uint64_t seq);
/* Completes the file with its footer and gives it its final name; *bytes: its size. */
NODISCARD gpufl_status segment_output_finish(struct segment_output *out, uint64_t plain_bytes, uint64_t *bytes);
/* Frees; removes an unfinished file. */
void segment_output_close(struct segment_output *out);

#endif
