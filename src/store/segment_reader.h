/* SPDX-License-Identifier: Apache-2.0 */
/* Turns stored segments into lines and timelines, for every engine that stores segments: the engine lists the segments
 * and fetches their bytes. Owns only the lists; one thread at a time. */
#ifndef GPUFL_STORE_SEGMENT_READER_H
#define GPUFL_STORE_SEGMENT_READER_H

#include "store/store.h"
#include "store/timeline.h"

/* Channel names in the tables; "" for lines of several channels. */
static inline const char *channel_text(enum channel channel)
{
    return (unsigned)channel < CHANNEL_COUNT ? channel_names[channel] : "";
}
static inline enum channel channel_parse(const char *name)
{
    unsigned channel = 0;
    while (channel < CHANNEL_COUNT && strcmp(channel_names[channel], name) != 0)
        channel++;
    return (enum channel)channel;
}

/* The columns of a stored segment. */
struct layout {
    int64_t layout;
    enum record_type type;
    unsigned count;
    int order[ROW_COLUMNS_MAX]; /* catalogue index of each column, or -1 if the catalogue no longer has it */
};
enum { LAYOUT_NAMES_MAX = ROW_COLUMNS_MAX * 40 };
/* The stored name of a type ("" for records of unknown types), and of its columns (1 << column), joined by commas. */
const char *layout_type_name(enum record_type type);
void layout_names(enum record_type type, uint64_t columns, char names[LAYOUT_NAMES_MAX]);
/* The reverse; NULL: no memory. */
struct layout *layout_parse(int64_t id, const char *type_name, const char *columns);

struct stored_segment {
    int64_t segment, position, rows, min_ns, max_ns, bytes;
    uint32_t number; /* index within one position */
    enum channel channel;
    uint32_t rank;
    const struct layout *layout;
};
struct stored_segments {
    struct stored_segment *items; /* owned */
    size_t count, capacity;
};
/* Appends a zeroed entry; NULL: no memory. */
struct stored_segment *segments_add(struct stored_segments *list);
/* Sorts into delivery order. */
void segments_sort(struct stored_segments *list);
/* Removes segments that the range does not need. */
void segments_cut(struct stored_segments *list, const struct store_range *range);

struct segment_source {
    /* Points at the segment's bytes until the next call. */
    gpufl_status (*fetch)(void *user, const struct stored_segment *segment, const void **data, size_t *size,
                          struct problem *problem);
    /* Fetches the coarsest stored timeline level whose shift is at most *shift, and sets *shift to it; *data NULL:
     * none. */
    gpufl_status (*fetch_level)(void *user, const struct stored_segment *segment, unsigned *shift, const void **data,
                                size_t *size, struct problem *problem);
    void *user;
};

/* Decodes a batch's rows. */
NODISCARD gpufl_status segment_rows_read(const struct segment_source *source, struct column_coder *coder,
                                         const struct stored_segment *segment, uint64_t wanted, struct row_buffer *rows,
                                         struct problem *problem);
/* True when the segment is readable and has the listed number of rows. */
bool segment_is_whole(const struct segment_source *source, struct column_coder *coder,
                      const struct stored_segment *segment, struct row_buffer *rows, struct bytes *lines);
/* See store_read; segments must be sorted and cut. */
NODISCARD gpufl_status segments_deliver(const struct segment_source *source, const struct stored_segments *segments,
                                        const struct store_range *range, log_line_fn on_line, void *user,
                                        struct problem *problem);
/* See store_timeline. */
NODISCARD gpufl_status segments_timeline(const struct segment_source *source, const struct stored_segments *segments,
                                         int64_t from_ns, int64_t to_ns, unsigned shift, struct timeline *timeline,
                                         struct problem *problem);
/* The record types that have a timeline. */
struct record_set timeline_types(void);

#endif
