/* SPDX-License-Identifier: Apache-2.0 */
/* Data of the deep engines in the session model: sums, unknowns, and inconsistent input. */
#include "golden_session.h"

static const struct code_sample *sample_find(const struct session_deep *deep, uint32_t function_id, uint32_t pc,
                                             uint32_t metric_id)
{
    for (size_t i = 0; i < deep->sample_count; i++)
        if (deep->samples[i].function_id == function_id && deep->samples[i].pc_offset == pc &&
            deep->samples[i].metric_id == metric_id)
            return &deep->samples[i];
    return NULL;
}

static void rows_of_one_place_are_summed_over_time(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("pc_sampling");
    const struct code_sample *sample = sample_find(&golden.model->deep, 1, 0xe0, 1);
    assert_non_null(sample);
    assert_int_equal(sample->value, 42000);
    assert_int_equal(sample->kind, SAMPLE_PC);
    assert_int_equal(sample->cubin_crc, 0x1f00aa01);
    const struct code_sample *reduce = sample_find(&golden.model->deep, 2, 0x160, 5);
    assert_non_null(reduce);
    assert_true(reduce->cubin_crc == 0xffffffff00000002u);
    golden_unload(&golden);
}

static void a_counted_zero_is_kept_and_a_missing_count_is_not_made(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("sass_metrics");
    const struct code_sample *zero = sample_find(&golden.model->deep, 1, 0x20, 105);
    assert_non_null(zero);
    assert_int_equal(zero->value, 0);
    assert_null(sample_find(&golden.model->deep, 1, 0x60, 105));
    golden_unload(&golden);
}

static void windows_and_launches_without_time_are_loaded(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("sass_metrics");
    const struct session_deep *deep = &golden.model->deep;
    assert_int_equal(deep->window_count, 3);
    assert_string_equal(deep->windows[0].source, "sass_metrics");
    assert_string_equal(session_text(golden.model, DICTIONARY_SCOPE_NAME, deep->windows[1].path_id), "step|reduce");
    assert_int_equal(deep->windows[1].launches, 10);
    assert_int_equal(deep->untimed_count, 30);
    assert_int_equal(deep->untimed[20].window_id, 2);
    assert_int_equal(deep->counters[0].configured, 10);
    assert_int_equal(deep->counters[0].skipped, 1);
    assert_int_equal(golden.analysis.deep.windows[0].invalid, 1);
    golden_unload(&golden);
}

static void overlapping_windows_count_once(void **state)
{
    (void)state;
    static struct session_model model;
    struct deep_window windows[] = {{10, 20, 1, 0, 4, "a", "", ""},
                                    {15, 30, 2, 0, CELL_UNKNOWN, "a", "", ""},
                                    {12, 14, 3, 0, 1, "a", "", ""},
                                    {0, 5, 4, 0, 1, "b", "", ""}};
    model.deep.windows = windows;
    model.deep.window_count = 4;
    struct deep_use use;
    assert_int_equal(deep_use_make(&use, &model), GPUFL_OK);
    assert_int_equal(use.window_use_count, 2);
    assert_int_equal(use.windows[0].covered_ns, 20);
    assert_int_equal(use.windows[0].launches, 5);
    assert_true(use.windows[0].has_unknown_launches);
    assert_int_equal(use.windows[1].covered_ns, 5);
    deep_use_free(&use);
}

static void metrics_are_grouped_by_scope_and_kernel(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("range_metrics");
    const struct deep_use *use = &golden.analysis.deep;
    assert_int_equal(use->group_count, 3);
    const struct metric_group *add = &use->groups[0], *reduce = &use->groups[1], *kernel = &use->groups[2];
    assert_string_equal(add->name, "step|add");
    assert_int_equal(add->results, 3);
    assert_int_equal(add->column_count, 3);
    assert_true(add->columns[0].mean == 13.5 && add->columns[0].min == 12.5 && add->columns[0].max == 14.5);
    assert_int_equal(reduce->incomplete, 1);
    assert_int_equal(reduce->column_count, 0);
    assert_int_equal(reduce->passes_needed, 8);
    assert_non_null(strstr(reduce->reason, "8 passes are needed"));
    assert_true(kernel->is_kernel);
    assert_int_equal(kernel->results, 4);
    /* v1's -1 is not a value. */
    for (size_t i = 0; i < kernel->column_count; i++) {
        assert_true(kernel->columns[i].min >= 0);
        assert_string_not_equal(kernel->columns[i].name, "tensor_active_pct");
    }
    golden_unload(&golden);
}

