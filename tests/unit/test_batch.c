/* SPDX-License-Identifier: Apache-2.0 */
#include "batch_fixture.h"

#include "requirement.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int64_t random_cell(const struct column_info *column, uint64_t *state)
{
    static const int64_t edges[] = {0, 1, 9, 10, 99, 100, UINT32_MAX, INT64_MAX};
    uint64_t choice = random_next(state) >> 33, value = random_next(state) >> (choice % 60);
    if (column->is_nullable && choice % 5 == 0)
        return CELL_UNKNOWN;
    if (column->is_optional && choice % 3 == 0)
        return 0;
    switch (column->type) {
    case CELL_U8:
        return (int64_t)(value & 0xFF);
    case CELL_U32:
        return (int64_t)(value & UINT32_MAX);
    case CELL_I32:
        return (int32_t)(uint32_t)value;
    case CELL_F64: {
        double number = (double)(int64_t)value / 7;
        int64_t bits;
        memcpy(&bits, &number, sizeof bits);
        return bits;
    }
    case CELL_U64:
    case CELL_I64:
        break;
    }
    if (choice % 7 == 0)
        return edges[choice / 7 % 8];
    return column->is_nullable && (int64_t)value == CELL_UNKNOWN ? 0 : (int64_t)value;
}

static void decode_ok(struct batch_view *view, const char *line, size_t size)
{
    struct json_error error = {0};
    if (decoded(view, line, size, &error))
        fail_msg("byte %u: %s in %.*s", error.column, error.text, (int)(size < 400 ? size : 400), line);
}

static void assert_views_equal(const struct batch_view *a, const struct batch_view *b)
{
    assert_ptr_equal(a->info, b->info);
    assert_int_equal(a->row_count, b->row_count);
    assert_true(a->version == b->version && a->batch_id == b->batch_id && a->base_time_ns == b->base_time_ns &&
                a->seq == b->seq);
    for (unsigned c = 0; c < a->info->column_count; c++) {
        assert_int_equal(a->columns[c].present, b->columns[c].present);
        if (a->columns[c].present && a->row_count)
            assert_memory_equal(a->columns[c].cells, b->columns[c].cells, a->row_count * sizeof(int64_t));
    }
}

/* Converting back to rows loses nothing: the values are those of the line, and transposing again gives the same
 * text. */
static void check_expanded(const struct bytes *columns, const struct batch_view *expected)
{
    struct bytes rows = {0}, again = {0};
    struct batch_view view = {0};
    assert_int_equal(batch_expand(columns->data, columns->size, &rows), GPUFL_OK);
    assert_non_null(memmem(rows.data, rows.size, "\"rows\":[", 8));
    assert_null(memmem(rows.data, rows.size, "\"delta\":", 8));
    decode_ok(&view, rows.data, rows.size);
    assert_views_equal(expected, &view);
    assert_int_equal(batch_transpose(rows.data, rows.size, &again), GPUFL_OK);
    assert_int_equal(again.size, columns->size);
    assert_memory_equal(again.data, columns->data, columns->size);
    batch_view_free(&view);
    bytes_free(&rows);
    bytes_free(&again);
}

static void check_transposed(const char *line, size_t size, const struct batch_view *expected)
{
    struct bytes columns = {0}, again = {0};
    struct batch_view view = {0};
    assert_int_equal(batch_transpose(line, size, &columns), GPUFL_OK);
    assert_non_null(memmem(columns.data, columns.size, "\"cols\":[[", 9));
    decode_ok(&view, columns.data, columns.size);
    assert_views_equal(expected, &view);
    assert_int_equal(batch_transpose(columns.data, columns.size, &again), GPUFL_OK);
    assert_int_equal(again.size, columns.size);
    assert_memory_equal(again.data, columns.data, columns.size);
    check_expanded(&columns, expected);
    struct json_document document;
    assert_int_equal(json_parse(&document, columns.data, columns.size, NULL), GPUFL_OK);
    assert_null(json_member(document.root, "crc"));
    json_free(&document);
    batch_view_free(&view);
    bytes_free(&columns);
    bytes_free(&again);
}

