/* SPDX-License-Identifier: Apache-2.0 */
/* The RangeProfiler engine: counters per kernel. */
#include "range_session.h"

/* ---- kernels ---- */

static void kernels_body(void)
{
    engine_start(RANGE_PER_KERNEL, NULL);
    scope_history_step(app.history, 5, 1, 42);
    for (uint32_t i = 0; i < 10; i++)
        launch_reported(i % 2 ? HALF_KERNEL : SHORT_KERNEL, 100 + i, i < 8 ? 5 : 6);
    range_counters_write(app.counters);
    CHECK(range_counters_totals(app.counters).kernel_events == 8); /* two full readings */
    engine_end();
}

static void every_launch_has_values_under_its_name_and_scope(void **state)
{
    (void)state;
    run_program("", kernels_body);
    assert_int_equal(logged.count, 10);
    for (uint32_t i = 0; i < 10; i++) {
        const struct event *event = &logged.events[i];
        assert_string_equal(event->name, i % 2 ? "half(float*)" : "short(float*)");
        assert_int_equal(event->ordinal, i);
        assert_int_equal(event->corr_id, 100 + i);
        assert_int_equal(event->scope_id, i < 8 ? 42 : 0);
        assert_int_equal(event->values, METRIC_COUNT);
        assert_int_equal(event->passes_needed, PASSES);
        assert_int_equal(strtol(event->range_name, NULL, 10), i % KERNELS_MAX);
        assert_true(event->start_ns > 0);
    }
    assert_int_equal(logged.loss_count, 0);
}

static void graph_body(void)
{
    void *stream, *graph, *executable;
    engine_start(RANGE_PER_KERNEL, NULL);
    CHECK(rt.cudaStreamCreate(&stream) == 0 && rt.cudaStreamBeginCapture(stream, 0) == 0);
    for (int i = 0; i < 3; i++)
        CHECK(launch(SHORT_KERNEL, stream) == 0);
    CHECK(rt.cudaStreamEndCapture(stream, &graph) == 0 && rt.cudaGraphInstantiate(&executable, graph, 0) == 0);
    launch_reported(SHORT_KERNEL, 1, 5);
    struct launch_call call = {primary_context(0), 1, 2, NULL, true, 0};
    range_counters_launch(app.counters, &call, true, 5, 1000);
    CHECK(rt.cudaGraphLaunch(executable, stream) == 0);
    range_counters_launch(app.counters, &call, false, 5, 2000);
    launch_reported(HALF_KERNEL, 3, 5);
    engine_end();
}

static void a_graph_runs_uncounted_between_kernels_that_are_counted(void **state)
{
    (void)state;
    run_program("", graph_body);
    assert_int_equal(logged.count, 2);
    assert_string_equal(logged.events[0].name, "short(float*)");
    assert_string_equal(logged.events[1].name, "half(float*)");
    assert_int_equal(logged.loss_count, 0);
}

static void unknown_body(void)
{
    engine_start(RANGE_PER_KERNEL, NULL);
    launch_reported(SHORT_KERNEL, 1, 5);
    CHECK(launch(HALF_KERNEL, NULL) == 0); /* not reported */
    engine_end();
}

static void counters_of_an_unknown_launch_get_no_name(void **state)
{
    (void)state;
    run_program("", unknown_body);
    assert_int_equal(logged.count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_string_equal(logged.events[i].name, "");
        assert_int_equal(logged.events[i].ordinal, -1);
        assert_int_equal(logged.events[i].values, METRIC_COUNT);
    }
    assert_int_equal(logged_loss("range_unnamed"), 2);
}

static void burst_body(void)
{
    engine_start(RANGE_PER_KERNEL, NULL);
    launch_reported(SHORT_KERNEL, 1, 5);
    for (int i = 0; i < KERNELS_MAX + 1; i++)
        CHECK(launch(HALF_KERNEL, NULL) == 0);
    engine_end();
}

