/* SPDX-License-Identifier: Apache-2.0 */
/* Damaged batches, and buffers that are too small. */
#include "batch_fixture.h"

static const struct {
    const char *line;
    const char *place; /* the error is at the first occurrence of this text */
    const char *reason;
} damaged[] = {
#define KERNELS ENVELOPE("kernel_event_batch") "\"columns\":[\"dt_ns\",\"external_id\",\"api_lead_ns\"],"
    {KERNELS "\"rows\":[[1,2,3],[4,5]]}", "[4,5]", "row has 2 cells, expected 3"},
    {KERNELS "\"rows\":[[1,2,3],[4,5,6,7]]}", "[4,5,6,7]", "row has more than 3 cells"},
    {KERNELS "\"rows\":[[1,2,3],[]]}", "]]}", "row has 0 cells, expected 3"},
    {KERNELS "\"rows\":[[1,2,3],]}", "]}", "expected '['"},
    {KERNELS "\"rows\":[[1,2,3]4]}", "4]}", "expected ',' or ']'"},
    {KERNELS "\"rows\":[[1,2,03]]}", "03]]", "a number must not start with 0"},
    {KERNELS "\"rows\":[[1,2,-]]}", "]]}", "expected a digit"},
    {KERNELS "\"rows\":[[1.5,2,3]]}", "1.5", "column 'dt_ns' needs an integer in range"},
    {KERNELS "\"rows\":[[\"1\",2,3]]}", "\"1\"", "column 'dt_ns' needs a number"},
    {KERNELS "\"rows\":[[[1],2,3]]}", "[1]", "column 'dt_ns' needs a number"},
    {KERNELS "\"rows\":[[null,2,3]]}", "null", "column 'dt_ns' cannot be null"},
    {KERNELS "\"rows\":[[1,-2,3]]}", "-2", "value out of the range of column 'external_id'"},
    {KERNELS "\"rows\":[[9223372036854775808,2,3]]}", "9223", "value out of the range of column 'dt_ns'"},
    {KERNELS "\"rows\":[[1,18446744073709551616,3]]}", "1844", "column 'external_id' needs an integer in range"},
    {KERNELS "\"rows\":[[1,2,-9223372036854775808]]}", "-922", "value out of the range of column 'api_lead_ns'"},
    {KERNELS "\"rows\":[[1,2,nil]]}", "nil", "expected a value"},
    {KERNELS "\"rows\":7}", "7}", "rows must be an array"},
    {KERNELS "\"rows\":[[1,2,3]],\"rows\":[]}", "[]}", "rows twice"},
    {KERNELS "\"rows\":[[1,2,3]],\"cols\":[]}", "[]}", "rows and cols in one line"},
    {KERNELS "\"rows\":[[1,2,3]]}x}", "x}", "unexpected text after the object"},
    {KERNELS "\"rows\":[[1,2,3]] \"seq\":1}", "\"seq\"", "expected ',' or '}'"},
    {KERNELS "\"delta\":[\"dt_ns\"],\"cols\":[[1,2],[3],[4,5]]}", "3],", "columns differ in length"},
    {KERNELS "\"delta\":[\"dt_ns\"],\"cols\":[[1,2],[3,4]]}", "]}", "expected ',': one array per column"},
    {KERNELS "\"delta\":[],\"cols\":[[1],[2],[3],[4]]}", ",[4]", "expected ']' after the last column"},
    {KERNELS "\"delta\":[\"nope\"],\"cols\":[[1],[2],[3]]}", "nope", "delta names a column that is not there"},
    {KERNELS "\"delta\":[1],\"cols\":[[1],[2],[3]]}", "1],\"cols", "delta must be an array of strings"},
    {ENVELOPE("kernel_event_batch") "\"columns\":[\"dt_ns\",\"dt_ns\"],\"rows\":[]}", "dt_ns\"],",
     "column 'dt_ns' twice"},
    {ENVELOPE("kernel_event_batch") "\"columns\":[1],\"rows\":[]}", "1],", "columns must be an array of strings"},
    {ENVELOPE("kernel_event_batch") "\"columns\":{},\"rows\":[]}", "{},", "columns must be an array"},
    {ENVELOPE("kernel_event_batch") "\"rows\":[]}", "{", "columns is missing"},
    {"{\"type\":\"kernel_event_batch\",\"columns\":[],\"rows\":[]}", "{", "base_time_ns is missing"},
    {"{\"version\":\"1\",\"type\":\"kernel_event_batch\",\"columns\":[],\"rows\":[]}", "\"1\"",
     "version must be an integer"},
    {"[]}", "[]}", "expected '{'"},
#undef KERNELS
};

