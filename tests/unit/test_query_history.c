/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that divide a session's time into parts agree with its totals. */
#include "query_fixture.h"

static struct query_app app;

static const char *const sessions[] = {H200_DIR,
                                       "tests/golden/trace",
                                       "tests/golden/two_gpus",
                                       "tests/golden/sync_loop",
                                       "tests/golden/launch_bound",
                                       "tests/golden/degraded",
                                       "tests/golden/v1",
                                       "tests/golden/empty"};
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

static struct json_document part_get(const char *session, const char *part, char id[64])
{
    char target[256];
    fixture_session_id(session, id);
    snprintf(target, sizeof target, "/api/v1/sessions/%s/%s", id, part);
    return query_get(&app, target);
}

static int64_t list_sum(const struct json_value *list)
{
    int64_t sum = 0;
    assert_non_null(list);
    for (const struct json_value *at = list->child; at; at = at->next)
        sum += at->integer;
    return sum;
}

static void bins_add_up_to_the_parts_of_the_wall_time(void **state)
{
    (void)state;
    static const char *const names[] = {"kernel_ns",    "memsets_only_ns", "copies_only_ns", "wait_launch_ns",
                                        "wait_sync_ns", "queued_ns",       "no_work_ns",     "unknown_ns"};
    unsigned devices = 0;
    for (size_t i = 0; i < session_total; i++) {
        char id[64];
        struct json_document answer = part_get(sessions[i], "time", id);
        const struct json_value *bins = json_member(answer.root, "bins")->child;
        for (const struct json_value *use = json_member(answer.root, "time")->child; use; use = use->next, devices++) {
            assert_non_null(bins);
            assert_int_equal(json_get_int(bins, "device", -1), json_get_int(use, "device", -2));
            int64_t whole_ns = 0;
            for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
                const struct json_value *list = json_member(bins, names[k]);
                assert_int_equal(list_sum(list), json_get_int(use, names[k], -1));
                whole_ns += list_sum(list);
            }
            assert_int_equal(whole_ns, json_get_int(answer.root, "wall_ns", -1));
            bins = bins->next;
        }
        assert_null(bins);
        json_free(&answer);
    }
    assert_true(devices > 5); /* some have two GPUs, one has no work */
}

static void no_bin_holds_more_than_its_length(void **state)
{
    (void)state;
    char id[64];
    struct json_document answer = part_get(H200_DIR, "time", id);
    const struct json_value *bins = json_member(answer.root, "bins")->child;
    int64_t bin_ns = json_get_int(answer.root, "bin_ns", -1), wall_ns = json_get_int(answer.root, "wall_ns", -1);
    int64_t sums[100] = {0};
    for (const struct json_value *part = bins->child; part; part = part->next) {
        unsigned bin = 0;
        bool is_sum = part->key_size == 10 && !memcmp(part->key, "compute_ns", 10); /* of kernels and memsets */
        for (const struct json_value *at = part->kind == JSON_ARRAY ? part->child : NULL; at; at = at->next)
            sums[bin++] += is_sum ? 0 : at->integer;
        assert_true(part->kind != JSON_ARRAY || bin == 100);
    }
    for (unsigned bin = 0; bin < 99; bin++)
        assert_int_equal(sums[bin], bin_ns);
    assert_int_equal(sums[99], wall_ns - 99 * bin_ns);
    json_free(&answer);
}

static void activity_is_the_kernel_time_of_the_session(void **state)
{
    (void)state;
    char id[64];
    struct json_document answer = part_get(H200_DIR, "activity?bins=40", id);
    struct json_document time = part_get(H200_DIR, "time", id);
    double sum = 0;
    unsigned bins = 0;
    for (const struct json_value *at = json_member(answer.root, "busy")->child; at; at = at->next, bins++) {
        double value = at->kind == JSON_INT ? (double)at->integer : at->number;
        assert_true(value >= 0 && value <= 1);
        sum += value;
    }
    assert_int_equal(bins, 40);
    assert_int_equal(json_get_int(answer.root, "gpus", -1), 1);
    double expected = (double)json_get_int(json_member(time.root, "time")->child, "busy_ns", 0) /
                      (double)json_get_int(time.root, "wall_ns", 1);
    /* One stream, so copies do not overlap; memsets may overlap copies. */
    assert_true(sum / bins > expected * 0.98 && sum / bins < expected * 1.02);
    json_free(&answer);
    json_free(&time);
    answer = part_get("tests/golden/empty", "activity", id);
    json_free(&answer);
}

static void memory_over_time_reaches_its_peak_and_ends_with_unfreed_memory(void **state)
{
    (void)state;
    char id[64];
    struct json_document answer = part_get("tests/golden/trace", "allocations?steps=50", id);
    const struct json_value *group = json_member(answer.root, "memory")->child;
    const struct json_value *history = json_member(answer.root, "history")->child;
    assert_non_null(group);
    assert_non_null(history);
    assert_string_equal(json_get_text(history, "kind", ""), json_get_text(group, "kind", "-"));
    int64_t most = 0, last = -1;
    unsigned steps = 0;
    for (const struct json_value *at = json_member(history, "held_bytes")->child; at; at = at->next, steps++) {
        most = at->integer > most ? at->integer : most;
        last = at->integer;
    }
    assert_int_equal(steps, 50);
    assert_int_equal(most, json_get_int(group, "peak_bytes", -1));
    assert_int_equal(last, json_get_int(group, "never_freed_bytes", -1));
    int64_t kept = 0, before = INT64_MAX;
    for (const struct json_value *block = json_member(answer.root, "kept")->child; block; block = block->next) {
        assert_true(json_get_int(block, "bytes", INT64_MAX) <= before);
        before = json_get_int(block, "bytes", 0);
        kept += before;
    }
    assert_int_equal(kept, json_get_int(group, "never_freed_bytes", -1));
    assert_int_equal(json_get_int(answer.root, "kept_left_out", -1), 0);
    json_free(&answer);
}

static void numbers_of_parts_outside_their_limits_are_rejected(void **state)
{
    (void)state;
    static const char *const parts[] = {"activity?bins=0", "activity?bins=100000", "allocations?steps=0",
                                        "allocations?steps=x", "time?bins=3"};
    char id[64], target[256];
    fixture_session_id("tests/golden/trace", id);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        snprintf(target, sizeof target, "/api/v1/sessions/%s/%s", id, parts[i]);
        struct json_document answer = query_json(&app, 400, "GET", target, "", NULL);
        json_free(&answer);
    }
    struct json_document answer = query_json(&app, 404, "GET", "/api/v1/sessions/none/activity", "", NULL);
    json_free(&answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bins_add_up_to_the_parts_of_the_wall_time),
        cmocka_unit_test(no_bin_holds_more_than_its_length),
        cmocka_unit_test(activity_is_the_kernel_time_of_the_session),
        cmocka_unit_test(memory_over_time_reaches_its_peak_and_ends_with_unfreed_memory),
        cmocka_unit_test(numbers_of_parts_outside_their_limits_are_rejected),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
