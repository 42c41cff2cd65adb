/* SPDX-License-Identifier: Apache-2.0 */
/* Which source has the counters when, on the look-alike CUPTI: alternating windows, launches that are held back
 * meanwhile, contexts created at the wrong moment, invalid counts. Each test runs in a separate process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "windows_fixture.h"

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
    CHECK(launched == reported);
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
    CHECK(!deep_windows_flush_begin(windows)); /* no flush while counting */
    launches(5);
    CHECK(sass_counters_is_open(counters) && finish());
    CHECK(seen_window_count == 1 && seen_windows[0].source == 'S' && seen_windows[0].launches == reported);
    CHECK(executed == 10 * WARPS);
    end();
}

static void sass_metrics_alone_are_one_window(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", count_throughout);
}

/* A launch that takes as long as the test needs. */
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

static void launch_finish(pthread_t thread)
{
    atomic_store(&may_leave, true);
    pthread_join(thread, NULL);
}

/* From now on nothing may be switched; is_counting: which window the launch must fall into. */
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
        launch_finish(thread);
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
    launch_finish(held);
    launch_until(false);
    CHECK(finish());
    end();
}

static void nothing_is_switched_beside_a_launch(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", keep_the_window_open);
}

/* A window of that kind, which cannot end because the GPU never becomes idle. */
static void begin_with_a_kernel_without_end(bool is_counting)
{
    pthread_barrier_init(&entered, NULL, 2);
    begin(true);
    launch_until(true);
    pthread_t held = launch_held_in(is_counting);
    CHECK(launch(LONG_KERNEL, NULL) == FAKE_SUCCESS);
    launch_finish(held);
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
    CHECK(deep_windows_trouble(windows, &problem, &is_over) && strstr(problem.text, "still busy"));
    CHECK(!deep_windows_flush_begin(windows)); /* nothing is flushed while counting */
    uint64_t reported_before = reported;
    CHECK(launch(SHORT_KERNEL, NULL) == FAKE_SUCCESS && reported == reported_before); /* neither held back nor
                                                                                       * reported */
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
    for (int64_t until_ns = clock_mono_ns() + DEADLINE_S * INT64_C(1000000000); deep_windows_flush_begin(windows);) {
        deep_windows_flush_end(windows);
        CHECK(clock_mono_ns() < until_ns);
    }
}

/* The second GPU's context, created while the switch waits for a launch and holds the lock that an attach must not
 * wait for. attaches: how many were not postponed. */
static struct gpu_context come_second(uint32_t *attaches)
{
    wait_for_the_switch();
    struct gpu_context second = context_of(primary_context(1)); /* its callback attaches it */
    /* The switch waits for a bounded time: an attach between two of its attempts is repeated. */
    *attaches = 1; /* the first context's */
    for (uint32_t seen; (seen = pc_sampler_totals(sampler).contexts) > *attaches; *attaches = seen) {
        deep_windows_detach(windows, second.handle);
        wait_for_the_switch();
        attached = deep_windows_attach(windows, &second, &problem);
    }
    CHECK(attached == GPUFL_OK); /* not taken on, and not blocked either */
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
    launch_finish(held);
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

/* A single launch in its window, into a context that is not counted yet. */
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
    launch_finish(held);
    CHECK(rt.cudaSetDevice(1) == FAKE_SUCCESS);
    launches(1); /* waits for the switch, which takes the context on shortly after */
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
    CHECK(cupti.enable(CUPTI_ABI_KIND_CONCURRENT_KERNEL) == CUPTI_ABI_SUCCESS); /* without gpufl's knowledge */
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
    CHECK(attached != GPUFL_OK && strstr(problem.text, "cuptiSassMetricsEnable")); /* the second does not grant it */
    CHECK(pc_sampler_totals(sampler).contexts == 2);                               /* which is still sampled */
    while (!deep_windows_flush_begin(
        windows)) /* kernels are traced and flushed, but while its thread looks at the windows */
        usleep(1000);
    deep_windows_flush_end(windows);
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
        cmocka_unit_test(launches_wait_from_a_quiet_stop_to_the_release),
        cmocka_unit_test(a_context_that_comes_during_a_switch_is_taken_on_after_it),
        cmocka_unit_test(a_launch_that_no_window_counts_raises_no_doubt_about_one),
        cmocka_unit_test(zeros_are_a_loss_and_not_data),
        cmocka_unit_test(without_counting_the_rest_of_the_run_is_sampled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
