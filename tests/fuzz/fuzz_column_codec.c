/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes for all decoders of the store's tables: columns, segments, lines, timeline levels, sets of numbers,
 * sums of metrics. Decoded values must survive encoding and decoding again. */
#include "store/write_unit.h"

#include <stdlib.h>

static void column_try(struct column_coder *coder, const uint8_t *data, size_t size)
{
    if (size < 2)
        return;
    size_t count = (size_t)(data[0] | data[1] << 8) + 1;
    int64_t *cells = malloc(2 * count * sizeof *cells);
    struct bytes bytes = {0};
    if (cells && column_decode(coder, data + 2, size - 2, cells, count) == GPUFL_OK) {
        column_encode(coder, cells, count, &bytes);
        if (bytes.failed || column_decode(coder, bytes.data, bytes.size, cells + count, count) ||
            memcmp(cells, cells + count, count * sizeof *cells) != 0)
            abort();
    }
    bytes_free(&bytes);
    free(cells);
}

static void segment_try(struct column_coder *coder, const uint8_t *data, size_t size)
{
    struct row_buffer rows = {0};
    struct segment segment = {0};
    int order[KERNEL_COLUMN_COUNT];
    for (int i = 0; i < KERNEL_COLUMN_COUNT; i++)
        order[i] = i == 5 ? -1 : i;
    if (!size)
        return;
    unsigned count = data[0] % (KERNEL_COLUMN_COUNT + 1);
    row_buffer_start(&rows, &record_catalogue[RECORD_KERNEL_EVENT_BATCH]);
    if (!segment_decode(coder, data + 1, size - 1, order, count, 0, &rows) && !segment_make(coder, &rows, &segment)) {
        struct timeline_sums sums = {0};
        (void)!timeline_add_rows(&sums, &rows, 20, 0, 1000);
        timeline_sums_free(&sums);
    }
    segment_free(&segment);
    row_buffer_free(&rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct column_coder coder;
    struct bytes lines = {0};
    struct sequence_set set = {0};
    struct timeline_sums sums = {0};
    struct metric_cell cells[ROW_COLUMNS_MAX] = {{0}};
    const int order[4] = {0, 1, -1, 3};
    if (!size)
        return 0;
    column_coder_init(&coder, 1);
    switch (data[0] % 6) {
    case 0:
        column_try(&coder, data + 1, size - 1);
        break;
    case 1:
        segment_try(&coder, data + 1, size - 1);
        break;
    case 2:
        (void)!lines_decode(&coder, data + 1, size - 1, &lines);
        break;
    case 3:
        if (!sequence_set_decode(&set, data + 1, size - 1)) {
            sequence_set_encode(&set, &lines);
            (void)!sequence_set_add(&set, size, size + 5);
        }
        break;
    case 4:
        if (!timeline_decode(&coder, RECORD_KERNEL_EVENT_BATCH, data + 1, size - 1, 10, 14, 0, INT64_MAX, &sums))
            timeline_merge(&sums);
        break;
    default:
        (void)!metric_cells_add(cells, data + 1, size - 1, order, 4);
        break;
    }
    bytes_free(&lines);
    sequence_set_free(&set);
    timeline_sums_free(&sums);
    column_coder_free(&coder);
    return 0;
}