static void check_round_trip(enum record_type type, uint32_t row_count, uint64_t *state, struct batch_view *view)
{
    struct batch batch;
    struct bytes line = {0};
    assert_int_equal(batch_init(&batch, type, row_count + 1), GPUFL_OK);
    const unsigned column_count = batch.info->column_count;
    int64_t *expected = calloc((size_t)row_count * column_count + 1, sizeof *expected);
    assert_non_null(expected);
    bool is_used[64] = {false};
    batch.base_time_ns = 1760000000000000000;
    batch.batch_id = 41;
    for (uint32_t row = 0; row < row_count; row++) {
        int64_t *cells = batch_row(&batch);
        for (unsigned c = 0; c < column_count; c++) {
            const struct column_info *column = &batch.info->columns[c];
            cells[c] = expected[row * column_count + c] = random_cell(column, state);
            is_used[c] |= cells[c] != (column->is_nullable ? CELL_UNKNOWN : 0);
        }
    }
    batch_encode(&batch, SESSION, "\"hostname\":\"h\\\"x\",", &line);
    assert_false(line.failed);
    assert_int_equal(batch.row_count, 0);
    assert_int_equal(batch.batch_id, 42);
    bytes_append_text(&line, ",\"seq\":9,\"crc\":\"01234567\"}");

    decode_ok(view, line.data, line.size);
    assert_ptr_equal(view->info, &record_catalogue[type]);
    assert_true(view->batch_id == 42 && view->base_time_ns == 1760000000000000000 && view->seq == 9);
    assert_int_equal(view->version, record_catalogue[type].version);
    assert_int_equal(view->row_count, row_count);
    for (unsigned c = 0; c < column_count; c++) {
        assert_int_equal(view->columns[c].present, is_used[c] || !view->info->columns[c].is_optional);
        for (uint32_t row = 0; view->columns[c].present && row < row_count; row++)
            if (view->columns[c].cells[row] != expected[row * column_count + c])
                fail_msg("%s.%s row %u", view->info->name, view->info->columns[c].name, row);
    }
    check_transposed(line.data, line.size, view);
    free(expected);
    bytes_free(&line);
    batch_free(&batch);
}

static void rows_of_every_batch_type_survive_a_round_trip(void **state)
{
    (void)state;
    static const uint32_t counts[] = {0, 1, 2, 7, 300};
    uint64_t random = 20240607;
    struct batch_view view = {0}; /* one for all: its storage is reused for all types */
    for (int type = 1; type < RECORD_TYPE_COUNT; type++)
        for (size_t i = 0; record_catalogue[type].is_batch && i < sizeof counts / sizeof *counts; i++)
            check_round_trip((enum record_type)type, counts[i], &random, &view);
    batch_view_free(&view);
}

static void a_batch_gives_rows_until_it_is_full(void **state)
{
    (void)state;
    struct batch batch;
    assert_int_equal(batch_init(&batch, RECORD_JOB_START, 4), GPUFL_E_INVALID);
    assert_int_equal(batch_init(&batch, RECORD_PROCESS_METRIC_BATCH, 2), GPUFL_OK);
    int64_t *row = batch_row(&batch);
    row[PROCESS_METRIC_PID] = 77;
    assert_non_null(batch_row(&batch));
    assert_true(batch_is_full(&batch));
    assert_null(batch_row(&batch));
    struct bytes line = {0};
    batch_encode(&batch, SESSION, "", &line);
    assert_int_equal(batch_row(&batch)[PROCESS_METRIC_PID], 0); /* zeroed again */
    batch_free(&batch);
    bytes_free(&line);
}

static void lines_have_the_agreed_text(void **state)
{
    (void)state;
    struct batch batch;
    assert_int_equal(batch_init(&batch, RECORD_PROCESS_METRIC_BATCH, 4), GPUFL_OK);
    batch.base_time_ns = 5;
    int64_t *row = batch_row(&batch);
    row[PROCESS_METRIC_DT_NS] = -3;
    row[PROCESS_METRIC_PID] = 12;
    row[PROCESS_METRIC_GPU_INSTANCE_ID] = CELL_UNKNOWN;
    row[PROCESS_METRIC_USED_MIB] = CELL_UNKNOWN;
    row = batch_row(&batch);
    row[PROCESS_METRIC_DT_NS] = 1000;
    row[PROCESS_METRIC_GPU_INSTANCE_ID] = CELL_UNKNOWN;
    row[PROCESS_METRIC_USED_MIB] = -1; /* u64 by bits */
    struct bytes line = {0};
    batch_encode(&batch, "a\"b", "\"x\":1,", &line);
    assert_string_equal(bytes_text(&line),
                        "{\"version\":1,\"type\":\"process_metric_batch\",\"session_id\":\"a\\\"b\",\"batch_id\":1,"
                        "\"base_time_ns\":5,\"x\":1,\"columns\":[\"dt_ns\",\"device_id\",\"pid\",\"used_mib\"],"
                        "\"rows\":[[-3,0,12,null],[1000,0,0,18446744073709551615]]");
    batch_free(&batch);
    bytes_free(&line);
}

