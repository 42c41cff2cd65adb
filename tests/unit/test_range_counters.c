/* SPDX-License-Identifier: Apache-2.0 */
/* The RangeProfiler engine: counters per scope, and what happens when CUPTI fails. */
#include "range_session.h"

/* ---- scopes ---- */

static void repeated_body(void)
{
    engine_start(RANGE_PER_SCOPE, NULL);
    size_t bytes = 0;
    for (int i = 0; i < 2 * PASSES; i++) {
        run_scope("step");
        range_counters_write(app.counters);
        CHECK(i == 0 || range_counters_bytes(app.counters) == bytes);
        bytes = range_counters_bytes(app.counters);
    }
    struct range_totals totals = range_counters_totals(app.counters);
    CHECK(totals.passes == 2 * PASSES && totals.scope_events == 2 && totals.short_scopes == 0);
    engine_end();
}

static void a_scope_has_values_once_it_ran_as_often_as_there_are_passes(void **state)
{
    (void)state;
    run_program("", repeated_body);
    assert_int_equal(logged.count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        const struct event *event = &logged.events[i];
        assert_string_equal(event->name, "step");
        assert_string_equal(event->path, "step");
        assert_string_equal(event->reason, "(none)");
        assert_int_equal(event->passes_needed, PASSES);
        assert_int_equal(event->passes_collected, PASSES);
        assert_int_equal(event->instances, PASSES);
        assert_int_equal(event->values, METRIC_COUNT);
        assert_int_equal(event->scope_id, 7);
        assert_int_equal(event->context_id, 1);
        assert_true(event->start_ns > 0 && event->end_ns > event->start_ns);
        assert_true(event->sm_throughput == event->metrics[0]);
    }
    assert_true(logged.events[1].start_ns >= logged.events[0].end_ns);
    assert_int_equal(logged.loss_count, 0);
}

static void turns_body(void)
{
    engine_start(RANGE_PER_SCOPE, "forward,backward");
    for (int i = 0; i < 2 * PASSES; i++) {
        begin("step");
        run_scope("step|forward");
        run_scope("step|backward");
        end();
    }
    engine_end();
}

static void scopes_that_take_turns_are_measured_one_after_the_other(void **state)
{
    (void)state;
    run_program("", turns_body);
    assert_int_equal(logged.count, 2);
    assert_string_equal(logged.events[0].path, "step|forward");
    assert_string_equal(logged.events[1].path, "step|backward");
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(logged.events[i].values, METRIC_COUNT);
        assert_int_equal(logged.events[i].scope_depth, 1);
    }
    assert_string_equal(logged.events[1].name, "backward");
}

static void absent_body(void)
{
    engine_start(RANGE_PER_SCOPE, NULL);
    run_scope("once");
    for (int i = 0; i < 100; i++)
        run_scope("often");
    engine_end();
}

static void a_scope_that_does_not_come_again_makes_way(void **state)
{
    (void)state;
    run_program("", absent_body);
    assert_true(logged.count > 1);
    for (uint32_t i = 0; i + 1 < logged.count; i++) {
        assert_string_equal(logged.events[i].path, "often");
        assert_int_equal(logged.events[i].values, METRIC_COUNT);
    }
    assert_string_equal(logged.events[logged.count - 1].path, "once");
    assert_int_equal(logged.events[logged.count - 1].values, 0);
}

static void rare_body(void)
{
    engine_start(RANGE_PER_SCOPE, NULL);
    run_scope("once");
    engine_end();
}

static void a_scope_that_ran_too_rarely_says_so(void **state)
{
    (void)state;
    run_program("", rare_body);
    assert_int_equal(logged.count, 1);
    assert_int_equal(logged.events[0].values + logged.events[0].nulls, 0);
    assert_int_equal(logged.events[0].passes_collected, 1);
    assert_int_equal(logged.events[0].passes_needed, PASSES);
    assert_true(logged.events[0].sm_throughput == -1);
    assert_string_equal(logged.events[0].reason,
                        "the scope ran 1 time; 3 passes in a row are needed (use fewer metrics, fewer scopes or run it "
                        "more often)");
}

static void nested_body(void)
{
    engine_start(RANGE_PER_SCOPE, NULL);
    end(); /* of a scope that was open before */
    for (int i = 0; i < PASSES; i++) {
        begin("outer");
        run_scope("outer|inner");
        end();
    }
    engine_end();
}

