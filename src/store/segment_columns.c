/* SPDX-License-Identifier: Apache-2.0 */
#include "store/segment_columns.h"

#include <pthread.h>

static struct {
    pthread_mutex_t lock;
    uint64_t sets[RECORD_TYPE_COUNT][COLUMN_SETS_MAX];
    unsigned counts[RECORD_TYPE_COUNT];
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* All columns except missing times: a row with unknown duration differs from a row of a type without durations. */
static uint64_t columns_wide(const struct row_buffer *rows)
{
    uint64_t wide = rows->present;
    for (int i = 0; i < (int)rows->info->column_count && i < ROW_COLUMNS_MAX; i++)
        if (i != rows->time_column && i != rows->duration_column)
            wide |= UINT64_C(1) << i;
    return wide;
}

uint64_t segment_columns(const struct row_buffer *rows)
{
    const uint64_t wide = columns_wide(rows);
    uint64_t *sets = known.sets[rows->info->type];
    unsigned *count = &known.counts[rows->info->type], i = 0;
    if (rows->present == wide)
        return wide;
    pthread_mutex_lock(&known.lock);
    while (i < *count && sets[i] != rows->present)
        i++;
    if (i == *count && i < COLUMN_SETS_MAX)
        sets[(*count)++] = rows->present;
    pthread_mutex_unlock(&known.lock);
    return i < COLUMN_SETS_MAX ? rows->present : wide;
}
