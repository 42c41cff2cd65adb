/* SPDX-License-Identifier: Apache-2.0 */
/* The live file of one channel: created with the first line, appended to by complete lines, rotated. One thread at a
 * time. */
#ifndef GPUFL_LOGFILE_CHANNEL_FILE_H
#define GPUFL_LOGFILE_CHANNEL_FILE_H

#include "logfile/line_queue.h"

struct channel_file_options {
    int dir_fd; /* borrowed */
    uint64_t rotate_bytes, rotate_age_ms;
    bool fsync_always;
    /* The live file was rotated and got this number. */
    void (*on_rotated)(void *user, enum channel channel, uint64_t index, uint64_t bytes);
    void *user;
};

struct channel_file {
    const struct channel_file_options *options; /* borrowed */
    enum channel channel;
    int fd; /* -1: not open */
    bool is_torn;
    uint64_t size, segment, rotate_at_bytes;
    int64_t opened_ns;
};

void channel_file_init(struct channel_file *file, enum channel channel, const struct channel_file_options *options);
/* Appends the line with its trailer; *bytes: their size. Returns 0, or an errno if nothing was written: the rest of a
 * failed write is truncated, at the latest before the next line. */
int channel_file_write(struct channel_file *file, struct queued_line *line, uint64_t *bytes);
void channel_file_close(struct channel_file *file);

#endif
