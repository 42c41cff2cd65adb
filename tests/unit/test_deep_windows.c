/* SPDX-License-Identifier: Apache-2.0 */
/* Who has the counters when, on the look-alike CUPTI: windows that take turns, launches that are kept out meanwhile,
 * contexts that come at the wrong moment, counts that cannot be right. Each test is a process of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "capture/deep_windows.h"
#include "capture/thread_log.h"
#include "sass_fixture.h"

enum { SHORT_MS = 10, WINDOWS_MAX = 4096, DEADLINE_S = 60 };

static struct cupti *product;
static struct kernel_history *history;
static struct pc_sampler *sampler;
static struct deep_windows *windows;
static gpufl_status attached;
static uint64_t told; /* launches */
static uint32_t row_count, seen_window_count;
static int64_t executed; /* of the first instruction in window 1 */

static struct told_window {
    char source, *close_reason;
    uint64_t launches;
} seen_windows[WINDOWS_MAX];

static void on_context(void *user, const struct gpu_context *context, bool is_created)
{
    (void)user;
    if (is_created)
        attached = deep_windows_attach(windows, context, &problem);
    else
        deep_windows_detach(windows, context->handle);
}

static void on_launch(void *user, const struct launch_call *call, bool is_enter)
{
    (void)user;
    told += is_enter;
    deep_windows_launch(windows, call, is_enter);
}

static void on_capture(void *user, int change, bool is_enter)
{
    (void)user;
    deep_windows_capture(windows, change, is_enter);
}

static uint8_t *give_buffer(size_t *size)
{
    *size = 1 << 16;
    return aligned_alloc(8, *size);
}

static void take_buffer(uint8_t *buffer, size_t size, size_t valid)
{
    (void)size, (void)valid;
    free(buffer);
}

static void wake(void) {}

static void begin(bool is_alternating)
{
    static const struct cupti_listener listener = {
        .on_context = on_context, .on_launch = on_launch, .on_capture = on_capture};
    static const struct cupti_trace_options trace = {.buffer_request = give_buffer, .buffer_complete = take_buffer};
    struct cupti_trace_result granted;
    CHECK(thread_logs_setup(wake) == GPUFL_OK);
    thread_logs_start();
    CHECK(engine_make(&(struct sass_counters_options){.mode = "test"}) == GPUFL_OK);
    CHECK(cupti_load(&product, &problem) == GPUFL_OK && kernel_history_make(&history, 1024) == GPUFL_OK);
    CHECK(cupti_trace_start(product, &trace, &granted, &problem) == GPUFL_OK);
    const struct pc_sampler_options sampling = {
        .cupti = product,
        .attribution = {.recorder = &recorder, .names = &names, .history = history},
        .period_exponent = 5,
        .drain_ms = 2};
    CHECK(pc_sampler_make(&sampler, &sampling, &problem) == GPUFL_OK && pc_sampler_start(sampler) == GPUFL_OK);
    const struct deep_windows_options options = {.cupti = product,
                                                 .recorder = &recorder,
                                                 .sampler = sampler,
                                                 .counters = counters,
                                                 .is_alternating = is_alternating,
                                                 .counting_ms = SHORT_MS,
                                                 .sampling_ms = SHORT_MS};
    CHECK(deep_windows_make(&windows, &options) == GPUFL_OK);
    CHECK(deep_windows_start(windows, &problem) == GPUFL_OK);
    CHECK(cupti_listen(product, &listener, &problem) == GPUFL_OK);
}

/* What the log says of windows, in its order. */
static void read_windows(void)
{
    size_t size;
    char *text = fixture_read(dir, FIXTURE_ID "/scope.log", &size);
    for (char *line = strtok_r(text, "\n", &text); line; line = strtok_r(NULL, "\n", &text)) {
        const char *launches = strstr(line, "\"launches_covered\":"), *reason = strstr(line, "\"close_reason\":\"");
        if (!strstr(line, "\"deep_window_event\"") || !launches || !reason)
            continue;
        CHECK(seen_window_count < WINDOWS_MAX);
        struct told_window *window = &seen_windows[seen_window_count++];
        window->source = strstr(line, "\"source\":\"sass_metrics\"") ? 'S' : 'P';
        window->launches = strtoull(strchr(launches, ':') + 1, NULL, 10);
        reason += strlen("\"close_reason\":\"");
        window->close_reason = strndup(reason, strcspn(reason, "\""));
    }
}