static void unknown_is_null_only_where_a_column_can_be_unknown(void **state)
{
    (void)state;
    struct batch batch;
    struct batch_view view = {0};
    struct bytes line = {0};
    assert_int_equal(batch_init(&batch, RECORD_MEMORY_ALLOC_EVENT_BATCH, 1), GPUFL_OK);
    int64_t *row = batch_row(&batch);
    row[MEMORY_ALLOC_DURATION_NS] = CELL_UNKNOWN;
    row[MEMORY_ALLOC_ADDRESS] = INT64_MIN; /* an address with only the top bit set */
    row[MEMORY_ALLOC_DT_NS] = INT64_MIN;
    batch_encode(&batch, SESSION, "", &line);
    bytes_append_char(&line, '}');
    assert_non_null(memmem(line.data, line.size, "[-9223372036854775808,null,0,0,9223372036854775808,", 51));
    decode_ok(&view, line.data, line.size);
    assert_true(view.columns[MEMORY_ALLOC_DURATION_NS].cells[0] == CELL_UNKNOWN);
    assert_true(view.columns[MEMORY_ALLOC_ADDRESS].cells[0] == INT64_MIN);
    assert_true(view.columns[MEMORY_ALLOC_DT_NS].cells[0] == INT64_MIN);
    assert_int_equal(view.seq, -1);
    check_transposed(line.data, line.size, &view);
    batch_free(&batch);
    batch_view_free(&view);
    bytes_free(&line);
}

static void fractions_keep_every_bit_and_nan_is_null(void **state)
{
    (void)state;
    static const double values[] = {0.1, -0.0, 1e300, 5e-324, (double)NAN, 12345678.0};
    struct batch batch;
    struct batch_view view = {0};
    struct bytes line = {0};
    assert_int_equal(batch_init(&batch, RECORD_PM_SAMPLE_BATCH, 6), GPUFL_OK);
    for (size_t i = 0; i < 6; i++)
        memcpy(&batch_row(&batch)[PM_SAMPLE_VALUE], &values[i], sizeof values[i]);
    batch_encode(&batch, SESSION, "", &line);
    bytes_append_char(&line, '}');
    decode_ok(&view, line.data, line.size);
    for (size_t i = 0; i < 6; i++) {
        double value;
        memcpy(&value, &view.columns[PM_SAMPLE_VALUE].cells[i], sizeof value);
        assert_true(isnan(values[i]) ? isnan(value) : !memcmp(&value, &values[i], sizeof value));
    }
    check_transposed(line.data, line.size, &view);
    batch_free(&batch);
    batch_view_free(&view);
    bytes_free(&line);
}

static void columns_are_found_by_name_in_any_order_and_form(void **state)
{
    (void)state;
    struct batch_view view = {0};
    for (size_t i = 0; i < sizeof readable / sizeof *readable; i++) {
        decode_ok(&view, readable[i], strlen(readable[i]));
        assert_int_equal(view.info->type, RECORD_MEMCPY_EVENT_BATCH);
        assert_int_equal(view.row_count, 2);
        assert_true(view.version == 1 && view.batch_id == 3 && view.base_time_ns == 100 && view.seq == -1);
        for (int c = 0; c < MEMCPY_COLUMN_COUNT; c++)
            assert_int_equal(view.columns[c].present, c == MEMCPY_DT_NS || c == MEMCPY_BYTES || c == MEMCPY_IS_ASYNC);
        assert_true(view.columns[MEMCPY_DT_NS].cells[0] == -5 && view.columns[MEMCPY_DT_NS].cells[1] == 6);
        assert_true(view.columns[MEMCPY_BYTES].cells[0] == 7 && view.columns[MEMCPY_BYTES].cells[1] == 8);
        assert_true(view.columns[MEMCPY_IS_ASYNC].cells[0] == 1 && view.columns[MEMCPY_IS_ASYNC].cells[1] == 0);
    }
    batch_view_free(&view);
}

static void a_line_with_unknown_columns_is_not_transposed(void **state)
{
    (void)state;
    struct bytes out = {0};
    static const char line[] = ENVELOPE("memcpy_event_batch") "\"columns\":[\"dt_ns\",\"new\"],\"rows\":[[1,2]]}";
    assert_int_equal(batch_transpose(line, sizeof line - 1, &out), GPUFL_E_UNSUPPORTED);
    assert_int_equal(batch_transpose(line, sizeof line - 2, &out), GPUFL_E_DAMAGED);
    static const char other[] = "{\"type\":\"job_start\",\"app\":\"x\"}";
    assert_int_equal(batch_transpose(other, sizeof other - 1, &out), GPUFL_E_UNSUPPORTED);
    assert_int_equal(out.size, 0);
    bytes_free(&out);
}

