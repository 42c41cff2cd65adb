/* SPDX-License-Identifier: Apache-2.0 */
/* The PC sampling engine on the look-alike CUPTI, in a separate process for each set of faults. */
#include "pc_fixture.h"

#include "../fakes/fake_client.h"
#include "base/clock.h"
#include "capture/pc_engine.h"
#include "driver/cupti_table.h"

#include <time.h>

static void the_period_gives_at_least_the_rate(void **state)
{
    (void)state;
    assert_int_equal(pc_sampler_period_exponent(2000, 1980000), 21); /* 3,776 samples a second and SM */
    assert_int_equal(pc_sampler_period_exponent(1, 1980000), 31);
    assert_int_equal(pc_sampler_period_exponent(4000000000u, 1980000), 5);
    for (uint32_t rate_hz = 100; rate_hz < 1000000; rate_hz = rate_hz * 3 / 2) {
        uint32_t exponent = pc_sampler_period_exponent(rate_hz, 1755000);
        assert_true(UINT64_C(4) * 1755000 * 1000 / rate_hz >= UINT64_C(1) << exponent);
        assert_true(UINT64_C(4) * 1755000 * 1000 / rate_hz < UINT64_C(2) << exponent);
    }
}

static struct cupti product;
static struct fixture *engine;
static struct pc_sampler *sampler;
static uint32_t drain_ms = 2;
static const struct fake_kernel kernel = {"_Z6samplePf", 32, 0, 0, 2000000};

static struct gpu_context current_context(void)
{
    struct fake_context *(*current)(void);
    CHECK(rt.cudaDeviceSynchronize() == FAKE_SUCCESS);
    *(void **)&current = dlsym(RTLD_DEFAULT, "fake_current_context");
    return (struct gpu_context){current(), 1, 0};
}

static void engine_make(bool is_serialized)
{
    product.library.handle = library_load("libcupti.so.13");
    product.version = 130001;
    *(void **)&product.call.get_result_string = dlsym(product.library.handle, "cuptiGetResultString");
    static const struct fake_image image = {FAKE_IMAGE_MAGIC, 1, &kernel};
    void **handle = rt.__cudaRegisterFatBinary((void *)(uintptr_t)&image);
    rt.__cudaRegisterFunction(handle, (const char *)&kernel, NULL, kernel.name, -1, NULL, NULL, NULL, NULL, NULL);
    rt.__cudaUnregisterFatBinary(handle);
    engine = fixture_make();
    const struct pc_sampler_options options = {.cupti = &product,
                                               .attribution = attribution_options(engine),
                                               .is_serialized = is_serialized,
                                               .period_exponent = 16,
                                               .drain_ms = drain_ms};
    CHECK(pc_sampler_make(&sampler, &options, NULL) == GPUFL_OK);
}

static void engine_open(bool is_serialized)
{
    engine_make(is_serialized);
    CHECK(pc_sampler_start(sampler) == GPUFL_OK);
}

static void engine_close(void)
{
    pc_sampler_free(sampler);
    void *state = engine;
    (void)close_fixture(&state);
}

