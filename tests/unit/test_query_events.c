/* SPDX-License-Identifier: Apache-2.0 */
/* One event of the timeline, the times of a kernel's executions, and sums over a time span. */
#include "golden_session.h"
#include "query_fixture.h"

static struct query_app app, stored; /* stored: every session is too large to load without exact=true */
static char h200[64], trace[64];

static int set_up(void **state)
{
    (void)state;
    const struct query_options options = {0}, rollups = {.exact_kernels = 1};
    fixture_session_id(H200_DIR, h200);
    fixture_session_id("tests/golden/trace", trace);
    query_app_start(&app, &options);
    query_app_start(&stored, &rollups);
    query_app_add(&app, H200_DIR);
    query_app_add(&app, "tests/golden/trace");
    query_app_add(&stored, H200_DIR);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    query_app_stop(&app);
    query_app_stop(&stored);
    return 0;
}

static struct json_document instances(const char *session, int kernel, unsigned limit)
{
    char target[256];
    snprintf(target, sizeof target, "/api/v1/sessions/%s/kernels/%d/instances?limit=%u", session, kernel, limit);
    return query_get(&app, target);
}

static struct json_document event_get(struct query_app *from, const char *session, const char *track, int64_t start_ns)
{
    char target[256];
    snprintf(target, sizeof target, "/api/v1/sessions/%s/timeline/event?track=%s&start_ns=%lld", session, track,
             (long long)start_ns);
    return query_get(from, target);
}

static void a_kernels_event_is_its_execution(void **state)
{
    (void)state;
    struct json_document list = instances(h200, 5, 20);
    for (const struct json_value *at = json_member(list.root, "instances")->child; at; at = at->next) {
        struct json_document event = event_get(&app, h200, "kernels-0-7", json_get_int(at, "start_ns", -1));
        assert_true(json_is_equal(json_member(event.root, "event"), at));
        assert_string_equal(json_get_text(event.root, "name", ""), json_get_text(list.root, "name", "?"));
        assert_int_equal(json_get_int(event.root, "name_id", -1), 5);
        json_free(&event);
        /* The call that launched it is an event of its thread's track. */
        char track[64];
        snprintf(track, sizeof track, "launches-%lld", (long long)json_get_int(at, "thread_id", -1));
        event = event_get(&app, h200, track, json_get_int(at, "api_start_ns", -1));
        assert_int_equal(json_get_int(json_member(event.root, "event"), "correlation_id", -1),
                         json_get_int(at, "correlation_id", -2));
        json_free(&event);
    }
    json_free(&list);
}

/* Finds each track's first event, for every kind of track. */
static void the_first_event_of_every_track_is_found(void **state)
{
    (void)state;
    char target[256];
    struct golden_session golden = golden_load("trace");
    struct track_set set;
    unsigned kinds = 0;
    assert_int_equal(track_set_make(&set, golden.model), GPUFL_OK);
    snprintf(target, sizeof target, "/api/v1/sessions/%s/timeline/tracks", trace);
    struct json_document tracks = query_get(&app, target);
    const struct json_value *track = json_member(tracks.root, "tracks")->child;
    for (size_t i = 0; i < set.track_count; i++, track = track->next) {
        struct json_document event = event_get(&app, trace, json_get_text(track, "id", ""), set.tracks[i].first_ns);
        const char *key = set.tracks[i].key.kind == TRACK_LAUNCHES ? "api_start_ns" : "start_ns";
        assert_int_equal(json_get_int(json_member(event.root, "event"), key, -1), set.tracks[i].first_ns);
        assert_string_equal(json_get_text(json_member(event.root, "track"), "id", ""), json_get_text(track, "id", "?"));
        kinds |= 1u << set.tracks[i].key.kind;
        json_free(&event);
    }
    assert_null(track);
    assert_true(kinds & 1u << TRACK_KERNELS && kinds & 1u << TRACK_SCOPES && kinds & 1u << TRACK_LAUNCHES);
    json_free(&tracks);
    track_set_free(&set);
    golden_unload(&golden);
}