static void other_members_are_kept_when_transposing(void **state)
{
    (void)state;
    struct bytes out = {0};
    static const char line[] =
        ENVELOPE("host_metric_batch") "\"hostname\":\"h\\u00e9\",\"ip_addr\": null ,\"columns\":[\"dt_ns\","
                                      "\"ram_used_mib\"],\"rows\":[[1000,null],[2000,5],[3000,null],[4000,7]],\"seq\":"
                                      "12,\"crc\":\"00000000\"}";
    assert_int_equal(batch_transpose(line, sizeof line - 1, &out), GPUFL_OK);
    assert_string_equal(bytes_text(&out),
                        ENVELOPE("host_metric_batch") "\"hostname\":\"h\\u00e9\",\"ip_addr\": "
                                                      "null,\"columns\":[\"dt_ns\",\"ram_used_mib\"],\"delta\":[],"
                                                      "\"cols\":[[1000,2000,3000,4000],[null,5,null,7]],\"seq\":12}");
    bytes_free(&out);
}

static void differences_skip_unknown_rows(void **state)
{
    (void)state;
    struct batch_view view = {0};
    static const char line[] =
        ENVELOPE("host_metric_batch") "\"columns\":[\"ram_used_mib\"],\"delta\":[\"ram_used_mib\"],"
                                      "\"cols\":[[null,5,null,2,-7,null]]}";
    static const int64_t expected[] = {CELL_UNKNOWN, 5, CELL_UNKNOWN, 7, 0, CELL_UNKNOWN};
    decode_ok(&view, line, sizeof line - 1);
    assert_memory_equal(view.columns[HOST_METRIC_RAM_USED_MIB].cells, expected, sizeof expected);
    batch_view_free(&view);
}

static void growing_columns_become_differences(void **state)
{
    (void)state;
    struct batch batch;
    struct bytes line = {0}, out = {0};
    struct batch_view view = {0};
    assert_int_equal(batch_init(&batch, RECORD_KERNEL_EVENT_BATCH, 100), GPUFL_OK);
    uint64_t random = 3;
    for (int i = 0; i < 100; i++) {
        int64_t *row = batch_row(&batch);
        row[KERNEL_DT_NS] = 10000000 + i * 9000;
        row[KERNEL_CORR_ID] = 1000000 + i * 3;
        row[KERNEL_DURATION_NS] = (int64_t)(random_next(&random) % 9000);
        row[KERNEL_API_LEAD_NS] = i % 10 ? INT64_C(90000000) + i : CELL_UNKNOWN;
    }
    batch_encode(&batch, SESSION, "", &line);
    bytes_append_text(&line, ",\"seq\":1}");
    decode_ok(&view, line.data, line.size);
    assert_int_equal(batch_transpose(line.data, line.size, &out), GPUFL_OK);
    assert_non_null(memmem(out.data, out.size, "\"delta\":[\"dt_ns\",\"corr_id\",\"api_lead_ns\"]", 41));
    assert_true(out.size < line.size);
    check_transposed(line.data, line.size, &view);
    batch_free(&batch);
    batch_view_free(&view);
    bytes_free(&line);
    bytes_free(&out);
}