static void run_kernels(int count, uint64_t scope_id)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const int64_t start_ns = (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
    for (int i = 0; i < count; i++)
        CHECK(launch(&kernel, NULL) == FAKE_SUCCESS);
    CHECK(rt.cudaDeviceSynchronize() == FAKE_SUCCESS);
    clock_gettime(CLOCK_REALTIME, &now);
    const struct kernel_execution execution = {start_ns, (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec,
                                               scope_id, kernel_history_symbol(engine->history, kernel.name),
                                               1,        42,
                                               0};
    kernel_history_add(engine->history, &execution);
}

static uint64_t samples_written(void)
{
    uint64_t samples = 0;
    for (uint32_t i = 0; i < row_count(engine); i++)
        samples += (uint64_t)row_at(engine, i)[PROFILE_SAMPLE_METRIC_VALUE];
    return samples;
}

static void sample_a_program(void)
{
    engine_open(false);
    const struct gpu_context context = current_context();
    CHECK(pc_sampler_attach(sampler, &context, NULL) == GPUFL_OK);
    CHECK(pc_sampler_attach(sampler, &context, NULL) == GPUFL_OK); /* again: no harm */
    run_kernels(10, 7);
    CHECK(pc_sampler_bytes(sampler) > 1 << 20);
    pc_sampler_stop(sampler, true);
    pc_sampler_write(sampler, INT64_MAX);
    struct pc_sampler_totals totals = pc_sampler_totals(sampler);
    CHECK(totals.samples > 0 && totals.samples == samples_written());
    CHECK(totals.contexts == 1 && totals.contexts_failed == 0 && totals.unattributed == 0 && totals.intervals > 0);
    for (uint32_t i = 0; i < row_count(engine); i++) {
        CHECK(row_at(engine, i)[PROFILE_SAMPLE_SCOPE_ID] == 7 && row_at(engine, i)[PROFILE_SAMPLE_CORR_ID] == 42);
        CHECK(row_at(engine, i)[PROFILE_SAMPLE_METRIC_ID] > 0);
    }
    CHECK(!pc_sampler_trouble(sampler, NULL));
    recorder_flush(&engine->recorder, 0);
    size_t size;
    char *text = fixture_read(engine->dir, FIXTURE_ID "/scope.log", &size);
    CHECK(strstr(text, "\"type\":\"pc_sampling_config\""));
    CHECK(strstr(text, "\"mode\":\"continuous\",\"period_cycles\":65536"));
    CHECK(strstr(text, "stalled_long_scoreboard"));
    free(text);
    engine_close();
}
static void samples_of_a_program_become_rows(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", sample_a_program);
}

static void rest(void)
{
    engine_make(false);
    const struct gpu_context context = current_context();
    pc_sampler_rest(sampler, true);
    CHECK(pc_sampler_attach(sampler, &context, NULL) == GPUFL_OK);
    run_kernels(10, 7);
    pc_sampler_rest(sampler, false); /* samples taken while it rested would be read now */
    CHECK(pc_sampler_pause(sampler, NULL) == GPUFL_OK && pc_sampler_totals(sampler).samples == 0);
    CHECK(pc_sampler_resume(sampler, 1, NULL) == GPUFL_OK);
    run_kernels(10, 7);
    CHECK(pc_sampler_pause(sampler, NULL) == GPUFL_OK);
    uint64_t awake = pc_sampler_totals(sampler).samples;
    CHECK(awake > 0);
    pc_sampler_rest(sampler, true);
    CHECK(pc_sampler_resume(sampler, 2, NULL) == GPUFL_OK);
    run_kernels(10, 7);
    pc_sampler_rest(sampler, false);
    CHECK(pc_sampler_pause(sampler, NULL) == GPUFL_OK && pc_sampler_totals(sampler).samples == awake);
    pc_sampler_stop(sampler, true);
    engine_close();
}
static void while_it_rests_it_has_the_longest_period(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", rest);
}

static void begin_a_long_break(void)
{
    enum { cycle_ms = 60000 };
    engine_make(false);
    const struct gpu_context context = current_context();
    CHECK(pc_sampler_attach(sampler, &context, NULL) == GPUFL_OK);
    sampler->breaks.cycle_ms = cycle_ms; /* as after a minute */
    sampler->breaks.sampling_ms = 1;
    pc_sampler_launch(sampler, true);
    pc_sampler_launch(sampler, false);
    const int64_t before_ms = clock_wall_ns() / 1000000;
    while (!sampler->breaks.is_break)
        pc_breaks_turn(sampler);
    int64_t late_ms = (before_ms + sampler->breaks.break_ms) % cycle_ms; /* by the wall clock, minus the turns */
    CHECK(late_ms == 0 || late_ms > cycle_ms - 5000);
    pc_sampler_stop(sampler, true);
    engine_close();
}
static void a_long_break_ends_by_the_clock(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", begin_a_long_break);
}

static void end_without_room(void)
{
    drain_ms = 1000; /* so that CUPTI has not decoded anything before */
    engine_make(false);
    const struct gpu_context context = current_context();
    CHECK(pc_sampler_attach(sampler, &context, NULL) == GPUFL_OK);
    run_kernels(10, 7);
    CHECK(pc_sampler_pause(sampler, NULL) == GPUFL_OK);
    CHECK(lost(engine, LOSS_PC_UNREAD) > 0);
    pc_sampler_stop(sampler, true);
    engine_close();
}
static void samples_that_do_not_fit_at_the_end_are_a_loss(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "pc_final=2", end_without_room);
}

