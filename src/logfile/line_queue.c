/* SPDX-License-Identifier: Apache-2.0 */
#include "logfile/line_queue.h"

#include <stdlib.h>
#include <string.h>

struct queued_line *queued_line_make(enum channel channel, enum record_type type, const char *data, size_t size,
                                     uint64_t rows)
{
    struct queued_line *line = malloc(sizeof *line + size);
    if (!line)
        return NULL;
    *line = (struct queued_line){.channel = channel, .type = type, .rows = rows, .size = size};
    memcpy(line->data, data, size);
    return line;
}

void line_queue_push(struct line_queue *queue, struct queued_line *line)
{
    line->next = NULL;
    if (queue->last)
        queue->last->next = line;
    else
        queue->first = line;
    queue->last = line;
}

struct queued_line *line_queue_take(struct line_queue *queue)
{
    struct queued_line *line = queue->first;
    if (!line)
        return NULL;
    queue->first = line->next;
    if (!queue->first)
        queue->last = NULL;
    return line;
}

void line_queue_free(struct line_queue *queue)
{
    struct queued_line *line;
    while ((line = line_queue_take(queue)))
        free(line);
}

static enum line_class class_of(const struct queued_line *line)
{
    if (line->channel == CHANNEL_SASS)
        return LINE_CODE;
    return record_catalogue[line->type].is_kept ? LINE_KEPT : LINE_ROWS;
}

bool line_room_charge(struct line_room *room, const struct queued_line *line)
{
    enum line_class class = class_of(line);
    size_t size = sizeof *line + line->size;
    if (room->used[class] && room->used[class] + size > room->limit[class])
        return false;
    room->used[class] += size;
    return true;
}

void line_room_release(struct line_room *room, const struct queued_line *line)
{
    room->used[class_of(line)] -= sizeof *line + line->size;
}
