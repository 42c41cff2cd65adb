/* SPDX-License-Identifier: Apache-2.0 */
/* Splits the lines of one log file into request bodies: gzip NDJSON in wire v1 format, cut between lines so that each
 * body stays within the server's limits. The output is deterministic. A source owns its file and its memory, which is
 * bounded by one body and one line. Single-threaded. */
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
    uint64_t events; /* rows of batches, plus single records */
    uint64_t raw_bytes;
    uint32_t crc32; /* of the body */
};

enum window_result {
    WINDOW_READY,
    WINDOW_NO_MORE,
    WINDOW_TOO_LARGE, /* a single line exceeds the limits; it was skipped, and reading can continue */
    WINDOW_LATE,      /* the deadline has passed; nothing follows */
    WINDOW_FAILED     /* the file cannot be read further, or no memory; see reason; nothing follows */
};

struct window_source {
    struct line_source lines;
    int fd;
    struct window_limits limits;
    int64_t deadline_mono_ns;
    struct body_coder coder;
    struct wire_line line; /* the next line in wire format */
    bool has_line;         /* it did not fit into the previous window */
    bool is_after_damage;  /* the previous line was damaged */
    uint64_t line_number;
    uint64_t damaged_lines; /* skipped: they cannot be read */
    bool has_torn_tail;     /* the program was killed while writing the last line, which is not damage */
    char reason[256];
};

NODISCARD gpufl_status window_source_open(struct window_source *source, const struct session_files *files,
                                          const struct session_file *file, const struct window_limits *limits,
                                          int64_t deadline_mono_ns, struct problem *problem);
/* The body is valid until the next call. The window must start zeroed, and the caller frees it. */
enum window_result window_source_next(struct window_source *source, struct window *window);
void window_source_close(struct window_source *source);
void window_free(struct window *window);

/* The window's id, derived from the arguments only. */
void window_id_make(char out[WINDOW_ID_SIZE + 1], const char *session_id, enum channel channel, uint64_t sequence);
/* The same for a window that is cut while its file is growing: derived from its lines. */
void window_id_of_lines(char out[WINDOW_ID_SIZE + 1], const char *session_id, enum channel channel, uint64_t first,
                        uint64_t last);

#endif