static void counters_over_time_are_columns_by_metric(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("range_metrics");
    const struct session_deep *deep = &golden.model->deep;
    assert_int_equal(deep->pm_count, 2);
    assert_int_equal(deep->pm[0].count, 60);
    assert_int_equal(deep->pm[1].count, 60);
    assert_true(deep->pm[0].values[9] == 59.0);
    assert_int_equal(deep->pm[0].times_ns[1] - deep->pm[0].times_ns[0], 1000000);
    struct pm_use use;
    assert_int_equal(deep_pm_use(deep, &deep->pm[0], &use), GPUFL_OK);
    assert_int_equal(use.interval_ns, 1000000);
    assert_int_equal(use.gap_count, 1);
    golden_unload(&golden);
}

static void v1_rows_have_no_cubin_and_keep_their_lines(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("deep_v1");
    const struct session_deep *deep = &golden.model->deep;
    const struct code_sample *sample = sample_find(deep, 1, 0x10, 1);
    assert_non_null(sample);
    assert_int_equal(sample->cubin_crc, 0);
    assert_int_equal(sample->source_line, 9);
    /* The line map has another clock, which must not stretch the session. */
    assert_true(golden.model->first_ns > 1000000000);
    assert_int_equal(deep->listings[0].entry_count, 2);
    assert_int_equal(deep->listing_entries[1].count, 2);
    assert_string_equal(deep->windows[0].source, "pc_sampling+sass");
    golden_unload(&golden);
}

static void input_that_lies_costs_its_own_rows_only(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("deep_hostile");
    const struct session_deep *deep = &golden.model->deep;
    assert_non_null(sample_find(deep, 1, 0xe0, 2));
    assert_null(sample_find(deep, 1, 0x40, 2));
    const struct code_sample *large = sample_find(deep, 1, 0x10, 2);
    assert_non_null(large);
    assert_true(large->value == UINT64_MAX);
    assert_true(golden.model->invalid_rows >= 5);
    assert_int_equal(golden.model->summary.damaged_lines, 1);
    assert_int_equal(deep->object_count, 5);
    assert_int_equal(deep->window_count, 1);
    assert_true(deep->windows[0].launches == CELL_UNKNOWN);
    assert_int_equal(deep->listing_entry_count, 2);
    golden_unload(&golden);
}

static void no_deep_report_holds_a_raw_control_character(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("deep_hostile");
    struct report_options options = {.is_wide = true, .top = 1000};
    struct bytes text = {0}, json = {0}, code = {0};
    struct problem problem = {""};
    assert_int_equal(report_text(golden.model, &options, &text), GPUFL_OK);
    assert_int_equal(report_json(golden.model, &options, &json), GPUFL_OK);
    assert_int_equal(report_code(golden.model, "vector_add", &options, &code, &problem), GPUFL_OK);
    const struct bytes *const outputs[] = {&text, &json, &code};
    for (size_t n = 0; n < 3; n++)
        for (size_t i = 0; i < outputs[n]->size; i++)
            assert_true((unsigned char)outputs[n]->data[i] >= 32 || outputs[n]->data[i] == '\n');
    struct json_document document;
    assert_int_equal(json_parse(&document, json.data, json.size, NULL), GPUFL_OK);
    json_free(&document);
    bytes_free(&text);
    bytes_free(&json);
    bytes_free(&code);
    golden_unload(&golden);
}

static void a_session_that_was_not_timed_says_so_in_its_headline(void **state)
{
    (void)state;
    struct bytes out = {0};
    struct problem problem = {""};
    assert_int_equal(report_headline(SOURCE_DIR "/tests/golden/sass_metrics", &out, &problem), GPUFL_OK);
    assert_string_equal(bytes_text(&out), "30 kernels counted (SassMetrics does not time kernels), 0 lost");
    bytes_clear(&out);
    assert_int_equal(report_headline(SOURCE_DIR "/tests/golden/deep", &out, &problem), GPUFL_OK);
    assert_string_equal(bytes_text(&out), "30 kernels, 60.0 ms GPU busy of 100 ms, 3 more counted, not timed, 0 lost");
    bytes_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_one_place_are_summed_over_time),
        cmocka_unit_test(a_counted_zero_is_kept_and_a_missing_count_is_not_made),
        cmocka_unit_test(windows_and_launches_without_time_are_loaded),
        cmocka_unit_test(overlapping_windows_count_once),
        cmocka_unit_test(metrics_are_grouped_by_scope_and_kernel),
        cmocka_unit_test(counters_over_time_are_columns_by_metric),
        cmocka_unit_test(v1_rows_have_no_cubin_and_keep_their_lines),
        cmocka_unit_test(input_that_lies_costs_its_own_rows_only),
        cmocka_unit_test(no_deep_report_holds_a_raw_control_character),
        cmocka_unit_test(a_session_that_was_not_timed_says_so_in_its_headline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
