/* SPDX-License-Identifier: Apache-2.0 */
/* The server's answers equal those of `gpufl report --json` for the same session's files. */
#include "query_fixture.h"

static struct query_app app;

static const char *const sessions[] = {
    H200_DIR,
    "tests/golden/trace",
    "tests/golden/training_steps",
    "tests/golden/two_gpus",
    "tests/golden/sync_loop",
    "tests/golden/deep",
    "tests/golden/pc_sampling",
    "tests/golden/sass_metrics",
    "tests/golden/range_metrics",
    "tests/golden/monitor",
    "tests/golden/launch_bound",
    "tests/golden/bench",
    "tests/golden/degraded",
    "tests/golden/empty",
    "tests/golden/v1",
    "tests/golden/deep_v1",
};
enum { session_total = sizeof sessions / sizeof *sessions };

static int set_up(void **state)
{
    (void)state;
    const struct query_options options = {0};
    query_app_start(&app, &options);
    for (size_t i = 0; i < session_total; i++)
        query_app_add(&app, sessions[i]);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    query_app_stop(&app);
    return 0;
}

static struct json_document report_of(const char *session, char id[64])
{
    char path[512];
    struct session_model *model;
    struct problem problem = {""};
    struct report_options options = {0};
    struct bytes text = {0};
    struct json_document document;
    snprintf(path, sizeof path, "%s/%s", SOURCE_DIR, session);
    assert_int_equal(session_load(&model, path, &problem), GPUFL_OK);
    snprintf(id, 64, "%s", model->job.session_id);
    assert_int_equal(report_json(model, &options, &text), GPUFL_OK);
    assert_int_equal(json_parse(&document, text.data, text.size, NULL), GPUFL_OK);
    bytes_free(&text);
    session_free(model);
    return document;
}

/* Each part of the report, and its URL on the server. */
static const struct {
    const char *target, *key;
    bool is_deep;
} parts[] = {
    {"/kernels?limit=1000", "kernels", false},
    {"/steps", "steps", false},
    {"/scopes", "scopes", false},
    {"/scopes", "outside_scopes", false},
    {"/scopes", "operators", false},
    {"/time", "time", false},
    {"/time", "work_by_kind", false},
    {"/copies", "copies", false},
    {"/copies", "memsets", false},
    {"/syncs", "syncs", false},
    {"/syncs", "sync_places", false},
    {"/allocations", "memory", false},
    {"/graphs", "graphs", false},
    {"/metrics", "system", false},
    {"/metrics", "host", false},
    {"/insights", "insights", false},
    {"", "session", false},
    {"", "gpus", false},
    {"", "overhead", false},
    {"/losses", "overhead", false},
    {"/stalls", "stalls", true},
    {"/stalls", "sampling", true},
    {"/stalls", "windows", true},
    {"/stalls", "capabilities", true},
    {"/code?limit=1000", "lines", true},
    {"/ranges", "metrics", true},
    {"/pm", "counters_over_time", true},
};

static void every_part_equals_the_report_of_the_files(void **state)
{
    (void)state;
    unsigned compared = 0;
    for (size_t i = 0; i < session_total; i++) {
        char id[64];
        struct json_document report = report_of(sessions[i], id);
        const struct json_value *deep = json_member(report.root, "deep");
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
            const struct json_value *expected = json_member(parts[k].is_deep ? deep : report.root, parts[k].key);
            if (!expected)
                continue;
            char target[256];
            snprintf(target, sizeof target, "/api/v1/sessions/%s%s", id, parts[k].target);
            struct json_document answer = query_get(&app, target);
            const struct json_value *got = json_member(answer.root, parts[k].key);
            if (!got || !json_is_equal(expected, got))
                fail_msg("%s: %s of %s differs from the report", sessions[i], parts[k].key, target);
            json_free(&answer);
            compared++;
        }
        json_free(&report);
    }
    assert_true(compared > 150);
}