/* In the collector's order; is_quiet as deep_windows_stop says. */
static bool finish(void)
{
    bool is_quiet = deep_windows_stop(windows);
    if (!deep_windows_are_left(windows)) {
        sass_counters_stop(counters, clock_wall_ns());
        pc_sampler_stop(sampler, is_quiet);
    }
    deep_windows_release(windows);
    cupti_trace_stop(product);
    sass_counters_write(counters);
    deep_windows_write(windows);
    row_count = rows()->row_count;
    executed = value_of(1, 0x00, P "inst_executed");
    recorder_flush(&recorder, 0);
    read_windows();
    return is_quiet;
}

static void end(void)
{
    deep_windows_free(windows);
    pc_sampler_free(sampler);
    engine_end();
    kernel_history_free(history);
}

/* Launches until counting is on, or off. */
static void launch_until(bool is_counting)
{
    int64_t until_ns = clock_mono_ns() + DEADLINE_S * INT64_C(1000000000);
    while (sass_counters_is_open(counters) != is_counting) {
        CHECK(launch(SHORT_KERNEL, NULL) == FAKE_SUCCESS);
        CHECK(clock_mono_ns() < until_ns);
    }
}

static void alternate(void)
{
    begin(true);
    for (int i = 0; i < 3; i++) {
        launch_until(true);
        launch_until(false);
    }
    CHECK(attached == GPUFL_OK && finish());
    CHECK(seen_window_count >= 6 && seen_windows[0].source == 'S');
    uint64_t launched = 0;
    for (unsigned i = 0; i < seen_window_count; i++) {
        CHECK(i == 0 || seen_windows[i].source != seen_windows[i - 1].source);
        CHECK(!strcmp(seen_windows[i].close_reason, i + 1 < seen_window_count ? "deadline" : "session_stop"));
        launched += seen_windows[i].launches;
    }
    CHECK(launched == told);
    struct sass_totals totals;
    bool is_over;
    sass_counters_totals(counters, &totals);
    CHECK(totals.windows >= 3 && totals.windows_invalid == 0 && totals.lost == 0);
    CHECK(!deep_windows_trouble(windows, &problem, &is_over) && !is_over);
    end();
}

static void windows_take_turns_and_cover_every_launch(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", alternate);
}

static void count_throughout(void)
{
    begin(false);
    launches(5);
    CHECK(!deep_windows_hold(windows)); /* no flush beside counting */
    launches(5);
    CHECK(sass_counters_is_open(counters) && finish());
    CHECK(seen_window_count == 1 && seen_windows[0].source == 'S' && seen_windows[0].launches == told);
    CHECK(executed == 10 * WARPS);
    end();
}

static void sass_metrics_alone_are_one_window(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", count_throughout);
}

/* A launch that takes as long as the test wants. */
static pthread_barrier_t entered;
static _Atomic bool may_leave;
static void *hold_a_launch(void *nothing)
{
    const struct launch_call call = {.context_id = 1, .symbol = "held"};
    deep_windows_launch(windows, &call, true);
    pthread_barrier_wait(&entered);
    while (!atomic_load(&may_leave))
        usleep(1000);
    deep_windows_launch(windows, &call, false);
    return nothing;
}

static void launch_let_go(pthread_t thread)
{
    atomic_store(&may_leave, true);
    pthread_join(thread, NULL);
}

/* From now on nothing may be switched; the window that this launch fell into is asked for. */
static pthread_t launch_held_in(bool is_counting)
{
    pthread_t thread;
    for (;;) {
        launch_until(is_counting);
        atomic_store(&may_leave, false);
        CHECK(pthread_create(&thread, NULL, hold_a_launch, NULL) == 0);
        pthread_barrier_wait(&entered);
        if (sass_counters_is_open(counters) == is_counting)
            return thread;
        launch_let_go(thread);
    }
}

static void keep_the_window_open(void)
{
    pthread_barrier_init(&entered, NULL, 2);
    begin(true);
    pthread_t held = launch_held_in(true);
    for (int i = 0; i < 20; i++) { /* ten times as long as the window */
        CHECK(sass_counters_is_open(counters));
        usleep(SHORT_MS * 500);
    }
    launch_let_go(held);
    launch_until(false);
    CHECK(finish());
    end();
}

static void nothing_is_switched_beside_a_launch(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", keep_the_window_open);
}

/* A window of that kind, which cannot end because the GPU is never idle again. */
static void begin_with_a_kernel_without_end(bool is_counting)
{
    pthread_barrier_init(&entered, NULL, 2);
    begin(true);
    launch_until(true);
    pthread_t held = launch_held_in(is_counting);
    CHECK(launch(LONG_KERNEL, NULL) == FAKE_SUCCESS);
    launch_let_go(held);
}