static void without_names_only_the_outermost_scope_is_measured(void **state)
{
    (void)state;
    run_program("", nested_body);
    assert_int_equal(logged.count, 1);
    assert_string_equal(logged.events[0].path, "outer");
    assert_int_equal(logged.events[0].values, METRIC_COUNT);
    assert_int_equal(logged.loss_count, 0);
}

static void recursive_body(void)
{
    engine_start(RANGE_PER_SCOPE, ",layer,");
    for (int i = 0; i < PASSES; i++) {
        begin("model");
        begin("model|layer");
        run_scope("model|layer|layer");
        end();
        end();
    }
    engine_end();
}

static void the_outermost_match_wins(void **state)
{
    (void)state;
    run_program("", recursive_body);
    assert_int_equal(logged.count, 1);
    assert_string_equal(logged.events[0].path, "model|layer");
    assert_int_equal(logged.events[0].values, METRIC_COUNT);
}

static void *other_thread(void *nothing)
{
    run_scope("other");
    return nothing;
}

static void overlap_body(void)
{
    pthread_t thread;
    engine_start(RANGE_PER_SCOPE, NULL);
    for (int i = 0; i < PASSES; i++) {
        begin("main");
        CHECK(pthread_create(&thread, NULL, other_thread, NULL) == 0 && pthread_join(thread, NULL) == 0);
        end();
    }
    CHECK(lost(LOSS_RANGE_OVERLAP) == PASSES);
    engine_end();
}

static void a_scope_beside_a_measured_one_is_counted_as_lost(void **state)
{
    (void)state;
    run_program("", overlap_body);
    assert_int_equal(logged.count, 1);
    assert_string_equal(logged.events[0].path, "main");
    assert_int_equal(logged_loss("range_overlap"), PASSES);
}

static void *second_device(void *nothing)
{
    range_counters_scope_begin(app.counters, "second", 9, primary_context(1));
    range_counters_scope_end(app.counters, 0);
    return nothing;
}

static void contexts_body(void)
{
    pthread_t thread;
    engine_make(RANGE_PER_SCOPE, NULL);
    range_counters_scope_begin(app.counters, "early", 1, NULL);
    range_counters_scope_end(app.counters, 0);
    CHECK(lost(LOSS_RANGE_NO_CONTEXT) == 1);
    CHECK(attach(0) == GPUFL_OK && attach(1) == GPUFL_OK);
    CHECK(attach(1) == GPUFL_E_INVALID && strstr(app.problem.text, "attached"));
    for (int i = 0; i < PASSES; i++) {
        begin("first");
        CHECK(pthread_create(&thread, NULL, second_device, NULL) == 0 && pthread_join(thread, NULL) == 0);
        end();
    }
    range_counters_detach(app.counters, primary_context(1));
    range_counters_detach(app.counters, primary_context(1));
    range_counters_scope_begin(app.counters, "only", 3, NULL); /* one context is left: that one */
    range_counters_detach(app.counters, primary_context(0));   /* while it is measured */
    end();
    CHECK(attach(0) == GPUFL_OK);
    engine_end();
}

static void contexts_are_measured_at_the_same_time_and_come_and_go(void **state)
{
    (void)state;
    setenv("FAKE_GPU_COUNT", "2", 1);
    run_program("", contexts_body);
    unsetenv("FAKE_GPU_COUNT");
    assert_int_equal(logged.count, 3);
    assert_string_equal(logged.events[0].name, "second");
    assert_int_equal(logged.events[0].device_id, 1);
    assert_int_equal(logged.events[0].values, METRIC_COUNT);
    assert_string_equal(logged.events[1].name, "first");
    assert_int_equal(logged.events[1].device_id, 0);
    assert_int_equal(logged.events[1].values, METRIC_COUNT);
    assert_string_equal(logged.events[2].name, "only");
    assert_int_equal(logged.events[2].passes_collected, 0);
    assert_int_equal(logged.events[2].values, 0);
    assert_int_equal(logged_loss("range_no_context"), 1);
}

/* ---- failures ---- */

static enum range_mode fault_mode;

