/* SPDX-License-Identifier: Apache-2.0 */
/* The estimate of how much longer a program took because it was recorded, and its parts. */
#include "golden_session.h"

enum { us = 1000, ms = 1000000 };

/* A run of 100 ms whose recording cost nothing, until a test changes that. */
static struct golden_session session_with(const char *name)
{
    struct golden_session golden = golden_load(name);
    golden.model->overhead = (struct session_overhead){.is_known = true,
                                                       .wall_ns = 100 * ms,
                                                       .record_cost_ns = {[RECORD_COST_HOST] = 2 * us,
                                                                          [RECORD_COST_HOST_COLD] = 2 * us,
                                                                          [RECORD_COST_GPU] = us,
                                                                          [RECORD_COST_GRAPH_NODE] = 250}};
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

static void launches_that_wait_for_the_gpu_cost_their_records_gpu_time(void **state)
{
    (void)state;
    struct golden_session golden = session_with("launch_bound");
    struct kernel_columns *kernels = &golden.model->kernels;
    for (size_t i = 0; i < kernels->count; i++) /* all launched at once, long before they ran, by one call each */
        kernels->api_start_ns[i] = kernels->start_ns[0] - 10 * ms + (int64_t)i;
    golden.model->overhead.user_ns[USER_TIME_CALLBACKS] = 4 * ms;
    golden.model->overhead.user_ns[USER_TIME_GATE] = 3 * ms;
    const struct slowdown *slowdown = estimate(&golden);
    assert_true(slowdown->parts_ns[SLOWDOWN_CUPTI] < 801 * us);
    assert_true(slowdown->parts_ns[SLOWDOWN_CALLBACKS] < 4 * ms / 100); /* while the GPU was busy */
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

static void replays_are_reported_as_a_factor(void **state)
{
    (void)state;
    struct golden_session golden = session_with("launch_bound");
    memset(golden.model->overhead.record_cost_ns, 0, sizeof golden.model->overhead.record_cost_ns);
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

static void unmeasured_parts_make_it_a_lower_bound(void **state)
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
    golden.model->overhead.wall_ns = INT64_C(100000) * ms; /* "at least 0" is not an answer */
    assert_false(estimate(&golden)->is_known);
    golden_unload(&golden);
}

/* One thread launches every 11 us, which takes 2 us; the GPU finishes and waits before the next launch. */
static void launches_arrange(struct kernel_columns *kernels)
{
    for (size_t i = 0; i < kernels->count; i++) {
        kernels->start_ns[i] = kernels->start_ns[0] + (int64_t)i * 11 * us;
        kernels->duration_ns[i] = us;
        kernels->api_start_ns[i] = kernels->start_ns[i] - 3 * us;
        kernels->api_duration_ns[i] = 2 * us;
        kernels->thread_id[i] = 7;
    }
}

static void launches_after_other_work_cost_as_with_cold_caches(void **state)
{
    (void)state;
    struct golden_session golden = session_with("launch_bound");
    struct kernel_columns *kernels = &golden.model->kernels;
    int64_t *cost_ns = golden.model->overhead.record_cost_ns;
    cost_ns[RECORD_COST_HOST_COLD] = 5 * us;
    launches_arrange(kernels);
    assert_int_equal(estimate(&golden)->parts_ns[SLOWDOWN_CUPTI], 800 * 5 * us);
    cost_ns[RECORD_COST_CALL] = us; /* the calls are a quarter as cold as in the calibration */
    cost_ns[RECORD_COST_CALL_COLD] = 5 * us;
    assert_int_equal(estimate(&golden)->parts_ns[SLOWDOWN_CUPTI], 800 * (2 * us + 3 * us / 4));
    for (size_t i = 0; i < kernels->count; i++)
        kernels->api_duration_ns[i] = 10 * us; /* the next one follows immediately */
    assert_int_equal(estimate(&golden)->parts_ns[SLOWDOWN_CUPTI], 799 * 2 * us + 5 * us);
    golden_unload(&golden);
}

static void stack_walks_before_launches_do_not_make_them_cold(void **state)
{
    (void)state;
    struct golden_session golden = session_with("launch_bound");
    struct kernel_columns *kernels = &golden.model->kernels;
    golden.model->overhead.record_cost_ns[RECORD_COST_HOST_COLD] = 5 * us;
    golden.model->overhead.user_ns[USER_TIME_STACKS] = 800 * 6 * us;
    launches_arrange(kernels);
    assert_int_equal(estimate(&golden)->parts_ns[SLOWDOWN_CUPTI], 799 * 2 * us + 5 * us);
    golden_unload(&golden);
}

static void counting_costs_what_its_calls_take_longer(void **state)
{
    (void)state;
    struct golden_session golden = session_with("launch_bound");
    struct session_overhead *overhead = &golden.model->overhead;
    overhead->calls[CALLS_SAMPLED] = (struct call_state_use){800, 800 * 10 * us, 10 * us};
    overhead->calls[CALLS_COUNTED] = (struct call_state_use){100, 100 * 300 * us, CELL_UNKNOWN};
    overhead->calls[CALLS_PLAIN].typical_ns = CELL_UNKNOWN;
    overhead->user_ns[USER_TIME_GATE] = 4 * ms; /* within those calls */
    const struct slowdown *slowdown = estimate(&golden);
    /* A counted launch has no CUPTI record: without counting it would have taken 8 us. */
    assert_int_equal(slowdown->parts_ns[SLOWDOWN_COUNTING], 100 * (300 - 8) * us - 4 * ms);
    assert_int_equal(slowdown->parts_ns[SLOWDOWN_GATE], 4 * ms);
    assert_true(slowdown->is_least); /* the cost of sampling is unknown without launches while it is off */
    overhead->calls[CALLS_PLAIN] = (struct call_state_use){800, 800 * 7 * us, 7 * us};
    slowdown = estimate(&golden);
    assert_int_equal(slowdown->parts_ns[SLOWDOWN_COUNTING], 100 * (300 - 5) * us - 4 * ms);
    assert_int_equal(slowdown->parts_ns[SLOWDOWN_SAMPLING], 800 * 3 * us);
    assert_false(slowdown->is_least);
    golden_unload(&golden);
}

static void a_replayed_kernel_would_have_run_once(void **state)
{
    (void)state;
    struct golden_session golden = session_with("range_metrics");
    struct session_deep *deep = &golden.model->deep;
    int64_t once_ns = 0;
    for (size_t i = 0; i < deep->metric_event_count; i++) {
        const struct metric_event *event = &deep->metric_events[i];
        if (!event->is_kernel || !event->value_count)
            continue;
        deep->metric_values[event->value_first] = (struct metric_value){.name = "gpu__time_duration.sum", .value = us};
        once_ns += us;
    }
    assert_true(once_ns > 0);
    golden.model->overhead.user_ns[USER_TIME_REPLAY] = 50 * ms;
    assert_int_equal(estimate(&golden)->parts_ns[SLOWDOWN_REPLAY], 50 * ms - once_ns);
    golden_unload(&golden);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launches_that_the_gpu_waits_for_cost_their_host_time),
        cmocka_unit_test(launches_that_wait_for_the_gpu_cost_their_records_gpu_time),
        cmocka_unit_test(kernels_of_one_call_are_a_graph_and_cost_less),
        cmocka_unit_test(replays_are_reported_as_a_factor),
        cmocka_unit_test(unmeasured_parts_make_it_a_lower_bound),
        cmocka_unit_test(launches_after_other_work_cost_as_with_cold_caches),
        cmocka_unit_test(stack_walks_before_launches_do_not_make_them_cold),
        cmocka_unit_test(counting_costs_what_its_calls_take_longer),
        cmocka_unit_test(a_replayed_kernel_would_have_run_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