static void dropped_ranges_are_counted(void **state)
{
    (void)state;
    run_program("", burst_body);
    assert_int_equal(logged.count, KERNELS_MAX);
    assert_int_equal(logged_loss("ranges_dropped"), 2);
}

enum { THREADS = 4, LAUNCHES = 40 };

static void *launching_thread(void *number)
{
    uint32_t thread = (uint32_t)(uintptr_t)number;
    for (uint32_t i = 0; i < LAUNCHES; i++)
        launch_reported(thread % 2 ? HALF_KERNEL : SHORT_KERNEL, thread * 1000 + i, thread);
    return NULL;
}

static void threads_body(void)
{
    pthread_t threads[THREADS];
    engine_start(RANGE_PER_KERNEL, NULL);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, launching_thread, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    engine_end();
}

static void launches_of_several_threads_keep_their_names(void **state)
{
    (void)state;
    run_program("", threads_body);
    assert_int_equal(logged.count, THREADS * LAUNCHES);
    assert_int_equal(logged.loss_count, 0);
    for (uint32_t i = 0; i < logged.count; i++)
        assert_string_equal(logged.events[i].name,
                            logged.events[i].corr_id / 1000 % 2 ? "half(float*)" : "short(float*)");
}

static void *single_launch(void *nothing)
{
    launch_reported(HALF_KERNEL, 2, 6);
    return nothing;
}

static void waiting_body(void)
{
    pthread_t thread;
    engine_start(RANGE_PER_KERNEL, NULL);
    struct launch_call call = {primary_context(0), 1, 1, SHORT_KERNEL->name, false, 0};
    range_counters_launch(app.counters, &call, true, 5, clock_wall_ns());
    /* A launch that only returns after another thread's launch. */
    CHECK(pthread_create(&thread, NULL, single_launch, NULL) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(launch(SHORT_KERNEL, NULL) == FAKE_SUCCESS);
    range_counters_launch(app.counters, &call, false, 5, clock_wall_ns());
    engine_end();
}

static void a_launch_is_not_held_up_for_ever(void **state)
{
    (void)state;
    run_program("", waiting_body);
    assert_int_equal(logged.count, 2);
    assert_string_equal(logged.events[0].name, "");
    assert_string_equal(logged.events[1].name, "");
    assert_int_equal(logged_loss("range_unnamed"), 2);
}

static void first_body(void)
{
    struct launch_call call = {NULL, 0, 1, SHORT_KERNEL->name, false, 0};
    engine_make(RANGE_PER_KERNEL, NULL);
    range_counters_launch(app.counters, &call, true, 5, clock_wall_ns());
    CHECK(attach(0) == GPUFL_OK); /* as CUPTI's callback does inside the launch */
    CHECK(launch(SHORT_KERNEL, NULL) == FAKE_SUCCESS);
    call.context = primary_context(0);
    range_counters_launch(app.counters, &call, false, 5, clock_wall_ns());
    launch_reported(HALF_KERNEL, 2, 5);
    engine_end();
}

static void the_launch_that_made_its_context_is_known(void **state)
{
    (void)state;
    run_program("", first_body);
    assert_int_equal(logged.count, 2);
    assert_string_equal(logged.events[0].name, "short(float*)");
    assert_string_equal(logged.events[1].name, "half(float*)");
    assert_int_equal(logged.loss_count, 0);
}

int main(void)
{
    environment_clear();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_launch_has_values_under_its_name_and_scope),
        cmocka_unit_test(a_graph_runs_uncounted_between_kernels_that_are_counted),
        cmocka_unit_test(counters_of_an_unknown_launch_get_no_name),
        cmocka_unit_test(dropped_ranges_are_counted),
        cmocka_unit_test(launches_of_several_threads_keep_their_names),
        cmocka_unit_test(a_launch_is_not_held_up_for_ever),
        cmocka_unit_test(the_launch_that_made_its_context_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
