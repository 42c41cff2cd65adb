/* SPDX-License-Identifier: Apache-2.0 */
/* A program with the RangeProfiler engine on the look-alike GPU: a child runs it and writes a session, the parent
 * reads the session. */
#ifndef GPUFL_TESTS_RANGE_SESSION_H
#define GPUFL_TESTS_RANGE_SESSION_H

#include "session_fixture.h"

#include "range_fixture.h"

#include "base/clock.h"
#include "capture/range_counters.h"
#include "format/json.h"

enum { KERNELS_MAX = 4, EVENTS_MAX = 256 };

static char session_base[256];

/* ---- the child: a program with the engine in it ---- */

static struct {
    struct cupti *library;
    struct log_writer *writer;
    struct recorder recorder;
    struct scope_history *history;
    struct metric_choice metrics;
    struct range_counters *counters;
    struct problem problem;
    uint32_t correlation_id;
} app;

static inline void engine_make(enum range_mode mode, const char *scopes)
{
    const struct log_writer_options options = {.base_dir = session_base, .session_id = FIXTURE_ID};
    CHECK(cu.init(0) == FAKE_SUCCESS && launch(SHORT_KERNEL, NULL) == FAKE_SUCCESS);
    CHECK(cupti_load(&app.library, &app.problem) == GPUFL_OK);
    CHECK(log_writer_open(&app.writer, &options, NULL) == GPUFL_OK);
    CHECK(recorder_open(&app.recorder, app.writer, FIXTURE_ID, "test") == GPUFL_OK);
    CHECK(scope_history_make(&app.history) == GPUFL_OK);
    snprintf(app.metrics.name, sizeof app.metrics.name, "custom");
    for (app.metrics.count = 0; app.metrics.count < METRIC_COUNT; app.metrics.count++) {
        char *metric = app.metrics.metrics[app.metrics.count];
        snprintf(metric, METRIC_NAME_BYTES, "%s", range_metrics[app.metrics.count]);
        app.metrics.list[app.metrics.count] = metric;
    }
    const struct range_counters_options range = {.cupti = app.library,
                                                 .recorder = &app.recorder,
                                                 .history = app.history,
                                                 .metrics = &app.metrics,
                                                 .mode = mode,
                                                 .kernels_max = KERNELS_MAX,
                                                 .wait_ms = 200,
                                                 .scopes = scopes};
    CHECK(range_counters_make(&app.counters, &range, &app.problem) == GPUFL_OK);
}

static inline gpufl_status attach(int device)
{
    struct gpu_context context = {primary_context(device), (uint32_t)device + 1, (uint32_t)device};
    return range_counters_attach(app.counters, &context, &app.problem);
}

static inline void engine_start(enum range_mode mode, const char *scopes)
{
    engine_make(mode, scopes);
    CHECK(attach(0) == GPUFL_OK);
}

static inline void engine_end(void)
{
    range_counters_stop(app.counters);
    range_counters_write(app.counters);
    range_counters_free(app.counters);
    recorder_flush(&app.recorder, 0);
    recorder_close(&app.recorder);
    log_writer_close(app.writer, 1000);
    scope_history_free(app.history);
}

static inline uint64_t lost(enum loss_reason reason)
{
    return atomic_load(&app.recorder.lost[reason]);
}

static inline void begin(const char *path)
{
    range_counters_scope_begin(app.counters, path, 7, primary_context(0));
}

static inline void end(void)
{
    range_counters_scope_end(app.counters, 0);
}

static inline void run_scope(const char *path)
{
    begin(path);
    launches(2);
    end();
}

/* A launch with its report to the listener. */
static inline void launch_reported(const struct fake_kernel *kernel, uint32_t correlation_id, uint32_t thread_id)
{
    struct launch_call call = {primary_context(0), 1, correlation_id, kernel->name, false, 0};
    range_counters_launch(app.counters, &call, true, thread_id, clock_wall_ns());
    CHECK(launch(kernel, NULL) == FAKE_SUCCESS);
    range_counters_launch(app.counters, &call, false, thread_id, clock_wall_ns());
}

/* ---- the parent: what the session contains ---- */

