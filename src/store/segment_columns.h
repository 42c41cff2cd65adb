/* SPDX-License-Identifier: Apache-2.0 */
/* Which columns a segment is stored with. The sender of a batch chooses its columns, and each set of them stays in the
 * store's tables and memory for good: the first sets of a type are stored as they come, those beyond with all columns of
 * the type, unknown where the sender had none. One list for the process; any thread. */
#ifndef GPUFL_STORE_SEGMENT_COLUMNS_H
#define GPUFL_STORE_SEGMENT_COLUMNS_H

#include "store/row_buffer.h"

enum { COLUMN_SETS_MAX = 64 }; /* of a type */

/* The present columns, or more (1 << column). */
uint64_t segment_columns(const struct row_buffer *rows);

#endif
