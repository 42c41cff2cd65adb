/* SPDX-License-Identifier: Apache-2.0 */
/* Column batches: most of the content of every log.
 *
 * Encoding: the owner fills rows of int64 cells (one cell per column of the catalogue entry, in catalogue order; f64
 * cells hold the double's bits) and calls batch_encode, which writes one line's JSON object with columns in catalogue
 * order. Optional columns are omitted if no row needs them.
 *
 * Decoding: batch_decode reads a line into columns by name. Two forms are supported: v1's "rows":[[..],..], and
 * "cols":[[..],..] with "delta":[names], the column-major form of sealed segments, where the columns named in delta
 * hold differences to the previous row. Unknown columns are skipped; missing columns have present = false. */
#ifndef GPUFL_FORMAT_BATCH_H
#define GPUFL_FORMAT_BATCH_H

#include "base/bytes.h"
#include "base/status.h"
#include "format/catalogue.h"

#define CELL_UNKNOWN INT64_MIN /* null */

/* Catalogue (generated from schema/records.json as catalogue.h/.c):
 *   enum record_type { RECORD_UNKNOWN, RECORD_KERNEL_EVENT_BATCH, ..., RECORD_TYPE_COUNT };
 *   enum channel { CHANNEL_DEVICE, CHANNEL_SCOPE, CHANNEL_SYSTEM, CHANNEL_SASS, CHANNEL_COUNT };
 *   enum { KERNEL_DT_NS, KERNEL_KERNEL_ID, ..., KERNEL_COLUMN_COUNT };   column indexes per batch type,
 *        prefix = the type without _event_batch/_batch, upper case (KERNEL_, LAUNCH_CONFIG_, MEMCPY_, ...)
 *   struct column_info { const char *name; enum cell_type type; bool nullable, optional; };
 *   struct record_info { const char *name; enum record_type type; int version; enum channel channel (or CHANNEL_COUNT = all);
 *                        bool is_batch; const struct column_info *columns; unsigned column_count; };
 *   extern const struct record_info record_catalogue[RECORD_TYPE_COUNT];
 *   enum record_type record_type_of(const char *name, size_t size);
 *   extern const char *const channel_names[CHANNEL_COUNT]; */

struct batch {
    const struct record_info *info;
    int64_t *cells; /* row-major while encoding: cells[row * column_count + column] */
    uint32_t row_count, row_capacity;
    int64_t base_time_ns;
    uint64_t batch_id; /* of the last line written */
};

NODISCARD gpufl_status batch_init(struct batch *batch, enum record_type type, uint32_t row_capacity);
void batch_free(struct batch *batch);
/* A new zeroed row; NULL: full (encode and clear first). The owner sets base_time_ns with the first row. */
int64_t *batch_row(struct batch *batch);
static inline bool batch_is_full(const struct batch *batch)
{
    return batch->row_count == batch->row_capacity;
}
/* Appends {"version":..,"type":..,"session_id":..,"batch_id":..,"base_time_ns":..,<extra>"columns":[..],"rows":[..]
 * WITHOUT the closing brace (the log writer adds seq and crc), increments
 * batch_id and clears the rows. extra: raw JSON members with trailing comma, or "". */
void batch_encode(struct batch *batch, const char *session_id, const char *extra, struct bytes *out);

struct batch_column {
    int64_t *cells; /* [row_count], NULL unless present; owned by the batch_view; CELL_UNKNOWN = null (f64: NaN) */
    bool present;
};

struct batch_view {
    const struct record_info *info;
    int64_t version, batch_id, base_time_ns, seq;
    uint32_t row_count;
    struct batch_column *columns; /* [info->column_count], catalogue order */
    uint32_t row_capacity;        /* the distance of two columns' cells in storage */
    int64_t *storage;             /* reused for each line */
    size_t storage_cells;
    const char *session_id; /* points into the line */
    uint32_t session_id_size;
};

/* Reads one line (without LF). The view must start zeroed. GPUFL_E_DAMAGED: error (may be NULL) has position (column =
 * byte offset from 1) and reason; GPUFL_E_UNSUPPORTED: not a batch type of the catalogue. seq -1: none. */
struct json_error;
NODISCARD gpufl_status batch_decode(struct batch_view *view, const char *line, size_t size, struct json_error *error);
void batch_view_free(struct batch_view *view);
/* Appends a batch line in the cols/delta form (complete line with seq, without crc and LF). The input may end with its
 * seq and crc or lack them. GPUFL_E_UNSUPPORTED: it has columns that the catalogue lacks; keep the line unchanged. */
NODISCARD gpufl_status batch_transpose(const char *line, size_t size, struct bytes *out);
/* The reverse, to v1's rows, with the same rules. A line in the rows form keeps its form. */
NODISCARD gpufl_status batch_expand(const char *line, size_t size, struct bytes *out);

#endif