struct event {
    enum record_type type;
    char name[64], path[64], reason[160], range_name[16];
    int64_t device_id, context_id, passes_needed, passes_collected, instances, scope_id, scope_depth;
    int64_t ordinal, corr_id, start_ns, end_ns;
    uint32_t values, nulls;
    double metrics[METRIC_COUNT], sm_throughput;
};
static struct {
    struct event events[EVENTS_MAX];
    uint32_t count;
    struct {
        char reason[32];
        int64_t count;
    } losses[16];
    uint32_t loss_count;
} logged;

static inline void text_keep(char *out, size_t size, const struct json_value *object, const char *key)
{
    snprintf(out, size, "%s", json_get_text(object, key, "(none)"));
}

static inline void event_keep(const struct log_line *line)
{
    assert_true(logged.count < EVENTS_MAX);
    const struct json_value *object = line->object, *metrics = json_member(object, "metrics");
    struct event *event = &logged.events[logged.count++];
    event->type = line->type;
    bool is_scope = line->type == RECORD_PERF_METRIC_EVENT;
    text_keep(event->name, sizeof event->name, object, is_scope ? "name" : "kernel_name");
    text_keep(event->path, sizeof event->path, object, "user_scope");
    text_keep(event->reason, sizeof event->reason, object, "reason");
    text_keep(event->range_name, sizeof event->range_name, object, "range_name");
    event->device_id = json_get_int(object, "device_id", -9);
    event->context_id = json_get_int(object, "context_id", -9);
    event->passes_needed = json_get_int(object, is_scope ? "passes_needed" : "passes", -9);
    event->passes_collected = json_get_int(object, "passes_collected", -9);
    event->instances = json_get_int(object, "instances", -9);
    event->scope_id = json_get_int(object, "scope_id", -9);
    event->scope_depth = json_get_int(object, "scope_depth", -9);
    event->ordinal = json_get_int(object, "launch_ordinal", -9);
    event->corr_id = json_get_int(object, "corr_id", -9);
    event->start_ns = json_get_int(object, is_scope ? "start_ns" : "ts_ns", -9);
    event->end_ns = json_get_int(object, "end_ns", -9);
    event->sm_throughput = json_member(object, "sm_throughput_pct")->number;
    assert_non_null(metrics);
    assert_string_equal(json_get_text(object, "metric_set", ""), "custom");
    for (const struct json_value *metric = metrics->child; metric; metric = metric->next) {
        assert_true(event->values + event->nulls < METRIC_COUNT);
        assert_string_equal(metric->key, range_metrics[event->values + event->nulls]);
        event->metrics[event->values] = metric->number;
        *(metric->kind == JSON_NULL ? &event->nulls : &event->values) += 1;
    }
}

static inline bool line_keep(void *user, const struct log_line *line)
{
    (void)user;
    if (line->type == RECORD_PERF_METRIC_EVENT || line->type == RECORD_KERNEL_PERF_METRIC_EVENT)
        event_keep(line);
    if (line->type == RECORD_LOSS) {
        assert_true(logged.loss_count < 16);
        text_keep(logged.losses[logged.loss_count].reason, 32, line->object, "reason");
        logged.losses[logged.loss_count++].count = json_get_int(line->object, "count", -1);
    }
    return true;
}

static inline void issue_refuse(void *user, const struct log_issue *issue)
{
    (void)user;
    assert_true(issue->kind == LOG_ISSUE_UNFINISHED); /* there is no shutdown record */
}

/* Runs the program and reads its session; the program's directory is removed afterwards. */
static inline void run_program(const char *faults, void (*body)(void))
{
    struct log_summary summary;
    struct problem problem = {""};
    memset(&logged, 0, sizeof logged);
    snprintf(session_base, sizeof session_base, "%s", fixture_dir());
    in_child("libcupti.so.13", faults, body);
    gpufl_status status = log_read(session_base, line_keep, issue_refuse, NULL, &summary, &problem);
    fixture_remove(session_base);
    if (status != GPUFL_OK && status != GPUFL_E_NOT_FOUND) /* nothing was written */
        fail_msg("%s", problem.text);
}

static inline int64_t logged_loss(const char *reason)
{
    for (uint32_t i = 0; i < logged.loss_count; i++)
        if (!strcmp(logged.losses[i].reason, reason))
            return logged.losses[i].count;
    return 0;
}

#endif