static void sample_serialized(void)
{
    engine_open(true);
    const struct gpu_context context = current_context();
    CHECK(pc_sampler_attach(sampler, &context, NULL) == GPUFL_OK);
    run_kernels(3, 7);
    pc_sampler_stop(sampler, true);
    pc_sampler_write(sampler, INT64_MAX);
    int64_t first = row_at(engine, 0)[PROFILE_SAMPLE_CORR_ID];
    bool has_other = false;
    for (uint32_t i = 0; i < row_count(engine); i++) {
        CHECK(row_at(engine, i)[PROFILE_SAMPLE_CONFIDENCE_BP] == 10000);
        has_other |= row_at(engine, i)[PROFILE_SAMPLE_CORR_ID] != first;
    }
    CHECK(first > 0 && has_other);
    engine_close();
}
static void serialized_samples_name_their_launch(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", sample_serialized);
}

static void pause_and_resume(void)
{
    struct problem problem = {""};
    engine_open(false);
    const struct gpu_context context = current_context();
    pc_sampler_want(sampler, &context);
    while (pc_sampler_totals(sampler).contexts == 0)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    run_kernels(2, 7);
    CHECK(pc_sampler_pause(sampler, &problem) == GPUFL_OK);
    uint64_t before = pc_sampler_totals(sampler).samples;
    CHECK(before > 0);
    run_kernels(2, 8);
    CHECK(pc_sampler_resume(sampler, 5, &problem) == GPUFL_OK);
    CHECK(pc_sampler_totals(sampler).samples == before);
    run_kernels(2, 9);
    pc_sampler_stop(sampler, true);
    pc_sampler_write(sampler, INT64_MAX);
    uint64_t in_window = 0;
    for (uint32_t i = 0; i < row_count(engine); i++) {
        const int64_t *row = row_at(engine, i);
        CHECK(row[PROFILE_SAMPLE_SCOPE_ID] == (row[PROFILE_SAMPLE_WINDOW_ID] == 5 ? 9 : 7));
        if (row[PROFILE_SAMPLE_WINDOW_ID] == 5)
            in_window += (uint64_t)row[PROFILE_SAMPLE_METRIC_VALUE];
    }
    CHECK(in_window > 0 && in_window + before == pc_sampler_totals(sampler).samples);
    engine_close();
}
static void nothing_is_sampled_during_a_pause(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", pause_and_resume);
}

static void come_during_a_pause(void)
{
    struct problem problem = {""};
    engine_make(false); /* without its thread */
    const struct gpu_context context = current_context();
    CHECK(pc_sampler_pause(sampler, &problem) == GPUFL_OK);
    CHECK(pc_sampler_attach(sampler, &context, &problem) == GPUFL_OK);
    CHECK(pc_sampler_totals(sampler).contexts == 0);
    CHECK(pc_sampler_resume(sampler, 5, &problem) == GPUFL_OK);
    CHECK(pc_sampler_totals(sampler).contexts == 1);
    run_kernels(2, 9);
    pc_sampler_stop(sampler, true);
    CHECK(pc_sampler_totals(sampler).samples > 0);
    engine_close();
}
static void a_context_that_came_during_a_pause_is_taken_on_by_its_end(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", come_during_a_pause);
}

static void contexts_come_and_go(void)
{
    int (*create)(struct fake_context **, unsigned, int);
    int (*destroy)(struct fake_context *);
    *(void **)&create = dlsym(RTLD_DEFAULT, "cuCtxCreate_v2");
    *(void **)&destroy = dlsym(RTLD_DEFAULT, "cuCtxDestroy_v2");
    engine_open(false);
    (void)current_context();
    for (uint32_t i = 0; i < 3 * PC_CONTEXTS_MAX; i++) {
        struct fake_context *handle;
        CHECK(create(&handle, 0, 0) == FAKE_SUCCESS);
        const struct gpu_context context = {handle, i + 2, 0};
        if (i % 2)
            pc_sampler_want(sampler, &context);
        else
            CHECK(pc_sampler_attach(sampler, &context, NULL) == GPUFL_OK);
        if (i % 16 == 0)
            CHECK(launch(&kernel, NULL) == FAKE_SUCCESS);
        CHECK(rt.cudaDeviceSynchronize() == FAKE_SUCCESS);
        pc_sampler_detach(sampler, handle);
        pc_sampler_detach(sampler, handle); /* no longer known */
        CHECK(destroy(handle) == FAKE_SUCCESS);
    }
    CHECK(lost(engine, LOSS_PC_CONTEXTS) == 0);
    pc_sampler_stop(sampler, true);
    pc_sampler_write(sampler, INT64_MAX);
    CHECK(pc_sampler_totals(sampler).samples > 0 && samples_written() == pc_sampler_totals(sampler).samples);
    CHECK(!pc_sampler_trouble(sampler, NULL));
    engine_close();
}
static void contexts_may_come_and_go_while_sampling(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", contexts_come_and_go);
}

