/* SPDX-License-Identifier: Apache-2.0 */
/* RowBinary in both directions, damaged answers, quoting, and the line numbers of a write as bytes. */
#include "store/clickhouse_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static struct ch_rows rows_of(const struct bytes *bytes)
{
    struct ch_rows rows = {0};
    bytes_append(&rows.body, bytes->data, bytes->size);
    return rows;
}

static void rows_survive_a_round_trip(void **state)
{
    struct bytes out = {0};
    size_t size;
    double fraction = 0.25;
    (void)state;
    for (int i = 0; i < 3; i++) {
        ch_put_u8(&out, 7);
        ch_put_text(&out, "name");
        ch_put_i64(&out, INT64_MIN);
        ch_put_blob(&out, "a\0b", 3);
        ch_put(&out, &fraction, sizeof fraction);
        ch_put_text(&out, "");
        ch_put_u32(&out, UINT32_MAX);
    }
    struct ch_rows rows = rows_of(&out);
    for (int i = 0; i < 3; i++) {
        assert_true(ch_rows_next(&rows));
        assert_int_equal(ch_u8(&rows), 7);
        assert_string_equal(ch_text(&rows, NULL), "name");
        assert_true(ch_i64(&rows) == INT64_MIN);
        assert_memory_equal(ch_text(&rows, &size), "a\0b", 4);
        assert_int_equal(size, 3);
        assert_true(ch_f64(&rows) == 0.25);
        assert_string_equal(ch_text(&rows, NULL), "");
        assert_int_equal(ch_u32(&rows), UINT32_MAX);
    }
    assert_false(ch_rows_next(&rows));
    assert_false(rows.is_damaged);
    ch_rows_free(&rows);
    bytes_free(&out);
}

static void an_answer_truncated_anywhere_is_damaged(void **state)
{
    struct bytes out = {0};
    (void)state;
    ch_put_text(&out, "some text");
    ch_put_u64(&out, 5);
    ch_put_u8(&out, 2); /* an array of two */
    ch_put_u64(&out, 1);
    ch_put_u64(&out, 2);
    for (size_t cut = 1; cut < out.size; cut++) {
        struct ch_rows rows = {0};
        bytes_append(&rows.body, out.data, cut);
        ch_text(&rows, NULL);
        ch_u64(&rows);
        for (size_t i = ch_count(&rows); i > 0; i--)
            ch_u64(&rows);
        assert_true(rows.is_damaged);
        assert_false(ch_rows_next(&rows));
        ch_rows_free(&rows);
    }
    bytes_free(&out);
}

/* Writes the head of an answer with the types of its columns. */
static void describe(struct bytes *out, const char *const *types, unsigned count)
{
    ch_put_u8(out, (uint8_t)count);
    for (unsigned i = 0; i < count; i++)
        ch_put_text(out, "a name");
    for (unsigned i = 0; i < count; i++)
        ch_put_text(out, types[i]);
}

static void values_are_decoded_with_the_types_in_the_answer(void **state)
{
    static const char *const types[] = {"Nullable(UInt32)", "Int8",           "LowCardinality(String)",
                                        "Array(UInt16)",    "Array(String)",  "Nullable(String)",
                                        "Float64",          "Array(Float64)", "UInt64"};
    const uint16_t small[] = {1, UINT16_MAX};
    const double fraction = 0.25;
    struct bytes out = {0};
    (void)state;
    describe(&out, types, sizeof types / sizeof *types);
    for (int i = 0; i < 3; i++) {
        ch_put_u8(&out, 0);
        ch_put_u32(&out, UINT32_MAX);
        ch_put_u8(&out, (uint8_t)-5);
        ch_put_text(&out, "name");
        ch_put_u8(&out, 2);
        ch_put(&out, small, sizeof small);
        ch_put_u8(&out, 1);
        ch_put_text(&out, "tag");
        ch_put_u8(&out, 0);
        ch_put_text(&out, "perhaps");
        ch_put(&out, &fraction, sizeof fraction);
        ch_put_u8(&out, 0);
        ch_put_u64(&out, UINT64_MAX);
    }
    struct ch_rows rows = rows_of(&out);
    ch_rows_describe(&rows);
    for (int i = 0; i < 3; i++) {
        assert_true(ch_rows_next(&rows));
        assert_true(ch_u64(&rows) == UINT32_MAX);
        assert_true(ch_i64(&rows) == -5);
        assert_string_equal(ch_text(&rows, NULL), "name");
        assert_int_equal(ch_count(&rows), 2);
        assert_int_equal(ch_u32(&rows), 1);
        assert_int_equal(ch_u64(&rows), UINT16_MAX);
        assert_int_equal(ch_count(&rows), 1);
        assert_string_equal(ch_text(&rows, NULL), "tag");
        assert_string_equal(ch_text(&rows, NULL), "perhaps");
        assert_true(ch_f64(&rows) == 0.25);
        assert_int_equal(ch_count(&rows), 0);
        assert_true(ch_u64(&rows) == UINT64_MAX);
        assert_false(rows.is_damaged);
    }
    assert_false(ch_rows_next(&rows));
    ch_rows_rewind(&rows);
    assert_true(ch_rows_next(&rows));
    assert_true(ch_u64(&rows) == UINT32_MAX);
    ch_rows_free(&rows);
    for (size_t cut = 1; cut < 60; cut++) {
        rows = (struct ch_rows){0};
        bytes_append(&rows.body, out.data, cut);
        ch_rows_describe(&rows);
        assert_true(rows.is_damaged);
        assert_false(ch_rows_next(&rows));
        ch_rows_free(&rows);
    }
    bytes_free(&out);
}

