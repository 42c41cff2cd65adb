/* SPDX-License-Identifier: Apache-2.0 */
/* Merges the small segments of one candidate into fewer large ones: the caller's thread reads and encodes them, the
 * writer thread replaces them. Private to the SQLite engine. */
#ifndef GPUFL_STORE_SQLITE_MERGE_H
#define GPUFL_STORE_SQLITE_MERGE_H

#include "store/sqlite_store.h"

/* Small: less than three quarters of the rows of a full segment; for records less than 256 KiB. */
enum { SMALL_ROWS = 49152, SMALL_BYTES = 262144 };

struct merged_segment {
    struct segment segment;
    int64_t position;
};
struct merge {
    struct merge_candidate candidate;
    struct stored_segments inputs;
    struct merged_segment *outputs;
    size_t output_count, output_capacity;
};

void merge_free(struct merge *merge);
/* Reads the inputs of the candidate and makes the outputs. No inputs: merging would gain nothing. GPUFL_E_DAMAGED: an
 * input cannot be read. */
NODISCARD gpufl_status merge_make(struct sqlite_store *store, struct connection *reader, struct column_coder *coder,
                                  struct merge *merge, struct problem *problem);
/* Writer thread only. GPUFL_E_NOT_FOUND: the session was deleted meanwhile. */
NODISCARD gpufl_status merge_apply(struct sqlite_store *store, struct connection *connection, const struct merge *merge,
                                   struct problem *problem);

#endif
