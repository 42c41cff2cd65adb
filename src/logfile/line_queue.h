/* SPDX-License-Identifier: Apache-2.0 */
/* A list of lines waiting to be written, and a limit on the memory of lines. Rows, kept records (record_info.is_kept)
 * and code have separate limits, so that neither rows waiting for a slow disk nor a large module displace the names
 * that later rows refer to. A line is charged from its creation until it is written or lost, whichever list it is in.
 * Not thread-safe: the owner has the mutex. */
#ifndef GPUFL_LOGFILE_LINE_QUEUE_H
#define GPUFL_LOGFILE_LINE_QUEUE_H

#include "format/catalogue.h"

#include <stdint.h>

struct queued_line {
    struct queued_line *next;
    enum channel channel;
    enum record_type type;
    uint64_t seq, rows;
    size_t size;
    char data[]; /* one JSON object without its closing brace */
};

/* Allocated with malloc; NULL: no memory. */
struct queued_line *queued_line_make(enum channel channel, enum record_type type, const char *data, size_t size,
                                     uint64_t rows);

struct line_queue {
    struct queued_line *first, *last; /* owned */
};
void line_queue_push(struct line_queue *queue, struct queued_line *line);
struct queued_line *line_queue_take(struct line_queue *queue); /* NULL: empty */
void line_queue_free(struct line_queue *queue);

enum line_class { LINE_ROWS, LINE_KEPT, LINE_CODE, LINE_CLASS_COUNT };

struct line_room {
    size_t used[LINE_CLASS_COUNT], limit[LINE_CLASS_COUNT];
};
/* False: the line would exceed the limit of its class. A limit never rejects the only line. */
bool line_room_charge(struct line_room *room, const struct queued_line *line);
void line_room_release(struct line_room *room, const struct queued_line *line);

#endif
