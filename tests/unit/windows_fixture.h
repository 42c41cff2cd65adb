/* SPDX-License-Identifier: Apache-2.0 */
/* Counting windows on the look-alike CUPTI, for tests that each run in a separate process. */
#ifndef UNIT_WINDOWS_FIXTURE_H
#define UNIT_WINDOWS_FIXTURE_H

#include "base/clock.h"
#include "capture/deep_windows.h"
#include "capture/thread_log.h"
#include "sass_fixture.h"

enum { SHORT_MS = 10, WINDOWS_MAX = 4096, DEADLINE_S = 400 };

static struct cupti *product;
static struct kernel_history *history;
static struct pc_sampler *sampler;
static struct deep_windows *windows;
static gpufl_status attached;
static uint64_t reported; /* launches */
static uint32_t row_count, seen_window_count;
static int64_t executed; /* of the first instruction in window 1 */

static struct seen_window {
    char source, *close_reason;
    uint64_t launches;
} seen_windows[WINDOWS_MAX];

static inline void on_context(void *user, const struct gpu_context *context, bool is_created)
{
    (void)user;
    if (is_created)
        attached = deep_windows_attach(windows, context, &problem);
    else
        deep_windows_detach(windows, context->handle);
}

static inline void on_launch(void *user, const struct launch_call *call, bool is_enter)
{
    (void)user;
    reported += is_enter;
    deep_windows_launch(windows, call, is_enter);
}

static inline void on_capture(void *user, int change, bool is_enter)
{
    (void)user;
    deep_windows_capture(windows, change, is_enter);
}

static inline uint8_t *give_buffer(size_t *size)
{
    *size = 1 << 16;
    return aligned_alloc(8, *size);
}

static inline void take_buffer(uint8_t *buffer, size_t size, size_t valid)
{
    (void)size, (void)valid;
    free(buffer);
}

static inline void wake(void) {}

static inline void begin(bool is_alternating)
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

/* The windows in the log, in its order. */
static inline void read_windows(void)
{
    size_t size;
    char *text = fixture_read(dir, FIXTURE_ID "/scope.log", &size);
    for (char *line = strtok_r(text, "\n", &text); line; line = strtok_r(NULL, "\n", &text)) {
        const char *launches = strstr(line, "\"launches_covered\":"), *reason = strstr(line, "\"close_reason\":\"");
        if (!strstr(line, "\"deep_window_event\"") || !launches || !reason)
            continue;
        CHECK(seen_window_count < WINDOWS_MAX);
        struct seen_window *window = &seen_windows[seen_window_count++];
        window->source = strstr(line, "\"source\":\"sass_metrics\"") ? 'S' : 'P';
        window->launches = strtoull(strchr(launches, ':') + 1, NULL, 10);
        reason += strlen("\"close_reason\":\"");
        window->close_reason = strndup(reason, strcspn(reason, "\""));
    }
}

/* In the collector's order; returns the is_quiet of deep_windows_stop. */
static inline bool finish(void)
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

static inline void end(void)
{
    deep_windows_free(windows);
    pc_sampler_free(sampler);
    engine_end();
    kernel_history_free(history);
}

/* Launches until counting is on, or off. */
static inline void launch_until(bool is_counting)
{
    int64_t until_ns = clock_mono_ns() + DEADLINE_S * INT64_C(1000000000);
    while (sass_counters_is_open(counters) != is_counting) {
        CHECK(launch(SHORT_KERNEL, NULL) == FAKE_SUCCESS);
        CHECK(clock_mono_ns() < until_ns);
    }
}

#endif