static void count_beside_a_kernel_without_end(void)
{
    begin_with_a_kernel_without_end(true);
    for (int i = 0; i < 200; i++) { /* twenty times as long as the window */
        CHECK(launch(SHORT_KERNEL, NULL) == FAKE_SUCCESS && sass_counters_is_open(counters));
        usleep(1000);
    }
    CHECK(!finish() && deep_windows_are_left(windows));
    CHECK(!strcmp(seen_windows[seen_window_count - 1].close_reason, "counts_unread"));
    CHECK(atomic_load(&recorder.lost[LOSS_SASS_DROPPED]) == 1);
    bool is_over;
    CHECK(deep_windows_trouble(windows, &problem, &is_over) && strstr(problem.text, "still at work"));
    CHECK(!deep_windows_hold(windows)); /* nothing is flushed beside counting */
    uint64_t told_before = told;
    CHECK(launch(SHORT_KERNEL, NULL) == FAKE_SUCCESS && told == told_before); /* neither kept out nor told */
}

static void a_kernel_without_end_keeps_neither_launches_nor_the_end(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", count_beside_a_kernel_without_end);
}

static void sample_beside_a_kernel_without_end(void)
{
    begin_with_a_kernel_without_end(false);
    CHECK(!finish() && !deep_windows_are_left(windows));
    CHECK(seen_windows[seen_window_count - 1].source == 'P');
    CHECK(!strcmp(seen_windows[seen_window_count - 1].close_reason, "session_stop"));
    CHECK(atomic_load(&recorder.lost[LOSS_SASS_DROPPED]) == 0);
    end();
}

static void sampling_that_ends_beside_a_kernel_is_not_switched_off(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", sample_beside_a_kernel_without_end);
}

static void capture_to_the_end(void)
{
    void *graph;
    begin(true);
    launch_until(true);
    CHECK(!rt.cudaStreamBeginCapture(NULL, 0) && !finish() && !rt.cudaStreamEndCapture(NULL, &graph));
    CHECK(deep_windows_trouble(windows, &problem, &(bool){0}) && strstr(problem.text, "a graph was being captured"));
}

static void a_graph_that_is_captured_at_the_end_stays_whole(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", capture_to_the_end);
}

static _Atomic bool has_launched;
static void *launch_once(void *nothing)
{
    CHECK(launch(SHORT_KERNEL, NULL) == FAKE_SUCCESS);
    atomic_store(&has_launched, true);
    return nothing;
}

static void stop_quietly(void)
{
    pthread_t thread;
    begin(false);
    launches(1);
    CHECK(deep_windows_stop(windows)); /* true: no launch until the release */
    CHECK(pthread_create(&thread, NULL, launch_once, NULL) == 0);
    usleep(50000);
    CHECK(!atomic_load(&has_launched));
    deep_windows_release(windows);
    pthread_join(thread, NULL);
    CHECK(atomic_load(&has_launched));
    CHECK(finish());
    end();
}

static void launches_wait_from_a_quiet_stop_to_the_release(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", stop_quietly);
}

static void wait_for_the_switch(void)
{
    for (int64_t until_ns = clock_mono_ns() + DEADLINE_S * INT64_C(1000000000); deep_windows_hold(windows);) {
        deep_windows_let_go(windows);
        CHECK(clock_mono_ns() < until_ns);
    }
}

/* The second GPU's context, which comes while the switch waits for a launch and holds the lock that an attach must not
 * wait for. attaches: how many were not put off. */
static struct gpu_context come_second(uint32_t *attaches)
{
    wait_for_the_switch();
    struct gpu_context second = context_of(primary_context(1)); /* its callback attaches it */
    /* The switch waits for a bounded time: an attach that came between two of its tries is made again. */
    *attaches = 1; /* the first context's */
    for (uint32_t seen; (seen = pc_sampler_totals(sampler).contexts) > *attaches; *attaches = seen) {
        deep_windows_detach(windows, second.handle);
        wait_for_the_switch();
        attached = deep_windows_attach(windows, &second, &problem);
    }
    CHECK(attached == GPUFL_OK); /* not taken on, and not kept waiting either */
    return second;
}

static void come_during_a_switch(void)
{
    uint32_t attaches;
    pthread_barrier_init(&entered, NULL, 2);
    begin(true);
    launch_until(true);
    pthread_t held = launch_held_in(false);
    struct gpu_context second = come_second(&attaches);
    launch_let_go(held);
    launch_until(true);
    launch_until(false);
    launch_until(true);
    CHECK(pc_sampler_totals(sampler).contexts == attaches + 1);
    deep_windows_detach(windows, second.handle);
    CHECK(finish());
    struct sass_totals totals;
    sass_counters_totals(counters, &totals);
    CHECK(totals.lost == 0 && totals.windows_invalid == 0);
    end();
}