/* Either the context is refused with a reason, or everything requested is written or counted as lost. */
static void fault_body(void)
{
    engine_make(fault_mode, NULL);
    bool is_attached = attach(0) == GPUFL_OK;
    CHECK(is_attached || app.problem.text[0]);
    for (uint32_t i = 0; i < 2 * KERNELS_MAX + 1; i++) {
        begin("step");
        launch_reported(SHORT_KERNEL, i + 1, 5);
        end();
    }
    range_counters_stop(app.counters);
    range_counters_write(app.counters);
    struct range_totals totals = range_counters_totals(app.counters);
    struct problem problem;
    bool has_failure = range_counters_failure(app.counters, &problem);
    CHECK(!has_failure || problem.text[0]);
    if (fault_mode == RANGE_PER_KERNEL && is_attached)
        CHECK(has_failure || totals.kernel_events + lost(LOSS_RANGES_DROPPED) == 2 * KERNELS_MAX + 1);
    if (fault_mode == RANGE_PER_SCOPE && is_attached)
        CHECK(totals.scope_events + totals.short_scopes >= 1);
    CHECK(is_attached || totals.kernel_events + totals.scope_events + totals.short_scopes == 0);
    engine_end();
}

static void no_failing_call_makes_the_log_lie(void **state)
{
    (void)state;
    static const char *const functions[] = {"cuptiProfilerInitialize",
                                            "cuptiProfilerDeInitialize",
                                            "cuptiProfilerDeviceSupported",
                                            "cuptiProfilerGetCounterAvailability",
                                            "cuptiDeviceGetChipName",
                                            "cuptiProfilerHostInitialize",
                                            "cuptiProfilerHostConfigAddMetrics",
                                            "cuptiProfilerHostGetConfigImageSize",
                                            "cuptiProfilerHostGetConfigImage",
                                            "cuptiProfilerHostGetNumOfPasses",
                                            "cuptiProfilerHostEvaluateToGpuValues",
                                            "cuptiRangeProfilerEnable",
                                            "cuptiRangeProfilerDisable",
                                            "cuptiRangeProfilerSetConfig",
                                            "cuptiRangeProfilerStart",
                                            "cuptiRangeProfilerStop",
                                            "cuptiRangeProfilerPushRange",
                                            "cuptiRangeProfilerPopRange",
                                            "cuptiRangeProfilerDecodeData",
                                            "cuptiRangeProfilerGetCounterDataSize",
                                            "cuptiRangeProfilerCounterDataImageInitialize",
                                            "cuptiRangeProfilerGetCounterDataInfo",
                                            "cuptiRangeProfilerCounterDataGetRangeInfo"};
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        for (int turn = 1; turn <= 3; turn++)
            for (int mode = RANGE_PER_SCOPE; mode <= RANGE_PER_KERNEL; mode++) {
                char fault[128];
                snprintf(fault, sizeof fault, "fail=%s@%d:26", functions[i], turn);
                fault_mode = (enum range_mode)mode;
                run_program(fault, fault_body);
                for (uint32_t at = 0; at < logged.count; at++) {
                    const struct event *event = &logged.events[at];
                    bool has_reason = strcmp(event->reason, "(none)") != 0 && event->reason[0];
                    assert_int_equal(event->nulls, 0);
                    assert_true(event->values == METRIC_COUNT || (!event->values && has_reason));
                }
            }
}

static void refused_body(void)
{
    engine_make(RANGE_PER_SCOPE, NULL);
    CHECK(attach(0) == GPUFL_E_PERMISSION && strstr(app.problem.text, "RmProfilingAdminOnly"));
    run_scope("step");
    CHECK(lost(LOSS_RANGE_NO_CONTEXT) == 0); /* the refusal was reported */
    engine_end();
}

static void a_refused_context_leaves_the_program_alone(void **state)
{
    (void)state;
    run_program("fail=cuptiRangeProfilerEnable@*:35", refused_body);
    assert_int_equal(logged.count, 0);
    assert_int_equal(logged.loss_count, 0);
}

static void failure_body(void)
{
    struct problem problem;
    engine_start(RANGE_PER_SCOPE, NULL);
    for (int i = 0; i < 3 * PASSES; i++)
        run_scope("step");
    CHECK(range_counters_failure(app.counters, &problem) && strstr(problem.text, "cuptiRangeProfilerStop"));
    engine_end();
}