static void completeness_agrees_in_what_a_store_has(void **state)
{
    (void)state;
    static const char *const keys[] = {"is_complete", "has_shutdown", "kernels", "lost", "lost_is_exact", "losses"};
    for (size_t i = 0; i < session_total; i++) {
        char id[64], target[128];
        struct json_document report = report_of(sessions[i], id);
        snprintf(target, sizeof target, "/api/v1/sessions/%s/losses", id);
        struct json_document answer = query_get(&app, target);
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            const struct json_value *expected = json_member(json_member(report.root, "completeness"), keys[k]);
            const struct json_value *got = json_member(json_member(answer.root, "completeness"), keys[k]);
            if (!expected || !got || !json_is_equal(expected, got))
                fail_msg("%s: %s differs", sessions[i], keys[k]);
        }
        json_free(&answer);
        json_free(&report);
    }
}

static const struct json_value *first_kernel(const struct json_document *document)
{
    const struct json_value *kernels = json_member(document->root, "kernels");
    assert_true(kernels && kernels->count);
    return kernels->child;
}

static void instances_histogram_and_occupancy_add_up_to_the_kernel(void **state)
{
    (void)state;
    char id[64], target[256];
    fixture_session_id(H200_DIR, id);
    snprintf(target, sizeof target, "/api/v1/sessions/%s/kernels?limit=1", id);
    struct json_document kernels = query_get(&app, target);
    const struct json_value *kernel = first_kernel(&kernels);
    int64_t count = json_get_int(kernel, "count", -1), total_ns = json_get_int(kernel, "total_ns", -1);
    long long kernel_id = (long long)json_get_int(kernel, "kernel_id", -1);
    assert_true(count > 1);

    int64_t seen = 0, seen_ns = 0;
    char cursor[32] = "0";
    while (*cursor) {
        snprintf(target, sizeof target, "/api/v1/sessions/%s/kernels/%lld/instances?limit=999&cursor=%s", id, kernel_id,
                 cursor);
        struct json_document page = query_get(&app, target);
        int64_t before_ns = 0;
        for (const struct json_value *at = json_member(page.root, "instances")->child; at; at = at->next, seen++) {
            assert_true(json_get_int(at, "start_ns", -1) >= before_ns);
            before_ns = json_get_int(at, "start_ns", -1);
            seen_ns += json_get_int(at, "duration_ns", 0);
        }
        assert_int_equal(json_get_int(page.root, "total", -1), count);
        snprintf(cursor, sizeof cursor, "%s", json_get_text(page.root, "next_cursor", ""));
        json_free(&page);
    }
    assert_int_equal(seen, count);
    assert_int_equal(seen_ns, total_ns);

    snprintf(target, sizeof target, "/api/v1/sessions/%s/kernels/%lld/histogram?bins=17", id, kernel_id);
    struct json_document histogram = query_get(&app, target);
    int64_t in_bins = 0, in_bins_ns = 0, edge_ns = -1;
    for (const struct json_value *bin = json_member(histogram.root, "bins")->child; bin; bin = bin->next) {
        in_bins += json_get_int(bin, "count", 0);
        in_bins_ns += json_get_int(bin, "total_ns", 0);
        assert_true(edge_ns < 0 || json_get_int(bin, "from_ns", -1) == edge_ns);
        edge_ns = json_get_int(bin, "to_ns", -1);
    }
    assert_int_equal(in_bins, count);
    assert_int_equal(in_bins_ns, total_ns);
    assert_int_equal(json_get_int(histogram.root, "median_ns", -1), json_get_int(kernel, "median_ns", -2));
    json_free(&histogram);

    snprintf(target, sizeof target, "/api/v1/sessions/%s/kernels/%lld/occupancy", id, kernel_id);
    struct json_document occupancy = query_get(&app, target);
    int64_t launched = 0;
    for (const struct json_value *launch = json_member(occupancy.root, "launches")->child; launch;
         launch = launch->next)
        launched += json_get_int(launch, "count", 0);
    assert_int_equal(launched, count);
    assert_true(json_is_equal(json_member(json_member(occupancy.root, "launches")->child, "launch"),
                              json_member(kernel, "launch")));
    json_free(&occupancy);
    json_free(&kernels);
}