static void a_context_that_comes_during_a_switch_is_taken_on_after_it(void **state)
{
    (void)state;
    setenv("FAKE_GPU_COUNT", "2", 1);
    in_child("libcupti.so.13", "", come_during_a_switch);
    unsetenv("FAKE_GPU_COUNT");
}

/* A launch into a context that is not counted yet, and no other one in its window. */
static void launch_before_counting(void)
{
    uint32_t attaches;
    struct sass_totals totals;
    bool is_over;
    pthread_barrier_init(&entered, NULL, 2);
    begin(true);
    launch_until(true);
    pthread_t held = launch_held_in(false);
    struct gpu_context second = come_second(&attaches);
    launch_let_go(held);
    CHECK(rt.cudaSetDevice(1) == FAKE_SUCCESS);
    launches(1); /* waits for the switch; the context is taken on a moment later */
    for (int64_t until_ns = clock_mono_ns() + DEADLINE_S * INT64_C(1000000000); sass_counters_is_open(counters);) {
        usleep(1000);
        CHECK(clock_mono_ns() < until_ns);
    }
    deep_windows_detach(windows, second.handle);
    CHECK(finish());
    sass_counters_totals(counters, &totals);
    CHECK(totals.windows_invalid == 0 && atomic_load(&recorder.lost[LOSS_SASS_INVALID]) == 0);
    CHECK(!deep_windows_trouble(windows, &problem, &is_over));
    end();
}

static void a_launch_that_no_window_counts_raises_no_doubt_about_one(void **state)
{
    (void)state;
    setenv("FAKE_GPU_COUNT", "2", 1);
    in_child("libcupti.so.13", "", launch_before_counting);
    unsetenv("FAKE_GPU_COUNT");
}

static void count_beside_kernel_records(void)
{
    begin(false);
    CHECK(cupti.enable(CUPTI_ABI_KIND_CONCURRENT_KERNEL) == CUPTI_ABI_SUCCESS); /* behind our back */
    launches(3);
    bool is_over;
    CHECK(finish() && seen_window_count == 1 && !strcmp(seen_windows[0].close_reason, "counts_invalid"));
    CHECK(row_count == 0 && atomic_load(&recorder.lost[LOSS_SASS_INVALID]) > 0);
    CHECK(deep_windows_trouble(windows, &problem, &is_over) && strstr(problem.text, "zero") && !is_over);
    end();
}

static void zeros_are_a_loss_and_not_data(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", count_beside_kernel_records);
}

static void fail_to_count(void)
{
    bool is_over;
    begin(true);
    launches(1);
    CHECK(attached != GPUFL_OK && !sass_counters_is_open(counters) && pc_sampler_totals(sampler).contexts == 1);
    struct gpu_context second = context_of(primary_context(1));
    CHECK(attached != GPUFL_OK && strstr(problem.text, "cuptiSassMetricsEnable")); /* not granted by the second */
    CHECK(pc_sampler_totals(sampler).contexts == 2);                               /* which is sampled all the same */
    while (!deep_windows_hold(windows)) /* kernels are traced and flushed, but while its thread looks at the windows */
        usleep(1000);
    deep_windows_let_go(windows);
    deep_windows_detach(windows, second.handle);
    CHECK(deep_windows_trouble(windows, &problem, &is_over) && !is_over);
    CHECK(finish() && seen_window_count == 1 && seen_windows[0].source == 'P');
    end();
}

static void without_counting_the_rest_of_the_run_is_sampled(void **state)
{
    (void)state;
    setenv("FAKE_GPU_COUNT", "2", 1);
    in_child("libcupti.so.13", "fail=cuptiSassMetricsEnable@*:999", fail_to_count);
    unsetenv("FAKE_GPU_COUNT");
}

int main(void)
{
    environment_clear();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_take_turns_and_cover_every_launch),
        cmocka_unit_test(sass_metrics_alone_are_one_window),
        cmocka_unit_test(nothing_is_switched_beside_a_launch),
        cmocka_unit_test(a_kernel_without_end_keeps_neither_launches_nor_the_end),
        cmocka_unit_test(sampling_that_ends_beside_a_kernel_is_not_switched_off),
        cmocka_unit_test(a_graph_that_is_captured_at_the_end_stays_whole),
        cmocka_unit_test(launches_wait_from_a_quiet_stop_to_the_release),
        cmocka_unit_test(a_context_that_comes_during_a_switch_is_taken_on_after_it),
        cmocka_unit_test(a_launch_that_no_window_counts_raises_no_doubt_about_one),
        cmocka_unit_test(zeros_are_a_loss_and_not_data),
        cmocka_unit_test(without_counting_the_rest_of_the_run_is_sampled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
