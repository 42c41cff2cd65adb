/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "format/batch.h"
#include "store/row_buffer.h"
#include "store/sequence_set.h"

#include <stdlib.h>

enum { MOST = 70000 };

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

static size_t round_trip(struct column_coder *coder, const int64_t *cells, size_t count)
{
    struct bytes bytes = {0};
    int64_t *read = malloc(count * sizeof *read);
    assert_non_null(read);
    column_encode(coder, cells, count, &bytes);
    assert_false(bytes.failed);
    assert_int_equal(column_decode(coder, bytes.data, bytes.size, read, count), GPUFL_OK);
    assert_memory_equal(read, cells, count * sizeof *read);
    size_t size = bytes.size;
    /* Every shorter prefix is rejected, and so is a longer input. */
    for (size_t cut = 0; cut < size; cut += size / 50 + 1)
        assert_int_equal(column_decode(coder, bytes.data, cut, read, count), GPUFL_E_DAMAGED);
    bytes_append_char(&bytes, 0);
    assert_int_equal(column_decode(coder, bytes.data, bytes.size, read, count), GPUFL_E_DAMAGED);
    bytes_free(&bytes);
    free(read);
    return size;
}

static void columns_survive_a_round_trip(void **state)
{
    static const size_t counts[] = {1, 2, 7, 8, 9, 63, 64, 1000, 65536, MOST};
    struct column_coder coder;
    int64_t *cells = malloc(MOST * sizeof *cells);
    uint64_t random = 88172645463325252;
    (void)state;
    assert_non_null(cells);
    column_coder_init(&coder, 1);
    for (int kind = 0; kind < 9; kind++) {
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            for (size_t i = 0; i < counts[c]; i++) {
                uint64_t noise = random_next(&random);
                const int64_t values[9] = {42,
                                           CELL_UNKNOWN,
                                           (int64_t)i * 3,
                                           (int64_t)noise,
                                           (int64_t)(noise % 100),
                                           noise % 3 ? (int64_t)(noise % 1000) - 500 : CELL_UNKNOWN,
                                           noise % 2 ? INT64_MAX : INT64_MIN + 1,
                                           INT64_C(1789000000000000000) + (int64_t)(i * 2000 + noise % 100),
                                           i % 2 ? CELL_UNKNOWN : INT64_MAX};
                cells[i] = values[kind];
            }
            round_trip(&coder, cells, counts[c]);
        }
    }
    column_coder_free(&coder);
    free(cells);
}

static void repeated_values_cost_almost_nothing(void **state)
{
    struct column_coder coder;
    int64_t *cells = malloc(65536 * sizeof *cells);
    (void)state;
    assert_non_null(cells);
    column_coder_init(&coder, 1);
    for (size_t i = 0; i < 65536; i++)
        cells[i] = 4711;
    assert_true(round_trip(&coder, cells, 65536) < 8);
    for (size_t i = 0; i < 65536; i++)
        cells[i] = INT64_C(1) << 60 | (int64_t)(5 * i);
    assert_true(round_trip(&coder, cells, 65536) < 64);
    for (size_t i = 0; i < 65536; i++)
        cells[i] = CELL_UNKNOWN;
    assert_true(round_trip(&coder, cells, 65536) < 4);
    column_coder_free(&coder);
    free(cells);
}

static void damaged_columns_are_rejected_or_decoded_but_never_crash(void **state)
{
    struct column_coder coder;
    struct bytes bytes = {0};
    int64_t cells[500];
    uint64_t random = 1234567;
    (void)state;
    column_coder_init(&coder, 1);
    for (size_t i = 0; i < 500; i++)
        cells[i] = i % 7 ? (int64_t)(i * i) : CELL_UNKNOWN;
    column_encode(&coder, cells, 500, &bytes);
    for (int round = 0; round < 20000; round++) {
        size_t at = random_next(&random) % bytes.size;
        char before = bytes.data[at];
        bytes.data[at] = (char)random_next(&random);
        gpufl_status status = column_decode(&coder, bytes.data, bytes.size, cells, 500);
        assert_true(status == GPUFL_OK || status == GPUFL_E_DAMAGED);
        bytes.data[at] = before;
    }
    bytes_free(&bytes);
    column_coder_free(&coder);
}

