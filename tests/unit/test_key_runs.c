/* SPDX-License-Identifier: Apache-2.0 */
/* Two optimizations for reading large sessions: merging sorted runs of keys, and reading cells of one digit. */
#include "batch_fixture.h"

#include "analysis/statistics.h"

#include <stdio.h>

struct row {
    int64_t key;
    uint32_t index;
};

static int compare_rows(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static void assert_ordered(const int64_t *keys, size_t count, bool is_expected)
{
    uint32_t *order = calloc(count + 1, sizeof *order), *scratch = calloc(count + 1, sizeof *scratch);
    struct row *rows = calloc(count + 1, sizeof *rows);
    for (size_t i = 0; i < count; i++)
        rows[i] = (struct row){keys[i], (uint32_t)i};
    qsort(rows, count, sizeof *rows, compare_rows);
    assert_int_equal(runs_order(keys, count, order, scratch), is_expected);
    if (!is_expected)
        keys_order(keys, count, order, scratch);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(order[i], rows[i].index);
    free(order);
    free(scratch);
    free(rows);
}

static void interleaved_buffers_of_threads_are_merged_stably(void **state)
{
    (void)state;
    enum { run = 100, runs = 60 };
    static int64_t keys[run * runs];
    uint64_t seed = 7;
    for (int threads = 1; threads <= 9; threads++) {
        int64_t clocks[9] = {0};
        for (size_t i = 0; i < run * runs; i++) {
            int64_t *clock = &clocks[i / run % (size_t)threads];
            *clock += (int64_t)(random_next(&seed) % 3); /* many equal keys, within and between runs */
            keys[i] = *clock - 50;
        }
        assert_ordered(keys, run * runs, true);
    }
}

static void keys_without_runs_are_left_to_the_radix_sort(void **state)
{
    (void)state;
    enum { count = 5000, descending = 70 };
    static int64_t keys[count];
    uint64_t seed = 3;
    for (size_t i = 0; i < count; i++)
        keys[i] = (int64_t)random_next(&seed);
    assert_ordered(keys, count, false);
    /* Long runs, each below the previous one: more chains than there is room for. */
    for (size_t i = 0; i < count; i++)
        keys[i] = (int64_t)(i % (count / descending)) - (int64_t)(i / (count / descending)) * 1000;
    assert_ordered(keys, count, false);
    assert_ordered(keys, 0, false);
    assert_ordered(keys, count / descending, true);
}

static void cells_of_one_digit_are_read_correctly(void **state)
{
    (void)state;
    enum { rows_max = 40 };
    static const char *const texts[] = {"0", "7", "9", "-3", "12", "345", "null", " 4", "8 ", "1e1", "5.0"};
    static const int64_t values[] = {0, 7, 9, -3, 12, 345, CELL_UNKNOWN, 4, 8, 10, 5};
    uint64_t seed = 11;
    struct batch_view view = {0};
    for (int round = 0; round < 3000; round++) {
        char line[4096];
        int64_t expected[rows_max];
        unsigned rows = 1 + (unsigned)(random_next(&seed) % rows_max), kinds = round % 2 ? 3 : 11;
        int size = snprintf(line, sizeof line, "%s\"columns\":[\"dt_ns\",\"api_lead_ns\"],\"cols\":[[",
                            ENVELOPE("kernel_event_batch"));
        for (unsigned column = 0; column < 2; column++) {
            for (unsigned i = 0; i < rows; i++) {
                size_t kind = column ? random_next(&seed) % kinds : i % 3;
                expected[i] = values[kind];
                size += snprintf(line + size, sizeof line - (size_t)size, "%s%s", i ? "," : "", texts[kind]);
            }
            size += snprintf(line + size, sizeof line - (size_t)size, column ? "]]}" : "],[");
        }
        struct json_error error = {0};
        if (decoded(&view, line, (size_t)size, &error) != GPUFL_OK)
            fail_msg("%s in %s", error.text, line);
        assert_int_equal(view.row_count, rows);
        for (unsigned i = 0; i < rows; i++) {
            assert_int_equal(view.columns[KERNEL_DT_NS].cells[i], values[i % 3]);
            assert_int_equal(view.columns[KERNEL_API_LEAD_NS].cells[i], expected[i]);
        }
    }
    batch_view_free(&view);
}

static void bytes_adjacent_to_the_digits_are_not_digits(void **state)
{
    (void)state;
    struct batch_view view = {0};
    for (unsigned byte = 1; byte < 256; byte++) {
        if ((byte >= '0' && byte <= '9') || byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r')
            continue;
        char line[256];
        int size = snprintf(line, sizeof line, "%s\"columns\":[\"dt_ns\"],\"cols\":[[1,2,3,4,5,%c,7,8,9]]}",
                            ENVELOPE("kernel_event_batch"), (char)byte);
        struct json_error error = {0};
        assert_int_not_equal(decoded(&view, line, (size_t)size, &error), GPUFL_OK);
        *(strstr(line, "1,2") + 1) = (char)(byte == ',' ? ';' : byte);
        assert_int_not_equal(decoded(&view, line, (size_t)size, &error), GPUFL_OK);
    }
    batch_view_free(&view);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interleaved_buffers_of_threads_are_merged_stably),
        cmocka_unit_test(keys_without_runs_are_left_to_the_radix_sort),
        cmocka_unit_test(cells_of_one_digit_are_read_correctly),
        cmocka_unit_test(bytes_adjacent_to_the_digits_are_not_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