static void too_many_contexts(void)
{
    struct problem problem = {""};
    engine_open(false);
    (void)current_context();
    CHECK(pc_sampler_pause(sampler, &problem) == GPUFL_OK); /* none of these contexts is real */
    for (uintptr_t i = 0; i < PC_CONTEXTS_MAX; i++) {
        const struct gpu_context context = {(void *)(i + 1), (uint32_t)i, 0};
        CHECK(pc_sampler_attach(sampler, &context, &problem) == GPUFL_OK);
    }
    const struct gpu_context context = {(void *)(uintptr_t)1000, 1000, 0};
    CHECK(pc_sampler_attach(sampler, &context, &problem) == GPUFL_E_LIMIT);
    pc_sampler_want(sampler, &context);
    CHECK(lost(engine, LOSS_PC_CONTEXTS) == 2);
    engine_close();
}
static void contexts_beyond_the_limit_are_refused_and_counted(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", too_many_contexts);
}

static void sample_in_two_sessions(void)
{
    engine_open(false);
    const struct gpu_context context = current_context();
    CHECK(pc_sampler_attach(sampler, &context, NULL) == GPUFL_OK);
    run_kernels(2, 7);
    pc_sampler_stop(sampler, false); /* other threads may launch: sampling stays on */
    pc_sampler_write(sampler, INT64_MAX);
    uint64_t first = samples_written();
    CHECK(first > 0 && first == pc_sampler_totals(sampler).samples);
    pc_sampler_free(sampler);
    run_kernels(5, 8); /* between the sessions, so in neither */
    struct pc_sampler_options options = {
        .cupti = &product, .attribution = attribution_options(engine), .is_serialized = true, .period_exponent = 12};
    struct problem problem = {""};
    CHECK(pc_sampler_make(&sampler, &options, NULL) == GPUFL_OK);
    CHECK(pc_sampler_attach(sampler, &context, &problem) == GPUFL_E_UNSUPPORTED); /* it cannot change its mode */
    CHECK(strstr(problem.text, "mode"));
    pc_sampler_free(sampler);
    options.is_serialized = false;
    CHECK(pc_sampler_make(&sampler, &options, NULL) == GPUFL_OK);
    CHECK(pc_sampler_attach(sampler, &context, &problem) == GPUFL_OK);
    run_kernels(2, 9);
    pc_sampler_stop(sampler, true);
    pc_sampler_write(sampler, INT64_MAX);
    CHECK(samples_written() == first + pc_sampler_totals(sampler).samples);
    CHECK(row_at(engine, row_count(engine) - 1)[PROFILE_SAMPLE_SCOPE_ID] == 9);
    recorder_flush(&engine->recorder, 0);
    size_t size;
    char *text = fixture_read(engine->dir, FIXTURE_ID "/scope.log", &size);
    CHECK(!strstr(text, "\"period_cycles\":4096")); /* reports the actual period */
    free(text);
    engine_close();
}
static void a_second_session_takes_over_what_the_first_left_on(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", sample_in_two_sessions);
}

static void sample_again_after_a_pause(void)
{
    engine_open(false);
    const struct gpu_context context = current_context();
    CHECK(pc_sampler_attach(sampler, &context, NULL) == GPUFL_OK);
    run_kernels(2, 7);
    CHECK(pc_sampler_pause(sampler, NULL) == GPUFL_OK);
    pc_sampler_stop(sampler, false);
    pc_sampler_free(sampler);
    CHECK(!pc_sampling_any_parked());
    const struct pc_sampler_options options = {
        .cupti = &product, .attribution = attribution_options(engine), .period_exponent = 12, .drain_ms = 2};
    CHECK(pc_sampler_make(&sampler, &options, NULL) == GPUFL_OK);
    CHECK(pc_sampler_attach(sampler, &context, NULL) == GPUFL_OK);
    run_kernels(2, 9);
    pc_sampler_stop(sampler, true);
    CHECK(pc_sampler_totals(sampler).samples > 0);
    engine_close();
}
static void a_session_that_ends_in_a_pause_leaves_nothing_on(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", sample_again_after_a_pause);
}