static void a_segment_detects_every_changed_byte(void **state)
{
    struct column_coder coder;
    struct row_buffer rows = {0}, read = {0};
    struct bytes bytes = {0};
    struct batch_column columns[MEMCPY_COLUMN_COUNT] = {{0}};
    int64_t cells[3][100];
    int order[ROW_COLUMNS_MAX];
    unsigned count = 0;
    (void)state;
    column_coder_init(&coder, 1);
    const unsigned present[3] = {MEMCPY_DT_NS, MEMCPY_DURATION_NS, MEMCPY_BYTES};
    for (int c = 0; c < 3; c++) {
        columns[present[c]] = (struct batch_column){.cells = cells[c], .present = true};
        for (int i = 0; i < 100; i++)
            cells[c][i] = i * (c + 1);
    }
    const struct batch_view view = {.info = &record_catalogue[RECORD_MEMCPY_EVENT_BATCH],
                                    .base_time_ns = 1000,
                                    .row_count = 100,
                                    .columns = columns};
    row_buffer_start(&rows, view.info);
    assert_true(row_buffer_append(&rows, &view, 0, 100));
    assert_true(row_buffer_append(&rows, &view, 50, 10));
    segment_encode(&coder, &rows, rows.present, &bytes);
    for (int i = 0; i < MEMCPY_COLUMN_COUNT; i++)
        if (rows.present >> i & 1)
            order[count++] = i;
    row_buffer_start(&read, view.info);
    assert_int_equal(segment_decode(&coder, bytes.data, bytes.size, order, count, 0, &read), GPUFL_OK);
    assert_int_equal(read.row_count, 110);
    assert_int_equal(read.columns[MEMCPY_DT_NS][105], 1055);
    assert_int_equal(read.columns[MEMCPY_BYTES][99], 297);
    for (size_t i = 0; i < bytes.size; i++) {
        bytes.data[i] = (char)(bytes.data[i] ^ 0x20);
        assert_int_not_equal(segment_decode(&coder, bytes.data, bytes.size, order, count, 0, &read), GPUFL_OK);
        bytes.data[i] = (char)(bytes.data[i] ^ 0x20);
    }
    row_buffer_free(&rows);
    row_buffer_free(&read);
    bytes_free(&bytes);
    column_coder_free(&coder);
}

static void numbers_merge_into_ranges_in_any_order(void **state)
{
    struct sequence_set set = {0}, read = {0};
    struct bytes bytes = {0};
    bool model[400] = {false};
    uint64_t random = 99;
    (void)state;
    for (int round = 0; round < 300; round++) {
        uint64_t first = random_next(&random) % 380, last = first + random_next(&random) % 20;
        bool meets = false;
        for (uint64_t i = first; i <= last; i++)
            meets |= model[i];
        assert_int_equal(sequence_set_meets(&set, first, last), meets);
        assert_int_equal(sequence_set_add(&set, first, last), GPUFL_OK);
        for (uint64_t i = first; i <= last; i++)
            model[i] = true;
        for (uint64_t i = 0; i < 400; i++)
            assert_int_equal(sequence_set_has(&set, i), model[i]);
        for (size_t i = 1; i < set.count; i++)
            assert_true(set.ranges[i].first > set.ranges[i - 1].last + 1);
        if (round % 50 == 10)
            sequence_set_free(&set), memset(model, 0, sizeof model);
    }
    assert_int_equal(sequence_set_add(&set, UINT64_MAX - 1, UINT64_MAX), GPUFL_OK);
    sequence_set_encode(&set, &bytes);
    assert_int_equal(sequence_set_decode(&read, bytes.data, bytes.size), GPUFL_OK);
    assert_int_equal(read.count, set.count);
    assert_memory_equal(read.ranges, set.ranges, set.count * sizeof *set.ranges);
    assert_int_equal(sequence_set_decode(&read, bytes.data, bytes.size - 1), GPUFL_E_DAMAGED);
    sequence_set_free(&set);
    sequence_set_free(&read);
    bytes_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_survive_a_round_trip),
        cmocka_unit_test(repeated_values_cost_almost_nothing),
        cmocka_unit_test(damaged_columns_are_rejected_or_decoded_but_never_crash),
        cmocka_unit_test(a_segment_detects_every_changed_byte),
        cmocka_unit_test(numbers_merge_into_ranges_in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
