/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that were launched but not timed, because counters were collected. */
#include "query_fixture.h"

#define SCOPES_DIR "examples/recorded/h200-gemm-scopes"
#define DEEP_DIR "tests/golden/deep"
#define SYNC_DIR "tests/golden/sync_loop"

static struct query_app app;
static char untimed[64], mixed[64], timed[64];

static int set_up(void **state)
{
    (void)state;
    const struct query_options options = {0};
    query_app_start(&app, &options);
    query_app_add(&app, SCOPES_DIR);
    query_app_add(&app, DEEP_DIR);
    query_app_add(&app, SYNC_DIR);
    fixture_session_id(SCOPES_DIR, untimed);
    fixture_session_id(DEEP_DIR, mixed);
    fixture_session_id(SYNC_DIR, timed);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    query_app_stop(&app);
    return 0;
}

static struct json_document session_ask(int status, const char *session, const char *rest)
{
    char target[512];
    snprintf(target, sizeof target, "/api/v1/sessions/%s/%s", session, rest);
    return query_json(&app, status, "GET", target, "", NULL);
}

static int64_t count_of(const char *session, const char *rest)
{
    struct json_document answer = session_ask(200, session, rest);
    int64_t count = json_get_int(answer.root, "count", -1), sum = 0;
    for (const struct json_value *at = json_member(answer.root, "kernels")->child; at; at = at->next)
        sum += json_get_int(at, "count", -1);
    assert_int_equal(sum, count);
    json_free(&answer);
    return count;
}

static void launches_without_a_time_are_listed_by_kernel_most_first(void **state)
{
    (void)state;
    struct json_document answer = session_ask(200, untimed, "launches");
    assert_int_equal(json_get_int(answer.root, "count", -1), 422);
    assert_int_equal(json_get_int(answer.root, "total", -1), 8);
    const struct json_value *kernel = json_member(answer.root, "kernels")->child, *last = kernel;
    assert_string_equal(json_get_text(kernel, "name", ""), "gemm_naive(float const*, float const*, float*, int)");
    assert_int_equal(json_get_int(kernel, "count", -1), 60);
    for (; kernel; last = kernel, kernel = kernel->next)
        assert_true(json_get_int(kernel, "count", -1) <= json_get_int(last, "count", -1));
    assert_string_equal(json_get_text(last, "name", ""), "fill(float*, __half*, unsigned long, unsigned int)");
    assert_int_equal(json_get_int(last, "count", -1), 2);
    json_free(&answer);
    assert_int_equal(count_of(timed, "launches"), 0);
    assert_int_equal(count_of(mixed, "launches"), 3);
}

static void launches_are_filtered_by_scope_time_and_name(void **state)
{
    (void)state;
    assert_int_equal(count_of(untimed, "launches?scope=naive"), 60);
    assert_int_equal(count_of(untimed, "launches?scope=nowhere"), 0);
    assert_int_equal(count_of(untimed, "launches?q=TENSOR"), 60);
    assert_int_equal(count_of(mixed, "launches?scope=step"), 3);
    assert_int_equal(count_of(mixed, "launches?scope=step%20%3E%20add"), 2);
    struct json_document time = session_ask(200, untimed, "time");
    int64_t start_ns = json_get_int(time.root, "start_ns", -1), end_ns = json_get_int(time.root, "end_ns", -1);
    char before[128], after[128];
    snprintf(before, sizeof before, "launches?to_ns=%lld", (long long)(start_ns + (end_ns - start_ns) * 9 / 10));
    snprintf(after, sizeof after, "launches?from_ns=%lld", (long long)(start_ns + (end_ns - start_ns) * 9 / 10));
    int64_t first = count_of(untimed, before), rest = count_of(untimed, after);
    assert_true(first > 0 && rest > 0);
    assert_int_equal(first + rest, 422);
    json_free(&time);
    struct json_document refused = session_ask(400, untimed, "launches?device=0");
    json_free(&refused);
}

static void pages_of_launches_hold_each_kernel_once(void **state)
{
    (void)state;
    char cursor[32] = "0";
    int64_t seen = 0, launches = 0;
    for (int pages = 0; *cursor && pages < 10; pages++) {
        char rest[64];
        snprintf(rest, sizeof rest, "launches?limit=3&cursor=%s", cursor);
        struct json_document answer = session_ask(200, untimed, rest);
        for (const struct json_value *at = json_member(answer.root, "kernels")->child; at; at = at->next, seen++)
            launches += json_get_int(at, "count", -1);
        snprintf(cursor, sizeof cursor, "%s", json_get_text(answer.root, "next_cursor", ""));
        json_free(&answer);
    }
    assert_int_equal(seen, 8);
    assert_int_equal(launches, 422);
}

static void scopes_count_launches_without_gpu_time(void **state)
{
    (void)state;
    struct json_document answer = session_ask(200, untimed, "scopes");
    size_t seen = 0;
    for (const struct json_value *at = json_member(answer.root, "scopes")->child; at; at = at->next, seen++) {
        assert_int_equal(json_get_int(at, "untimed_launches", -1), 60);
        assert_int_equal(json_get_int(at, "untimed_launches_self", -1), 60);
        assert_int_equal(json_get_int(at, "repeat", -1), 60);
        assert_int_equal(json_member(at, "gpu_ns")->kind, JSON_NULL);
        assert_int_equal(json_member(at, "gpu_per_iteration_ns")->kind, JSON_NULL);
    }
    assert_int_equal(seen, 7);
    assert_int_equal(json_get_int(json_member(answer.root, "outside_scopes"), "untimed_launches", -1), 2);
    json_free(&answer);
    /* A parent includes its children's. */
    answer = session_ask(200, mixed, "scopes");
    const struct json_value *step = json_member(answer.root, "scopes")->child;
    assert_int_equal(json_get_int(step, "untimed_launches", -1), 3);
    assert_int_equal(json_get_int(step, "untimed_launches_self", -1), 0);
    assert_true(json_get_int(step, "gpu_ns", -1) > 0);
    json_free(&answer);
}

static void a_kernel_without_times_exists_and_has_the_devices_limits(void **state)
{
    (void)state;
    struct json_document answer = session_ask(200, untimed, "kernels/1/occupancy");
    assert_string_equal(json_get_text(answer.root, "name", ""), "fill(float*, __half*, unsigned long, unsigned int)");
    assert_int_equal(json_member(answer.root, "total_ns")->kind, JSON_NULL);
    assert_null(json_member(answer.root, "launches")->child);
    assert_string_equal(json_get_text(json_member(answer.root, "devices")->child, "name", ""), "NVIDIA H200");
    json_free(&answer);
    answer = session_ask(200, untimed, "kernels/1/histogram");
    assert_int_equal(json_get_int(answer.root, "count", -1), 0);
    assert_int_equal(json_member(answer.root, "median_ns")->kind, JSON_NULL);
    json_free(&answer);
    answer = session_ask(200, untimed, "kernels/1/durations");
    assert_null(json_member(answer.root, "steps")->child);
    json_free(&answer);
    answer = session_ask(404, untimed, "kernels/999/histogram");
    json_free(&answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launches_without_a_time_are_listed_by_kernel_most_first),
        cmocka_unit_test(launches_are_filtered_by_scope_time_and_name),
        cmocka_unit_test(pages_of_launches_hold_each_kernel_once),
        cmocka_unit_test(scopes_count_launches_without_gpu_time),
        cmocka_unit_test(a_kernel_without_times_exists_and_has_the_devices_limits),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
