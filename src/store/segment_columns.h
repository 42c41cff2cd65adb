/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the columns a segment is stored with. The sender of a batch chooses its columns, and each distinct set stays
 * in the store's tables and memory for good. The first COLUMN_SETS_MAX sets of a type are therefore stored as they are,
 * later ones with all columns of the type, unknown where the sender had none. One list per process; thread-safe. */
#ifndef GPUFL_STORE_SEGMENT_COLUMNS_H
#define GPUFL_STORE_SEGMENT_COLUMNS_H

#include "store/row_buffer.h"

enum { COLUMN_SETS_MAX = 64 }; /* per type */

/* The present columns, or more (1 << column). */
uint64_t segment_columns(const struct row_buffer *rows);

#endif