static void halves_of_a_session_add_up_to_the_whole(void **state)
{
    (void)state;
    char id[64], target[256];
    fixture_session_id(H200_DIR, id);
    snprintf(target, sizeof target, "/api/v1/sessions/%s", id);
    struct json_document summary = query_get(&app, target);
    const struct json_value *session = json_member(summary.root, "session");
    int64_t start_ns = json_get_int(session, "start_ns", 0), end_ns = json_get_int(session, "end_ns", 0);
    long long middle_ns = start_ns + (end_ns - start_ns) / 2;
    json_free(&summary);
    snprintf(target, sizeof target, "/api/v1/sessions/%s/kernels", id);
    struct json_document whole = query_get(&app, target);
    snprintf(target, sizeof target, "/api/v1/sessions/%s/kernels?to_ns=%lld", id, middle_ns);
    struct json_document first = query_get(&app, target);
    snprintf(target, sizeof target, "/api/v1/sessions/%s/kernels?from_ns=%lld", id, middle_ns);
    struct json_document second = query_get(&app, target);
    int64_t count = json_get_int(first.root, "count", -1);
    assert_true(count > 0 && count < json_get_int(whole.root, "count", -1));
    assert_int_equal(count + json_get_int(second.root, "count", -1), json_get_int(whole.root, "count", -2));
    assert_int_equal(json_get_int(first.root, "total_ns", -1) + json_get_int(second.root, "total_ns", -1),
                     json_get_int(whole.root, "total_ns", -2));
    json_free(&whole);
    json_free(&first);
    json_free(&second);
}

static void a_scope_filter_counts_the_kernels_of_the_scope(void **state)
{
    (void)state;
    char id[64], target[512];
    fixture_session_id("tests/golden/trace", id);
    snprintf(target, sizeof target, "/api/v1/sessions/%s/scopes", id);
    struct json_document scopes = query_get(&app, target);
    const struct json_value *top = json_member(scopes.root, "scopes")->child;
    assert_non_null(top);
    snprintf(target, sizeof target, "/api/v1/sessions/%s/kernels?scope=%s", id, json_get_text(top, "path", ""));
    struct json_document kernels = query_get(&app, target);
    assert_int_equal(json_get_int(kernels.root, "count", -1), json_get_int(top, "kernels", -2));
    assert_int_equal(json_get_int(kernels.root, "total_ns", -1), json_get_int(top, "gpu_ns", -2));
    json_free(&kernels);
    json_free(&scopes);
}

static void metric_steps_show_gaps_as_null_and_contain_the_extremes(void **state)
{
    (void)state;
    char id[64], target[256];
    fixture_session_id("tests/golden/monitor", id);
    snprintf(target, sizeof target, "/api/v1/sessions/%s/metrics?metric=power_mw&device=0", id);
    struct json_document answer = query_get(&app, target);
    const struct json_value *series = json_member(answer.root, "series")->child;
    assert_non_null(series);
    int64_t least = INT64_MAX, most = INT64_MIN;
    unsigned nulls = 0, steps = 0;
    for (const struct json_value *at = json_member(series, "min")->child; at; at = at->next, steps++) {
        nulls += at->kind == JSON_NULL;
        least = at->kind == JSON_NULL || at->integer > least ? least : at->integer;
    }
    for (const struct json_value *at = json_member(series, "max")->child; at; at = at->next)
        most = at->kind == JSON_NULL || at->integer < most ? most : at->integer;
    assert_int_equal(steps, json_get_int(answer.root, "steps", -1));
    assert_true(nulls > 0 && nulls < steps);
    const struct json_value *power = json_member(json_member(answer.root, "system")->child, "power_mw");
    assert_int_equal(least, json_get_int(power, "min", -1));
    assert_int_equal(most, json_get_int(power, "max", -1));
    json_free(&answer);
}

