/* SPDX-License-Identifier: Apache-2.0 */
/* One delivery on its way into a store of segments: takes lines, makes encoded segments, sums and line numbers. Does
 * not depend on a database. The engine fills `known` when the write begins and takes the results when it commits. Owns
 * its memory; one thread at a time. */
#ifndef GPUFL_STORE_WRITE_UNIT_H
#define GPUFL_STORE_WRITE_UNIT_H

#include "store/sequence_set.h"
#include "store/store.h"
#include "store/timeline.h"
#include "store/write_sums.h"

/* Line numbers per channel, then batch ids per record type, then ids of batches that are repeated in several channels
 * (source maps), which have a separate numbering. */
enum { SEQUENCE_REPEATED = CHANNEL_COUNT + RECORD_TYPE_COUNT, SEQUENCE_KINDS, SEQUENCE_NAME_MAX = 80 };
/* "seq:device", "batch:kernel_event_batch": independent of the values of the enums. */
void sequence_kind_name(unsigned kind, char name[SEQUENCE_NAME_MAX]);
/* SEQUENCE_KINDS: no kind has that name. */
unsigned sequence_kind_of(const char *name);

struct segment_level {
    unsigned shift;
    struct bytes bytes;
};
struct segment {
    enum record_type type;
    enum channel channel;
    uint32_t rows;
    int64_t min_ns, max_ns; /* CELL_UNKNOWN: no row has a time */
    uint64_t present;       /* of a batch: the columns it is stored with, 1 << column of the catalogue */
    struct bytes bytes;
    struct segment_level levels[TIMELINE_LEVELS_MAX];
    unsigned level_count;
};
void segment_free(struct segment *segment);
/* Makes a segment from rows, with its timeline levels. GPUFL_E_NO_MEMORY. */
NODISCARD gpufl_status segment_make(struct column_coder *coder, const struct row_buffer *rows, struct segment *segment);
/* Encodes lines, each with its LF, as a segment's bytes, and decodes them (appended to out). */
void lines_encode(struct column_coder *coder, const char *lines, size_t size, struct bytes *out);
NODISCARD gpufl_status lines_decode(struct column_coder *coder, const void *data, size_t size, struct bytes *out);
/* The size of the decoded lines, without decoding them. */
NODISCARD gpufl_status lines_plain_size(const void *data, size_t size, uint64_t *plain);

struct record_lines {
    enum record_type type;
    enum channel channel;
    uint32_t count;
    struct bytes bytes;
};

struct write_unit {
    char session_id[STORE_SESSION_ID_MAX + 1], window_id[STORE_WINDOW_ID_MAX + 1];
    enum channel channel;
    uint32_t crc;
    uint64_t bytes_max;
    struct sequence_set known[SEQUENCE_KINDS], added[SEQUENCE_KINDS];
    struct row_buffer rows[RECORD_TYPE_COUNT];
    struct record_lines *records;
    size_t record_count, record_capacity;
    struct segment *segments;
    size_t segment_count, segment_capacity;
    uint64_t segment_bytes, lines, repeated_lines;
    bool has_unnumbered; /* some lines are identified only by the delivery */
    struct write_sums sums;
    struct column_coder coder;
};

void write_unit_init(struct write_unit *unit, const struct store_identity *identity, uint64_t bytes_max);
void write_unit_free(struct write_unit *unit);
/* See store_write_line. */
NODISCARD gpufl_status write_unit_line(struct write_unit *unit, const struct log_line *line, const char *text,
                                       size_t size, bool *is_repeated, struct problem *problem);
/* Turns everything still in buffers into segments. */
NODISCARD gpufl_status write_unit_finish(struct write_unit *unit, struct problem *problem);
uint64_t write_unit_bytes(const struct write_unit *unit);

#endif
