/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of one batch type as columns in memory, with absolute times: batches are collected here before they become a
 * segment, and segments are decoded into it. Owns its cells. One thread at a time. */
#ifndef GPUFL_STORE_ROW_BUFFER_H
#define GPUFL_STORE_ROW_BUFFER_H

#include "format/batch.h"
#include "store/column_codec.h"

enum { ROW_COLUMNS_MAX = 64, SEGMENT_ROWS = 65536 };
/* As in src/analysis: times outside 1970 to 2116 are damage. */
#define ROW_TIME_MAX_NS (INT64_C(1) << 62)

struct row_buffer {
    const struct record_info *info;
    uint32_t row_count, row_capacity;
    int time_column, duration_column; /* -1: the type has none */
    uint64_t present;                 /* 1 << column */
    int64_t *columns[ROW_COLUMNS_MAX];
};

/* Index of the catalogue's column of that name, or -1. */
int record_column_find(const struct record_info *info, const char *name, size_t size);
/* The value of an unknown cell: NaN in columns of fractions. */
int64_t cell_unknown(const struct column_info *column);

/* The buffer starts zeroed. */
void row_buffer_start(struct row_buffer *buffer, const struct record_info *info);
void row_buffer_free(struct row_buffer *buffer);
void row_buffer_clear(struct row_buffer *buffer);
size_t row_buffer_bytes(const struct row_buffer *buffer);
/* Reserves room for count more rows in every present column and in those of `extra` (1 << column). */
bool row_buffer_reserve(struct row_buffer *buffer, uint32_t count, uint64_t extra);
/* Appends rows [from, from + count) of the view. False: out of memory; the buffer is unchanged. */
bool row_buffer_append(struct row_buffer *buffer, const struct batch_view *view, uint32_t from, uint32_t count);
bool row_buffer_join(struct row_buffer *buffer, const struct row_buffer *other, uint32_t from, uint32_t count);

/* Sums of untrusted values saturate. */
static inline void sum_add_ns(int64_t *sum, int64_t value)
{
    if (__builtin_add_overflow(*sum, value, sum))
        *sum = INT64_MAX;
}
/* Start and end of a row; false when they are impossible. */
static inline bool row_times(const struct row_buffer *buffer, uint32_t row, int64_t *start_ns, int64_t *end_ns)
{
    if (buffer->time_column < 0 || !(buffer->present >> buffer->time_column & 1))
        return false;
    int64_t start = buffer->columns[buffer->time_column][row], duration = 0;
    if (buffer->duration_column >= 0 && (buffer->present >> buffer->duration_column & 1)) {
        duration = buffer->columns[buffer->duration_column][row];
        if (duration == CELL_UNKNOWN && buffer->info->columns[buffer->duration_column].is_nullable)
            duration = 0;
    }
    *start_ns = start;
    *end_ns = start + (duration >= 0 && duration < ROW_TIME_MAX_NS ? duration : 0);
    return start >= 0 && start <= ROW_TIME_MAX_NS && duration >= 0 && duration < ROW_TIME_MAX_NS;
}
/* Time span of all rows with possible times; false when there are none. */
bool row_buffer_span(const struct row_buffer *buffer, int64_t *min_ns, int64_t *max_ns);
/* Keeps only rows that overlap [from, to); drops rows without a possible time. */
void row_buffer_cut(struct row_buffer *buffer, int64_t from_ns, int64_t to_ns);
/* A view of all rows with times relative to base_time_ns. columns: room for info->column_count entries. This changes
 * the buffer's times, so it can be called once only. */
void row_buffer_view(struct row_buffer *buffer, struct batch_view *view, struct batch_column *columns);

/* Encodes a segment: columns of a buffer (1 << column; the present ones or more) in catalogue order, each with its size
 * and CRC-32C. */
void segment_encode(struct column_coder *coder, const struct row_buffer *buffer, uint64_t columns, struct bytes *out);
/* order: for each stored column its catalogue index, or -1 if the catalogue no longer has it. Only wanted columns (1 <<
 * column; 0: all) are decoded. Initializes and fills the buffer; on GPUFL_E_DAMAGED it is empty. */
NODISCARD gpufl_status segment_decode(struct column_coder *coder, const void *data, size_t size, const int *order,
                                      unsigned order_count, uint64_t wanted, struct row_buffer *buffer);

#endif
