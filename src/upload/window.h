/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of one log file as request bodies: gzip NDJSON in wire v1's shape, cut between lines wherever the server's
 * limits ask for it. The same lines always give the same bodies. A source owns its file and its memory, which is bounded
 * by one body and one line; one thread at a time. */
#ifndef GPUFL_UPLOAD_WINDOW_H
#define GPUFL_UPLOAD_WINDOW_H

#include "logfile/line_source.h"
#include "logfile/session_dir.h"
#include "upload/body_coder.h"
#include "upload/wire_line.h"

#define WINDOW_ID_SIZE 36

struct window_limits {
    size_t raw_bytes_max;  /* of the lines */
    size_t gzip_bytes_max; /* of the body */
};
extern const struct window_limits window_limits_of_server;

struct window {
    struct bytes body; /* owned */
    uint64_t lines;
    uint64_t events; /* rows of batches, and single records */
    uint64_t raw_bytes;
    uint32_t crc32; /* of the body */
};

enum window_result {
    WINDOW_READY,
    WINDOW_NO_MORE,
    WINDOW_TOO_LARGE, /* one line alone is over the limits; it was left out, and reading can go on */
    WINDOW_LATE,      /* the deadline came first; nothing follows */
    WINDOW_FAILED     /* the file cannot be read on, or no memory; reason says why; nothing follows */
};

struct window_source {
    struct line_source lines;
    int fd;
    struct window_limits limits;
    int64_t deadline_mono_ns;
    struct body_coder coder;
    struct wire_line line; /* the next line as it will be sent */
    bool has_line;         /* it did not fit into the window before */
    bool is_after_damage;  /* the line before was damaged */
    uint64_t line_number;
    uint64_t damaged_lines; /* left out: they cannot be read */
    bool has_torn_tail;     /* the program was stopped in the middle of the last line, which is no damage */
    char reason[256];
};

NODISCARD gpufl_status window_source_open(struct window_source *source, const struct session_files *files,
                                          const struct session_file *file, const struct window_limits *limits,
                                          int64_t deadline_mono_ns, struct problem *problem);
/* The body stays valid until the next call; the window starts zeroed and is the caller's to free. */
enum window_result window_source_next(struct window_source *source, struct window *window);
void window_source_close(struct window_source *source);
void window_free(struct window *window);

/* The window's name, the same whenever and by whomever it is made. */
void window_id_make(char out[WINDOW_ID_SIZE + 1], const char *session_id, enum channel channel, uint64_t sequence);
/* The same for a window that is cut while its file still grows: it is named by its lines. */
void window_id_of_lines(char out[WINDOW_ID_SIZE + 1], const char *session_id, enum channel channel, uint64_t first,
                        uint64_t last);

#endif
