/* SPDX-License-Identifier: Apache-2.0 */
/* One cell as text, shared by the two writers of batches (private to src/format). */
#ifndef GPUFL_FORMAT_BATCH_CELL_H
#define GPUFL_FORMAT_BATCH_CELL_H

#include "format/batch.h"

#define BATCH_COLUMNS_MAX 128 /* per line, including unknown ones */
#define CELL_SIZE_MAX 25      /* "-1.7976931348623157e+308" */

char *cell_put_f64(char *at, int64_t bits);

/* Writes the cell at `at` (room for CELL_SIZE_MAX bytes) and returns the end. */
static inline char *cell_put(char *at, int64_t cell, const struct column_info *info)
{
    if ((uint64_t)cell < 10 && info->type != CELL_F64) {
        *at = (char)('0' + cell);
        return at + 1;
    }
    if (info->type == CELL_F64)
        return cell_put_f64(at, cell);
    if (info->is_nullable && cell == CELL_UNKNOWN) {
        memcpy(at, "null", 4);
        return at + 4;
    }
    return info->type == CELL_U64 ? digits_u64(at, (uint64_t)cell) : digits_i64(at, cell);
}

#endif