static void a_function_has_every_sample_of_its_instructions(void **state)
{
    (void)state;
    char id[64], target[256];
    fixture_session_id("tests/golden/deep", id);
    snprintf(target, sizeof target, "/api/v1/sessions/%s/code", id);
    struct json_document code = query_get(&app, target);
    const struct json_value *function = json_member(code.root, "functions")->child;
    assert_non_null(function);
    snprintf(target, sizeof target, "/api/v1/sessions/%s/code/%lld", id,
             (long long)json_get_int(function, "function_id", -1));
    struct json_document listing = query_get(&app, target);
    int64_t samples = 0, instructions = 0;
    for (const struct json_value *at = json_member(listing.root, "instructions")->child; at; at = at->next) {
        int64_t stalls = 0, here = json_get_int(at, "samples", -1);
        for (const struct json_value *stall = json_member(at, "stalls")->child; stall; stall = stall->next)
            stalls += stall->integer;
        assert_int_equal(stalls, here);
        samples += here;
        instructions++;
    }
    assert_true(instructions > 1);
    assert_int_equal(samples, json_get_int(function, "samples", -1));
    json_free(&listing);
    json_free(&code);
}

static void two_sessions_are_compared_by_name(void **state)
{
    (void)state;
    char base[64], fresh[64], target[256];
    fixture_session_id("tests/golden/trace", base);
    fixture_session_id("tests/golden/two_gpus", fresh);
    snprintf(target, sizeof target, "/api/v1/compare?base=%s&new=%s&threshold_percent=10", base, fresh);
    struct json_document answer = query_get(&app, target);
    assert_string_equal(json_get_text(json_member(answer.root, "base"), "session_id", ""), base);
    assert_true(json_member(answer.root, "kernels")->count > 0);
    json_free(&answer);
    snprintf(target, sizeof target, "/api/v1/compare?base=%s", base);
    answer = query_json(&app, 400, "GET", target, "", NULL);
    json_free(&answer);
}

static void a_repeated_query_is_answered_from_the_cache_or_with_304(void **state)
{
    (void)state;
    char id[64], target[256], etag[64], header[128];
    fixture_session_id("tests/golden/trace", id);
    snprintf(target, sizeof target, "/api/v1/sessions/%s/scopes", id);
    struct answer answer = query_ask(&app, "GET", target, "", NULL);
    assert_int_equal(answer.status, 200);
    assert_non_null(answer_header(&answer, "ETag", etag, sizeof etag));
    answer_free(&answer);
    struct query_metrics before, after;
    query_metrics_read(&app.query, &before);
    snprintf(header, sizeof header, "If-None-Match: %s\r\n", etag);
    answer = query_ask(&app, "GET", target, header, NULL);
    assert_int_equal(answer.status, 304);
    assert_int_equal(answer.size, 0);
    answer_free(&answer);
    query_metrics_read(&app.query, &after);
    assert_int_equal(after.loads, before.loads);
    assert_int_equal(after.hits, before.hits + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_part_equals_the_report_of_the_files),
        cmocka_unit_test(completeness_agrees_in_what_a_store_has),
        cmocka_unit_test(instances_histogram_and_occupancy_add_up_to_the_kernel),
        cmocka_unit_test(halves_of_a_session_add_up_to_the_whole),
        cmocka_unit_test(a_scope_filter_counts_the_kernels_of_the_scope),
        cmocka_unit_test(metric_steps_show_gaps_as_null_and_contain_the_extremes),
        cmocka_unit_test(a_function_has_every_sample_of_its_instructions),
        cmocka_unit_test(two_sessions_are_compared_by_name),
        cmocka_unit_test(a_repeated_query_is_answered_from_the_cache_or_with_304),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
