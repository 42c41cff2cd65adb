/* SPDX-License-Identifier: Apache-2.0 */
/* The estimate of how much longer a program took because it was recorded, and what that estimate is made of. */
#include "golden_session.h"

enum { us = 1000, ms = 1000000 };

/* A run of 100 ms whose recording cost the program nothing, until a test says otherwise. */
static struct golden_session session_with(const char *name)
{
    struct golden_session golden = golden_load(name);
    golden.model->overhead = (struct session_overhead){.is_known = true,
                                                       .wall_ns = 100 * ms,
                                                       .record_host_ns = 2 * us,
                                                       .record_gpu_ns = us,
                                                       .record_graph_node_ns = 250};
    return golden;
}

static const struct slowdown *estimate(struct golden_session *golden)
{
    analysis_free(&golden->analysis);
    assert_int_equal(analysis_make(&golden->analysis, golden->model), GPUFL_OK);
    return &golden->analysis.slowdown;
}

static void launches_that_the_gpu_waits_for_cost_their_host_time(void **state)
{
    (void)state;
    struct golden_session golden = session_with("launch_bound"); /* 800 kernels, each on an idle GPU */
    golden.model->overhead.user_ns[USER_TIME_CALLBACKS] = 4 * ms;
    const struct slowdown *slowdown = estimate(&golden);
    assert_int_equal(slowdown->parts_ns[SLOWDOWN_CUPTI], 800 * 2 * us);
    assert_int_equal(slowdown->parts_ns[SLOWDOWN_CALLBACKS], 4 * ms);
    /* 5.6 of 100 ms: without them the run would have taken 94.4 */
    assert_float_equal(slowdown->fraction, 5.6 / 94.4, 1e-9);
    assert_false(slowdown->is_least);
    golden_unload(&golden);
}

static void launches_that_wait_for_the_gpu_cost_what_their_record_costs_it(void **state)
{
    (void)state;
    struct golden_session golden = session_with("launch_bound");
    struct kernel_columns *kernels = &golden.model->kernels;
    for (size_t i = 0; i < kernels->count; i++) /* all launched at once, long before they ran, and by a call each */
        kernels->api_start_ns[i] = kernels->start_ns[0] - 10 * ms + (int64_t)i;
    golden.model->overhead.user_ns[USER_TIME_CALLBACKS] = 4 * ms;
    golden.model->overhead.user_ns[USER_TIME_GATE] = 3 * ms;
    const struct slowdown *slowdown = estimate(&golden);
    assert_true(slowdown->parts_ns[SLOWDOWN_CUPTI] < 801 * us);
    assert_true(slowdown->parts_ns[SLOWDOWN_CALLBACKS] < 4 * ms / 100); /* beside the GPU's work */
    assert_int_equal(slowdown->parts_ns[SLOWDOWN_GATE], 3 * ms);
    golden_unload(&golden);
}

static void kernels_of_one_call_are_a_graph_and_cost_less(void **state)
{
    (void)state;
    struct golden_session golden = session_with("launch_bound");
    struct kernel_columns *kernels = &golden.model->kernels;
    for (size_t i = 0; i < kernels->count; i++)
        kernels->api_start_ns[i] = kernels->start_ns[0] - us;
    const struct slowdown *slowdown = estimate(&golden);
    assert_int_equal(slowdown->parts_ns[SLOWDOWN_CUPTI], 2 * us + 799 * 250);
    golden_unload(&golden);
}

static void replays_are_told_as_a_factor(void **state)
{
    (void)state;
    struct golden_session golden = session_with("launch_bound");
    golden.model->overhead.record_host_ns = 0;
    golden.model->overhead.user_ns[USER_TIME_REPLAY] = 99 * ms;
    golden.model->overhead.user_ns[USER_TIME_GATE] = 5 * ms; /* within the replays */
    const struct slowdown *slowdown = estimate(&golden);
    assert_float_equal(slowdown->fraction, 99, 1e-9);
    struct bytes text = {0};
    assert_int_equal(report_text(golden.model, &(struct report_options){.columns = 200}, &text), GPUFL_OK);
    assert_non_null(strstr(bytes_text(&text), "slowed down by a factor of about 100 (replay "));
    bytes_free(&text);
    golden_unload(&golden);
}

static void what_was_not_measured_makes_it_a_least(void **state)
{
    (void)state;
    struct golden_session golden = session_with("launch_bound");
    for (int i = 0; i < USER_TIME_COUNT; i++)
        golden.model->overhead.user_ns[i] = CELL_UNKNOWN;
    golden.model->overhead.is_default_cost = true;
    const struct slowdown *slowdown = estimate(&golden);
    assert_true(slowdown->is_known && slowdown->is_least);
    struct bytes text = {0};
    assert_int_equal(report_text(golden.model, &(struct report_options){.columns = 200}, &text), GPUFL_OK);
    assert_non_null(strstr(bytes_text(&text), "slowed down by at least 1.6 % (CUPTI 1.6; not calibrated)"));
    bytes_free(&text);
    golden.model->overhead.wall_ns = INT64_C(100000) * ms; /* at least nothing is no answer */
    assert_false(estimate(&golden)->is_known);
    golden_unload(&golden);
}

static void counting_windows_count_by_the_rate_of_launches(void **state)
{
    (void)state;
    struct golden_session golden = session_with("launch_bound");
    struct session_model *model = golden.model;
    model->overhead.record_host_ns = 0;
    int64_t first_ns = model->kernels.start_ns[0], last_ns = model->kernels.start_ns[799];
    int64_t outside_ns = last_ns + model->kernels.duration_ns[799] - first_ns;
    /* As long again inside of a window, with a tenth of the launches. */
    for (size_t i = 400; i < 800; i++) {
        model->kernels.start_ns[i] += outside_ns;
        model->kernels.api_start_ns[i] += outside_ns;
    }
    int64_t begin_ns = model->kernels.start_ns[399] + model->kernels.duration_ns[399];
    struct deep_window window = {.start_ns = begin_ns,
                                 .end_ns = begin_ns + outside_ns,
                                 .id = 1,
                                 .launches = 80,
                                 .source = "sass_metrics",
                                 .name = "",
                                 .close_reason = ""};
    free(model->deep.windows);
    model->deep.windows = malloc(sizeof window);
    assert_non_null(model->deep.windows);
    *model->deep.windows = window;
    model->deep.window_count = 1;
    const struct slowdown *slowdown = estimate(&golden);
    int64_t wasted_ns = outside_ns - outside_ns / 10;
    assert_in_range(slowdown->parts_ns[SLOWDOWN_COUNTING], wasted_ns * 99 / 100, wasted_ns * 101 / 100);
    golden_unload(&golden);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launches_that_the_gpu_waits_for_cost_their_host_time),
        cmocka_unit_test(launches_that_wait_for_the_gpu_cost_what_their_record_costs_it),
        cmocka_unit_test(kernels_of_one_call_are_a_graph_and_cost_less),
        cmocka_unit_test(replays_are_told_as_a_factor),
        cmocka_unit_test(what_was_not_measured_makes_it_a_least),
        cmocka_unit_test(counting_windows_count_by_the_rate_of_launches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
