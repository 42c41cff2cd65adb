/* SPDX-License-Identifier: Apache-2.0 */
/* A channel of a session as a stream of numbered lines, independent of the files that currently hold them: live,
 * rotated, sealed, or the older flat ones. A line's number is its seq; a line without seq follows the previous line.
 * GPUFlight's published windows are passed on unchanged, by their own numbers. Lines that the server already has are
 * skipped, so that concurrent rotation and sealing change nothing. Single-threaded. */
#ifndef GPUFL_AGENT_CHANNEL_STREAM_H
#define GPUFL_AGENT_CHANNEL_STREAM_H

#include "agent/session_state.h"
#include "logfile/session_dir.h"
#include "upload/window.h"

#include <sys/types.h>

/* The position of the next line in a plain file. The file is identified by its inode and, because inodes are reused, by
 * a checksum of its first bytes. */
struct stream_place {
    bool is_known;
    uint32_t mark;
    size_t mark_size;
    ino_t inode;
    uint64_t offset, number;
};

/* One body at a time; its memory is reused. */
struct stream_window {
    struct window window; /* body, lines, events, raw bytes, crc32 */
    struct body_coder coders[BODY_CODING_COUNT];
    struct wire_line line;
    enum body_coding coding;
    bool is_published;
    uint64_t first, last; /* line numbers */
    char id[WINDOW_ID_SIZE + 1];
    bool has_shutdown;
    /* Position after the window, and what was skipped on the way. */
    uint64_t next;
    uint64_t left_out_lines, missing_lines, left_out_windows;
    bool has_damage; /* a file that was read is damaged: some of the missing lines are in it */
    struct stream_place place;
    uint64_t backlog_bytes; /* of the files after the window */
    char reason[256];       /* after STREAM_FAILED, or a problem of a file that was read; "": none */
};

struct channel_stream {
    enum channel channel;
    struct stream_place place; /* position of the next line; not saved */
    uint64_t gap_number;       /* a file seemed to start after a gap; reported if seen twice */
};

enum stream_result {
    STREAM_WINDOW,
    STREAM_PASSED,  /* nothing to send, but `next` advanced past data that cannot be sent */
    STREAM_NOTHING, /* all readable lines were read */
    STREAM_AGAIN,   /* the files changed while reading; list them again */
    STREAM_FAILED   /* no memory, or a file that cannot be read, possibly temporarily; see reason */
};

struct stream_source {
    const struct session_files *files;
    const bool *is_shadowed; /* by index */
    const char *session_id;
    bool is_settled; /* nobody writes to the directory any more */
    enum body_coding coding;
};

NODISCARD gpufl_status stream_window_open(struct stream_window *window);
void stream_window_close(struct stream_window *window);

/* Reads the pending window, or a new one after what the server has. */
enum stream_result channel_stream_read(struct channel_stream *stream, const struct stream_source *source,
                                       const struct channel_state *state, struct stream_window *window);

#endif