static void an_event_of_a_large_session_is_found_without_loading_it(void **state)
{
    (void)state;
    struct query_metrics metrics;
    struct json_document list = instances(h200, 5, 1);
    const struct json_value *at = json_member(list.root, "instances")->child;
    struct json_document event = event_get(&stored, h200, "kernels-0-7", json_get_int(at, "start_ns", -1));
    const struct json_value *found = json_member(event.root, "event");
    static const char *const keys[] = {"duration_ns", "api_start_ns", "api_duration_ns", "thread_id", "correlation_id"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        assert_int_equal(json_get_int(found, keys[i], -1), json_get_int(at, keys[i], -2));
    assert_true(json_is_equal(json_member(found, "launch"), json_member(at, "launch")));
    query_metrics_read(&stored.query, &metrics);
    assert_int_equal(metrics.loads, 0);
    json_free(&event);
    json_free(&list);
}

static int64_t counts_sum(const struct json_document *marks)
{
    int64_t sum = 0;
    for (const struct json_value *count = json_member(marks->root, "counts")->child; count; count = count->next)
        sum += count->integer;
    return sum;
}

static void marks_count_every_execution_once(void **state)
{
    (void)state;
    char target[256];
    snprintf(target, sizeof target, "/api/v1/sessions/%s/timeline/tracks", h200);
    struct json_document tracks = query_get(&app, target), list = instances(h200, 5, 1);
    long long from_ns = json_get_int(tracks.root, "start_ns", -1), to_ns = json_get_int(tracks.root, "end_ns", -1) + 1;
    for (int pixels = 1; pixels <= 10000; pixels *= 10) {
        snprintf(target, sizeof target, "/api/v1/sessions/%s/timeline/marks?kernel=5&from_ns=%lld&to_ns=%lld&pixels=%d",
                 h200, from_ns, to_ns, pixels);
        struct json_document marks = query_get(&app, target);
        assert_true(json_get_bool(marks.root, "is_exact", false));
        assert_int_equal(json_member(marks.root, "counts")->count, pixels);
        assert_int_equal(counts_sum(&marks), json_get_int(list.root, "total", -1));
        json_free(&marks);
    }
    struct json_document marks = query_get(&stored, target);
    assert_false(json_get_bool(marks.root, "is_exact", true));
    assert_true(counts_sum(&marks) > 0);
    json_free(&marks);
    json_free(&list);
    json_free(&tracks);
}

static struct json_document range_get(const char *session, int64_t from_ns, int64_t to_ns)
{
    char target[256];
    snprintf(target, sizeof target, "/api/v1/sessions/%s/timeline/range?from_ns=%lld&to_ns=%lld", session,
             (long long)from_ns, (long long)to_ns);
    return query_get(&app, target);
}

static void ranges_add_up_to_the_session(void **state)
{
    (void)state;
    char target[256];
    const char *const ids[] = {h200, trace};
    for (size_t s = 0; s < 2; s++) {
        snprintf(target, sizeof target, "/api/v1/sessions/%s/time", ids[s]);
        struct json_document time = query_get(&app, target);
        int64_t start_ns = json_get_int(time.root, "start_ns", -1), end_ns = json_get_int(time.root, "end_ns", -1) + 1;
        for (int parts = 1; parts <= 27; parts *= 3) {
            int64_t busy_ns = 0, kernels = 0;
            double energy_uj = 0;
            for (int i = 0; i < parts; i++) {
                struct json_document range = range_get(ids[s], start_ns + (end_ns - start_ns) * i / parts,
                                                       start_ns + (end_ns - start_ns) * (i + 1) / parts);
                const struct json_value *device = json_member(range.root, "devices")->child;
                busy_ns += json_get_int(device, "busy_ns", -1);
                kernels += json_get_int(device, "kernels", -1);
                if (json_member(device, "energy_uj")->kind != JSON_NULL)
                    energy_uj += json_member(device, "energy_uj")->number;
                json_free(&range);
            }
            assert_int_equal(busy_ns, json_get_int(json_member(time.root, "time")->child, "busy_ns", -1));
            struct json_document list = {0};
            snprintf(target, sizeof target, "/api/v1/sessions/%s/kernels?device=0", ids[s]);
            list = query_get(&app, target);
            assert_int_equal(kernels, json_get_int(list.root, "count", -1));
            json_free(&list);
            /* 12 s at 78 to 183 W. */
            if (ids[s] == h200)
                assert_true(energy_uj > 900e6 && energy_uj < 2300e6);
        }
        json_free(&time);
    }
}

static void impossible_events_and_time_spans_are_rejected(void **state)
{
    (void)state;
    static const struct {
        const char *query, *code;
        int status;
    } wrong[] = {{"event?track=kernels-0-7", "parameter_missing", 400},
                 {"event?start_ns=5", "parameter_missing", 400},
                 {"event?track=kernels-0-7&start_ns=-5", "parameter_invalid", 400},
                 {"event?track=kernels-0-7&start_ns=5", "event_unknown", 404},
                 {"event?track=nonsense&start_ns=5", "event_unknown", 404},
                 {"marks?kernel=1", "parameter_missing", 400},
                 {"marks?from_ns=1&to_ns=2", "parameter_missing", 400},
                 {"marks?kernel=1&from_ns=1&to_ns=2&pixels=0", "parameter_invalid", 400},
                 {"range", "parameter_missing", 400},
                 {"range?from_ns=7&to_ns=7", "parameter_invalid", 400}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char target[256];
        snprintf(target, sizeof target, "/api/v1/sessions/%s/timeline/%s", trace, wrong[i].query);
        struct json_document error = query_json(&app, wrong[i].status, "GET", target, "", NULL);
        assert_string_equal(json_get_text(json_member(error.root, "error"), "code", ""), wrong[i].code);
        json_free(&error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernels_event_is_its_execution),
        cmocka_unit_test(the_first_event_of_every_track_is_found),
        cmocka_unit_test(an_event_of_a_large_session_is_found_without_loading_it),
        cmocka_unit_test(marks_count_every_execution_once),
        cmocka_unit_test(ranges_add_up_to_the_session),
        cmocka_unit_test(impossible_events_and_time_spans_are_rejected),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