static void a_value_of_an_unexpected_type_is_damaged(void **state)
{
    static const struct {
        const char *type, *value;
        size_t size;
    } cases[] = {
        {"Nullable(UInt64)", "\1", 1}, {"String", "\0", 1},        {"Int64", "\377\377\377\377\377\377\377\377", 8},
        {"Array(UInt64)", "\0", 1},    {"Decimal(9, 2)", "\0", 1}, {"Float64", "\0\0\0\0\0\0\0\0", 8}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bytes out = {0};
        describe(&out, &cases[i].type, 1);
        ch_put(&out, cases[i].value, cases[i].size);
        struct ch_rows rows = rows_of(&out);
        ch_rows_describe(&rows);
        assert_int_equal(ch_u64(&rows), 0);
        assert_true(rows.is_damaged);
        ch_rows_free(&rows);
        bytes_free(&out);
    }
}

static void quoted_text_cannot_end_its_literal(void **state)
{
    struct bytes sql = {0};
    (void)state;
    ch_quote(&sql, "a'; DROP\\'\0z", 12);
    assert_string_equal(bytes_text(&sql), "'a\\'; DROP\\\\\\'\\0z'");
    bytes_free(&sql);
}

static void line_numbers_conflict_only_where_they_are_equal(void **state)
{
    struct sequence_set one[SEQUENCE_KINDS] = {{0}}, two[SEQUENCE_KINDS] = {{0}}, sum[SEQUENCE_KINDS] = {{0}};
    struct bytes bytes = {0};
    (void)state;
    assert_int_equal(sequence_set_add(&one[CHANNEL_DEVICE], 5, 9), GPUFL_OK);
    assert_int_equal(sequence_set_add(&two[CHANNEL_DEVICE], 10, 12), GPUFL_OK);
    assert_int_equal(sequence_set_add(&two[CHANNEL_SCOPE], 5, 9), GPUFL_OK);
    ch_ranges_encode(one, &bytes);
    assert_false(ch_ranges_meet(two, bytes.data, bytes.size));
    assert_int_equal(sequence_set_add(&two[CHANNEL_DEVICE], 9, 9), GPUFL_OK);
    assert_true(ch_ranges_meet(two, bytes.data, bytes.size));
    assert_int_equal(ch_ranges_add(sum, bytes.data, bytes.size), GPUFL_OK);
    assert_true(sequence_set_has(&sum[CHANNEL_DEVICE], 7));
    assert_false(sequence_set_has(&sum[CHANNEL_SCOPE], 7));
    /* Damaged ranges must not count as free of conflicts. */
    for (size_t cut = 1; cut < bytes.size; cut++) {
        assert_true(ch_ranges_meet(two, bytes.data, cut));
        assert_int_equal(ch_ranges_add(sum, bytes.data, cut), GPUFL_E_DAMAGED);
    }
    for (unsigned i = 0; i < SEQUENCE_KINDS; i++) {
        sequence_set_free(&one[i]);
        sequence_set_free(&two[i]);
        sequence_set_free(&sum[i]);
    }
    bytes_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_survive_a_round_trip),
        cmocka_unit_test(an_answer_truncated_anywhere_is_damaged),
        cmocka_unit_test(values_are_decoded_with_the_types_in_the_answer),
        cmocka_unit_test(a_value_of_an_unexpected_type_is_damaged),
        cmocka_unit_test(quoted_text_cannot_end_its_literal),
        cmocka_unit_test(line_numbers_conflict_only_where_they_are_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