static void older_column_sets_are_read(void **state)
{
    (void)state;
    struct batch_view view = {0};
    static const char nine[] =
        ENVELOPE("device_metric_batch") "\"columns\":[\"dt_ns\",\"device_id\",\"gpu_util\",\"mem_util\","
                                        "\"temp_c\",\"power_mw\",\"used_mib\",\"total_mib\",\"clock_sm\"],\"rows\":[[0,"
                                        "0,98,40,61,350000,1024,143771,1980]]}";
    decode_ok(&view, nine, sizeof nine - 1);
    assert_int_equal(view.columns[DEVICE_METRIC_CLOCK_SM].cells[0], 1980);
    assert_false(view.columns[DEVICE_METRIC_FAN_SPEED_PCT].present);
    assert_null(view.columns[DEVICE_METRIC_FAN_SPEED_PCT].cells);
    static const char eighteen[] =
        ENVELOPE("device_metric_batch") "\"columns\":[\"dt_ns\",\"device_id\",\"gpu_util\",\"mem_util\","
                                        "\"temp_c\",\"power_mw\",\"used_mib\",\"total_mib\",\"clock_sm\",\"fan_speed_"
                                        "pct\",\"temp_mem_c\",\"temp_junction_c\","
                                        "\"voltage_mv\",\"energy_uj\",\"clock_mem\",\"pcie_bw_bps\",\"ecc_corrected\","
                                        "\"ecc_uncorrected\"],"
                                        "\"rows\":[[0,1,2,3,4,5,6,7,8,9,10,11,12,18446744073709551615,14,15,16,17]]}";
    decode_ok(&view, eighteen, sizeof eighteen - 1);
    assert_true((uint64_t)view.columns[DEVICE_METRIC_ENERGY_UJ].cells[0] == UINT64_MAX);
    assert_int_equal(view.columns[DEVICE_METRIC_ECC_UNCORRECTED].cells[0], 17);
    assert_false(view.columns[DEVICE_METRIC_CLOCK_GFX].present);

    static const char *const scope_columns[] = {"", ",\"repeat\",\"warmup\"",
                                                ",\"repeat\",\"warmup\",\"original_start_ns\""};
    static const char *const scope_cells[] = {"", ",10,2", ",10,2,999"};
    for (int version = 1; version <= 3; version++) {
        char line[512];
        int size = snprintf(
            line, sizeof line,
            "{\"version\":%d,\"type\":\"scope_event_batch\",\"session_id\":\"s\",\"batch_id\":1,\"base_time_ns\":1,"
            "\"columns\":[\"dt_ns\",\"scope_instance_id\",\"name_id\",\"event_type\",\"depth\"%s],"
            "\"rows\":[[0,1,2,0,0%s]]}",
            version, scope_columns[version - 1], scope_cells[version - 1]);
        decode_ok(&view, line, (size_t)size);
        assert_int_equal(view.version, version);
        assert_int_equal(view.columns[SCOPE_REPEAT].present, version >= 2);
        assert_int_equal(view.columns[SCOPE_ORIGINAL_START_NS].present, version == 3);
        assert_false(view.columns[SCOPE_THREAD_ID].present);
    }
    batch_view_free(&view);
}

static void a_foreign_parser_reads_encoded_lines(void **state)
{
    (void)state;
    REQUIRE(access("/usr/bin/python3", X_OK) == 0, "python3");
    unsigned types = 0;
    for (int type = 1; type < RECORD_TYPE_COUNT; type++)
        types += record_catalogue[type].is_batch;
    char command[512];
    snprintf(command, sizeof command,
             "/usr/bin/python3 -c \"import json,sys\n"
             "rows=0\n"
             "for line in sys.stdin:\n"
             "    o=json.loads(line)\n"
             "    r=o['rows'] if 'rows' in o else list(zip(*o['cols']))\n"
             "    assert all(len(x)==len(o['columns']) for x in r)\n"
             "    rows+=len(r)\n"
             "sys.exit(0 if rows==%u else 1)\n\"",
             types * 2 * 40);
    FILE *python = popen(command, "w");
    assert_non_null(python);
    uint64_t random = 5;
    struct bytes line = {0}, columns = {0};
    for (int type = 1; type < RECORD_TYPE_COUNT; type++) {
        if (!record_catalogue[type].is_batch)
            continue;
        struct batch batch;
        assert_int_equal(batch_init(&batch, (enum record_type)type, 40), GPUFL_OK);
        int64_t *row;
        while ((row = batch_row(&batch)))
            for (unsigned c = 0; c < batch.info->column_count; c++)
                row[c] = random_cell(&batch.info->columns[c], &random);
        bytes_clear(&line);
        bytes_clear(&columns);
        batch_encode(&batch, SESSION, "", &line);
        bytes_append_char(&line, '}');
        assert_int_equal(batch_transpose(line.data, line.size, &columns), GPUFL_OK);
        fprintf(python, "%.*s\n%.*s\n", (int)line.size, line.data, (int)columns.size, columns.data);
        batch_free(&batch);
    }
    bytes_free(&line);
    bytes_free(&columns);
    assert_int_equal(pclose(python), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_every_batch_type_survive_a_round_trip),
        cmocka_unit_test(a_batch_gives_rows_until_it_is_full),
        cmocka_unit_test(lines_have_the_agreed_text),
        cmocka_unit_test(unknown_is_null_only_where_a_column_can_be_unknown),
        cmocka_unit_test(fractions_keep_every_bit_and_nan_is_null),
        cmocka_unit_test(columns_are_found_by_name_in_any_order_and_form),
        cmocka_unit_test(a_line_with_unknown_columns_is_not_transposed),
        cmocka_unit_test(other_members_are_kept_when_transposing),
        cmocka_unit_test(differences_skip_unknown_rows),
        cmocka_unit_test(growing_columns_become_differences),
        cmocka_unit_test(older_column_sets_are_read),
        cmocka_unit_test(a_foreign_parser_reads_encoded_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