static void damage_is_reported_with_its_byte(void **state)
{
    (void)state;
    struct batch_view view = {0};
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        struct json_error error = {0};
        const char *line = damaged[i].line;
        assert_int_equal(decoded(&view, line, strlen(line), &error), GPUFL_E_DAMAGED);
        assert_string_equal(error.text, damaged[i].reason);
        if (error.column != (uint32_t)(strstr(line, damaged[i].place) - line) + 1)
            fail_msg("byte %u for %s in %s", error.column, error.text, line);
        assert_int_equal(view.row_count, 0);
    }
    struct json_error error = {0};
    assert_int_equal(decoded(&view, "{\"type\":\"shutdown\"}", 19, &error), GPUFL_E_UNSUPPORTED);
    assert_string_equal(error.text, "not a batch type");
    assert_int_equal(decoded(&view, "", 0, NULL), GPUFL_E_DAMAGED);
    batch_view_free(&view);
}

static void every_truncation_is_damage(void **state)
{
    (void)state;
    struct batch_view view = {0};
    for (size_t i = 0; i < sizeof readable / sizeof *readable; i++) {
        const char *close = strrchr(readable[i], '}');
        for (size_t size = 0; size < (size_t)(close - readable[i]); size++) {
            struct json_error error = {0};
            assert_int_equal(decoded(&view, readable[i], size, &error), GPUFL_E_DAMAGED);
            assert_true(error.column >= 1 && error.column <= size + 1 && error.text[0]);
        }
    }
    batch_view_free(&view);
}

static void damaged_bytes_never_crash(void **state)
{
    (void)state;
    static const char bytes[] = "\"\\,[]{}:-0915.eEtfn \x01\xFF";
    struct batch_view view = {0};
    uint64_t random = 99;
    for (int i = 0; i < 30000; i++) {
        char line[1024];
        const char *origin = readable[(size_t)i % (sizeof readable / sizeof *readable)];
        size_t size = strlen(origin);
        memcpy(line, origin, size);
        for (uint64_t edits = 1 + (random_next(&random) >> 40) % 3; edits; edits--)
            line[(random_next(&random) >> 20) % size] = bytes[(random_next(&random) >> 20) % (sizeof bytes - 1)];
        struct json_error error = {0};
        if (decoded(&view, line, size, &error) != GPUFL_OK)
            assert_true(error.column >= 1 && error.column <= size + 1 && error.text[0]);
    }
    batch_view_free(&view);
}

static void a_full_buffer_is_reported_not_overrun(void **state)
{
    (void)state;
    struct batch batch;
    struct bytes line = {.limit = 300};
    assert_int_equal(batch_init(&batch, RECORD_KERNEL_EVENT_BATCH, 100), GPUFL_OK);
    while (batch_row(&batch)) {
    }
    batch_encode(&batch, SESSION, "", &line);
    assert_true(line.failed);
    assert_int_equal(batch.row_count, 0);
    struct bytes whole = {0}, out = {.limit = 300};
    while (batch_row(&batch)) {
    }
    batch_encode(&batch, SESSION, "", &whole);
    bytes_append_char(&whole, '}');
    assert_int_equal(batch_transpose(whole.data, whole.size, &out), GPUFL_E_NO_MEMORY);
    bytes_free(&whole);
    bytes_free(&line);
    bytes_free(&out);
    batch_free(&batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damage_is_reported_with_its_byte),
        cmocka_unit_test(every_truncation_is_damage),
        cmocka_unit_test(damaged_bytes_never_crash),
        cmocka_unit_test(a_full_buffer_is_reported_not_overrun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
