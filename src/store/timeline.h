/* SPDX-License-Identifier: Apache-2.0 */
/* Timeline buckets: the work of a segment's rows, summed into buckets of 2^shift ns per track. A large segment has a
 * pyramid of levels, from the finest one worth storing up by factors of four; rows of small segments are summed on
 * request. Pure functions on the caller's memory; thread-safe. */
#ifndef GPUFL_STORE_TIMELINE_H
#define GPUFL_STORE_TIMELINE_H

#include "store/row_buffer.h"
#include "store/store_rollup.h"

enum { TIMELINE_ROWS_MIN = 8192, TIMELINE_LEVELS_MAX = 24, TIMELINE_TRACKS_MAX = 1024 };

/* One bucket of one track; each sum names its track so that sums of many segments can be sorted together. */
struct timeline_sum {
    enum record_type type;
    uint32_t key;
    int64_t device_id, stream_id;
    int64_t bucket; /* start_ns >> shift */
    int64_t busy_ns, key_ns;
    uint64_t count;
};
struct timeline_sums {
    struct timeline_sum *items; /* owned */
    size_t count, capacity;
};
void timeline_sums_free(struct timeline_sums *sums);

static inline bool timeline_has(enum record_type type)
{
    return type == RECORD_KERNEL_EVENT_BATCH || type == RECORD_MEMCPY_EVENT_BATCH || type == RECORD_MEMSET_EVENT_BATCH;
}
/* The columns that timeline_add_rows reads, 1 << column. */
uint64_t timeline_columns(enum record_type type);
/* Adds the rows' buckets within [first, last]. GPUFL_E_NO_MEMORY. */
NODISCARD gpufl_status timeline_add_rows(struct timeline_sums *sums, const struct row_buffer *rows, unsigned shift,
                                         int64_t first, int64_t last);
/* The shift of the finest level that a segment of these rows should store; 0: none. */
unsigned timeline_finest(const struct row_buffer *rows);
/* Encodes a level as bytes, and decodes it; only buckets in [first, last] (in units of to_shift >= shift) are added. */
void timeline_encode(struct column_coder *coder, const struct timeline_sums *sums, struct bytes *out);
NODISCARD gpufl_status timeline_decode(struct column_coder *coder, enum record_type type, const void *data, size_t size,
                                       unsigned shift, unsigned to_shift, int64_t first, int64_t last,
                                       struct timeline_sums *sums);
/* Sorts, and merges sums of the same track and bucket. */
void timeline_merge(struct timeline_sums *sums);
/* Makes tracks and buckets from merged sums. */
NODISCARD gpufl_status timeline_finish(const struct timeline_sums *sums, unsigned shift, struct timeline *timeline);

#endif