static void sample_with_losses(void)
{
    engine_open(false);
    const struct gpu_context context = current_context();
    CHECK(pc_sampler_attach(sampler, &context, NULL) == GPUFL_OK);
    run_kernels(3, 7);
    pc_sampler_stop(sampler, true);
    pc_sampler_write(sampler, INT64_MAX);
    struct pc_sampler_totals totals = pc_sampler_totals(sampler);
    CHECK(totals.dropped > 0 && totals.dropped % 17 == 0 && lost(engine, LOSS_PC_DROPPED) == totals.dropped);
    CHECK(totals.samples == samples_written());
    engine_close();
}
static void dropped_samples_are_a_loss(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "pc_dropped=17", sample_with_losses);
}

static bool is_harmless; /* the engine recovers from the call's failure */

static void sample_with_a_failing_call(void)
{
    struct problem problem = {""};
    engine_open(false);
    const struct gpu_context context = current_context();
    bool is_attached = pc_sampler_attach(sampler, &context, &problem) == GPUFL_OK;
    run_kernels(5, 7);
    /* Enough drains for any of them to fail, and for the engine to stop using the context. */
    while (is_attached && !pc_sampler_trouble(sampler, &problem) && pc_sampler_totals(sampler).intervals < 4)
        run_kernels(1, 7);
    run_kernels(5, 7);
    pc_sampler_stop(sampler, true);
    pc_sampler_write(sampler, INT64_MAX);
    struct pc_sampler_totals totals = pc_sampler_totals(sampler);
    CHECK(totals.samples == samples_written());
    CHECK(is_attached || totals.samples == 0);
    CHECK(is_harmless || pc_sampler_trouble(sampler, &problem));
    CHECK(is_harmless || (problem.text[0] && lost(engine, LOSS_PC_FAILED) > 0));
    CHECK(!is_harmless || (totals.samples > 0 && lost(engine, LOSS_PC_FAILED) == 0));
    recorder_flush(&engine->recorder, 0);
    if (!is_harmless) {
        size_t size;
        char *text = fixture_read(engine->dir, FIXTURE_ID "/system.log", &size);
        char *line = strstr(text, "\"reason\":\"pc_sampling_failed\"");
        CHECK(line && strstr(line, "\"count\":null"));
        free(text);
    }
    engine_close();
}
static void every_call_may_fail_and_the_log_says_so(void **state)
{
    static const struct {
        const char *faults;
        bool is_harmless;
    } cases[] = {
        {"fail=cuptiProfilerInitialize@1:999", false},
        {"fail=cuptiProfilerDeviceSupported@1:35", false},
        {"fail=cuptiPCSamplingGetNumStallReasons@1:7", true}, /* retried once it is enabled */
        {"fail=cuptiPCSamplingGetNumStallReasons@*:7", false},
        {"fail=cuptiPCSamplingGetStallReasons@*:7", false},
        {"fail=cuptiPCSamplingEnable@1:35", false},
        {"fail=cuptiPCSamplingSetConfigurationAttribute@1:7", false},
        {"fail=cuptiPCSamplingGetData@1:999", false},
        {"fail=cuptiPCSamplingGetData@3:7", false},
        {"fail=cuptiPCSamplingGetData@*:999", false},
        {"fail=cuptiPCSamplingDisable@1:999", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        is_harmless = cases[i].is_harmless;
        in_child("libcupti.so.13", cases[i].faults, sample_with_a_failing_call);
    }
}
int main(void)
{
    environment_clear();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_period_gives_at_least_the_rate),
        cmocka_unit_test(samples_of_a_program_become_rows),
        cmocka_unit_test(while_it_rests_it_has_the_longest_period),
        cmocka_unit_test(a_long_break_ends_by_the_clock),
        cmocka_unit_test(samples_that_do_not_fit_at_the_end_are_a_loss),
        cmocka_unit_test(serialized_samples_name_their_launch),
        cmocka_unit_test(nothing_is_sampled_during_a_pause),
        cmocka_unit_test(a_context_that_came_during_a_pause_is_taken_on_by_its_end),
        cmocka_unit_test(contexts_may_come_and_go_while_sampling),
        cmocka_unit_test(contexts_beyond_the_limit_are_refused_and_counted),
        cmocka_unit_test(a_second_session_takes_over_what_the_first_left_on),
        cmocka_unit_test(a_session_that_ends_in_a_pause_leaves_nothing_on),
        cmocka_unit_test(dropped_samples_are_a_loss),
        cmocka_unit_test(every_call_may_fail_and_the_log_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
