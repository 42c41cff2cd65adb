/* SPDX-License-Identifier: Apache-2.0 */
/* Small segments of one place into fewer large ones: read and encoded by the caller's thread, exchanged by the writer's.
 * Private to the SQLite engine. */
#ifndef GPUFL_STORE_SQLITE_MELTING_H
#define GPUFL_STORE_SQLITE_MELTING_H

#include "store/sqlite_store.h"

/* Small: fewer than three quarters of a whole segment's rows, and for records less than 256 KiB. */
enum { SMALL_ROWS = 49152, SMALL_BYTES = 262144 };

struct melted_segment {
    struct segment segment;
    int64_t position;
};
struct melting {
    struct melting_place place;
    struct stored_segments inputs;
    struct melted_segment *outputs;
    size_t output_count, output_capacity;
};

void melting_free(struct melting *melting);
/* Reads the inputs and makes the outputs of the place. No inputs: nothing is gained there. GPUFL_E_DAMAGED: what is
 * there cannot be read. */
NODISCARD gpufl_status melting_make(struct sqlite_store *store, struct connection *reader, struct column_coder *coder,
                                    struct melting *melting, struct problem *problem);
/* The writer's. GPUFL_E_NOT_FOUND: the session was deleted meanwhile. */
NODISCARD gpufl_status melting_apply(struct sqlite_store *store, struct connection *connection,
                                     const struct melting *melting, struct problem *problem);

#endif