static void a_failure_half_way_is_the_reason_of_what_is_missing(void **state)
{
    (void)state;
    run_program("fail=cuptiRangeProfilerStop@2:26", failure_body);
    assert_int_equal(logged.count, 1);
    assert_int_equal(logged.events[0].values, 0);
    assert_int_equal(logged.events[0].passes_collected, 1);
    assert_non_null(strstr(logged.events[0].reason, "cuptiRangeProfilerStop"));
}

static void *endless_launch(void *nothing)
{
    struct launch_call call = {primary_context(0), 1, 1, LONG_KERNEL->name, false, 0};
    range_counters_launch(app.counters, &call, true, 6, clock_wall_ns());
    return nothing;
}

static void endless_body(void)
{
    pthread_t thread;
    engine_start(RANGE_PER_SCOPE, NULL);
    for (int i = 0; i < PASSES; i++)
        run_scope("before");
    begin("across");
    CHECK(pthread_create(&thread, NULL, endless_launch, NULL) == 0 && pthread_join(thread, NULL) == 0);
    end();
    struct problem problem;
    CHECK(range_counters_failure(app.counters, &problem) && strstr(problem.text, "launch"));
    CHECK(attach(1) == GPUFL_E_BUSY);
    engine_end();
}

static void cupti_is_not_touched_beside_a_launch_that_does_not_end(void **state)
{
    (void)state;
    setenv("FAKE_GPU_COUNT", "2", 1);
    run_program("", endless_body);
    unsetenv("FAKE_GPU_COUNT");
    assert_int_equal(logged.count, 2);
    assert_int_equal(logged.events[0].values, METRIC_COUNT);
    assert_string_equal(logged.events[1].name, "across");
    assert_int_equal(logged.events[1].values, 0);
    assert_non_null(strstr(logged.events[1].reason, "launch"));
}

static void busy_body(void)
{
    pthread_t thread;
    engine_start(RANGE_PER_SCOPE, NULL);
    CHECK(pthread_create(&thread, NULL, endless_launch, NULL) == 0 && pthread_join(thread, NULL) == 0);
    run_scope("step");
    engine_end();
}

static void a_scope_that_begins_beside_such_a_launch_is_counted_as_lost(void **state)
{
    (void)state;
    run_program("", busy_body);
    assert_int_equal(logged.count, 0);
    assert_int_equal(logged_loss("range_busy"), 1);
}

static void no_metrics_body(void)
{
    static const struct metric_choice nothing = {.name = "custom"};
    struct range_counters_options options = {.metrics = &nothing};
    CHECK(range_counters_make(&app.counters, &options, &app.problem) == GPUFL_E_INVALID);
    char names[130];
    for (size_t i = 0; i < sizeof names; i++)
        names[i] = i % 2 ? ',' : 'a';
    names[sizeof names - 1] = '\0'; /* 65 of them */
    app.metrics.count = 1;
    options.metrics = &app.metrics;
    options.scopes = names;
    CHECK(range_counters_make(&app.counters, &options, &app.problem) == GPUFL_E_LIMIT);
}

static void senseless_options_are_refused(void **state)
{
    (void)state;
    run_program("", no_metrics_body);
}

int main(void)
{
    environment_clear();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scope_has_values_once_it_ran_as_often_as_there_are_passes),
        cmocka_unit_test(scopes_that_take_turns_are_measured_one_after_the_other),
        cmocka_unit_test(a_scope_that_does_not_come_again_makes_way),
        cmocka_unit_test(a_scope_that_ran_too_rarely_says_so),
        cmocka_unit_test(without_names_only_the_outermost_scope_is_measured),
        cmocka_unit_test(the_outermost_match_wins),
        cmocka_unit_test(a_scope_beside_a_measured_one_is_counted_as_lost),
        cmocka_unit_test(contexts_are_measured_at_the_same_time_and_come_and_go),
        cmocka_unit_test(no_failing_call_makes_the_log_lie),
        cmocka_unit_test(a_refused_context_leaves_the_program_alone),
        cmocka_unit_test(a_failure_half_way_is_the_reason_of_what_is_missing),
        cmocka_unit_test(cupti_is_not_touched_beside_a_launch_that_does_not_end),
        cmocka_unit_test(a_scope_that_begins_beside_such_a_launch_is_counted_as_lost),
        cmocka_unit_test(senseless_options_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
