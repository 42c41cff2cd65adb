/* SPDX-License-Identifier: Apache-2.0 */
/* A channel of a session as a stream of numbered lines, whatever files hold them at the moment: live, rotated, sealed,
 * or the older flat ones. A line's number is its seq; a line without one follows the line before it. GPUFlight's
 * published windows are passed on as they are, by their own numbers. Lines that are already with the server are
 * passed over, so that rotation and sealing underneath change nothing. One thread. */
#ifndef GPUFL_AGENT_CHANNEL_STREAM_H
#define GPUFL_AGENT_CHANNEL_STREAM_H

#include "agent/session_state.h"
#include "logfile/session_dir.h"
#include "upload/window.h"

#include <sys/types.h>

/* The next line's place in a plain file. The file is known by its inode and, because those are used again, by a
 * checksum of its first bytes. */
struct stream_place {
    bool is_known;
    uint32_t mark;
    size_t mark_size;
    ino_t inode;
    uint64_t offset, number;
};

/* One body at a time, whose memory is used again and again. */
struct stream_window {
    struct window window; /* body, lines, events, raw bytes, crc32 */
    struct body_coder coders[BODY_CODING_COUNT];
    struct wire_line line;
    enum body_coding coding;
    bool is_published;
    uint64_t first, last; /* numbers */
    char id[WINDOW_ID_SIZE + 1];
    bool has_shutdown;
    /* Behind the window, and what was passed over on the way there. */
    uint64_t next;
    uint64_t left_out_lines, missing_lines, left_out_windows;
    bool has_damage; /* a file on the way is damaged: some of the missing lines are in it */
    struct stream_place place;
    uint64_t backlog_bytes; /* of the files behind the window */
    char reason[256];       /* after STREAM_FAILED, or what is wrong with a file on the way; "" for nothing */
};

struct channel_stream {
    enum channel channel;
    struct stream_place place; /* where the next line is; forgotten with the process */
    uint64_t gap_number;       /* a file seemed to begin after a gap; believed the second time */
};

enum stream_result {
    STREAM_WINDOW,
    STREAM_PASSED,  /* nothing to send, but `next` moved on: what was there cannot be sent */
    STREAM_NOTHING, /* everything that can be read was read */
    STREAM_AGAIN,   /* the files changed underfoot; list them again */
    STREAM_FAILED   /* no memory, or a file cannot be read, which may pass; reason says why */
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

/* The window that is pending, or a new one behind what the server has. */
enum stream_result channel_stream_read(struct channel_stream *stream, const struct stream_source *source,
                                       const struct channel_state *state, struct stream_window *window);

#endif
