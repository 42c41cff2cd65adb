/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions that queries keep in memory: shared, bounded, and reloaded when they grow. */
#include "query_fixture.h"

#include <pthread.h>

static struct query_app app;
static char trace[64], monitor[64];

static int set_up(void **state)
{
    (void)state;
    const struct query_options options = {0};
    fixture_session_id("tests/golden/trace", trace);
    fixture_session_id("tests/golden/monitor", monitor);
    query_app_start(&app, &options);
    query_app_add(&app, "tests/golden/trace");
    query_app_add(&app, "tests/golden/monitor");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    query_app_stop(&app);
    return 0;
}

static void *ask_often(void *user)
{
    char target[256];
    (void)user;
    snprintf(target, sizeof target, "/api/v1/sessions/%s/scopes", trace);
    for (int i = 0; i < 8; i++) {
        struct answer answer = query_ask(&app, "GET", target, "", NULL);
        assert_int_equal(answer.status, 200);
        answer_free(&answer);
    }
    return NULL;
}

/* The metrics of an empty cache after six threads made requests at the same time. */
static struct query_metrics asked_cold(void *(*ask)(void *user))
{
    const struct query_options options = {0};
    struct problem problem = {""};
    struct query_metrics metrics;
    struct query_cache *warm = app.query.cache;
    pthread_t threads[6];
    struct query cold = {0};
    assert_int_equal(query_open(&cold, app.store, &options, &problem), GPUFL_OK);
    app.query.cache = cold.cache;
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask, NULL), 0);
    for (size_t i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    query_metrics_read(&cold, &metrics);
    app.query.cache = warm;
    query_close(&cold);
    return metrics;
}

static void requests_at_the_same_time_share_one_load(void **state)
{
    (void)state;
    struct query_metrics metrics = asked_cold(ask_often);
    assert_int_equal(metrics.loads, 1);
    assert_int_equal(metrics.hits + metrics.busy, 6 * 8 - 1);
}

static void *ask_tracks(void *user)
{
    char target[256];
    (void)user;
    for (int i = 0; i < 4; i++) {
        snprintf(target, sizeof target, "/api/v1/sessions/%s/timeline%s", trace, i % 2 ? "" : "/tracks");
        struct answer answer = query_ask(&app, "GET", target, "", NULL);
        assert_int_equal(answer.status, 200);
        answer_free(&answer);
    }
    return NULL;
}

static void tracks_requested_at_the_same_time_are_made_once(void **state)
{
    (void)state;
    const struct query_options options = {0};
    struct problem problem = {""};
    struct query_metrics one, many = asked_cold(ask_tracks), bare;
    struct query cold = {0};
    assert_int_equal(query_open(&cold, app.store, &options, &problem), GPUFL_OK);
    struct query_session *session = NULL;
    assert_int_equal(query_cache_hold(cold.cache, app.store, trace, false, &session, &problem), GPUFL_OK);
    assert_null(query_cache_tracks_peek(cold.cache, session));
    query_metrics_read(&cold, &bare);
    const struct track_set *tracks = query_cache_tracks(cold.cache, session);
    assert_non_null(tracks);
    assert_ptr_equal(query_cache_tracks(cold.cache, session), tracks);
    assert_ptr_equal(query_cache_tracks_peek(cold.cache, session), tracks);
    query_cache_release(cold.cache, session);
    query_metrics_read(&cold, &one);
    assert_true(one.bytes > bare.bytes);
    assert_int_equal(one.bytes, many.bytes);
    assert_int_equal(many.loads, 1);
    query_close(&cold);
}

static void a_full_cache_evicts_the_least_recently_used_session(void **state)
{
    (void)state;
    const struct query_options options = {.cache_bytes = 1};
    struct problem problem = {""};
    struct query small = {0};
    struct query_session *first = NULL, *second = NULL;
    struct query_metrics metrics;
    assert_int_equal(query_open(&small, app.store, &options, &problem), GPUFL_OK);
    /* A session with kernels does not fit; others are held as long as they are used. */
    assert_int_equal(query_cache_hold(small.cache, app.store, trace, false, &first, &problem), GPUFL_E_LIMIT);
    assert_int_equal(query_cache_hold(small.cache, app.store, monitor, false, &first, &problem), GPUFL_OK);
    assert_int_equal(query_cache_hold(small.cache, app.store, trace, true, &second, &problem), GPUFL_OK);
    query_metrics_read(&small, &metrics);
    assert_int_equal(metrics.sessions, 2);
    query_cache_release(small.cache, first);
    query_cache_release(small.cache, second);
    query_metrics_read(&small, &metrics);
    assert_int_equal(metrics.sessions, 0);
    assert_int_equal(metrics.bytes, 0);
    assert_int_equal(metrics.evicted, 2);
    query_close(&small);
}

static void write_record(const char *id, const char *text)
{
    const struct store_identity identity = {.session_id = id, .window_id = "", .channel = CHANNEL_COUNT};
    struct log_line line = {.channel = CHANNEL_SYSTEM, .file = ""};
    struct batch_view view = {0};
    struct json_document document = {0};
    struct problem problem = {""};
    struct store_write *write = NULL;
    struct store_written written;
    enum store_delivery delivery;
    char reason[LINE_REASON_SIZE];
    assert_false(log_line_decode(&line, &view, &document, text, strlen(text), reason));
    if (store_write_begin(app.store, &identity, &write, &delivery, &problem) ||
        store_write_line(write, &line, text, strlen(text), NULL, &problem) ||
        store_write_commit(write, &written, &problem))
        fail_msg("%s", problem.text);
    json_free(&document);
}

static void a_session_that_grows_or_is_sent_again_is_reloaded(void **state)
{
    (void)state;
    static const char id[] = "0192f300-0000-7000-8000-0000000000aa";
    static const char start_record[] = "{\"version\":1,\"type\":\"job_start\",\"session_id\":\"0192f300-0000-7000-8000-"
                                       "0000000000aa\",\"pid\":7,\"app\":\"grows\",\"ts_ns\":1000000000";
    struct query_session *session = NULL, *again = NULL;
    struct query_cache *cache = app.query.cache;
    struct problem problem = {""};
    char record[512];
    snprintf(record, sizeof record, "%s}", start_record);
    write_record(id, record);
    assert_int_equal(query_cache_hold(cache, app.store, id, false, &session, &problem), GPUFL_OK);
    int64_t revision = session->revision, created_ns = session->created_ns;
    write_record(id, "{\"version\":1,\"type\":\"shutdown\",\"session_id\":\"0192f300-0000-7000-8000-0000000000aa\","
                     "\"pid\":7,\"app\":\"grows\",\"ts_ns\":9000000000}");
    /* It was loaded a moment ago: that state is used for now. */
    assert_int_equal(query_cache_hold(cache, app.store, id, false, &again, &problem), GPUFL_OK);
    assert_ptr_equal(again, session);
    query_cache_release(cache, again);
    session->loaded_ns -= INT64_C(3600000000000);
    assert_int_equal(query_cache_hold(cache, app.store, id, false, &again, &problem), GPUFL_OK);
    assert_true(again != session && again->revision > revision);
    assert_true(again->model->summary.has_shutdown && !session->model->summary.has_shutdown);
    query_cache_release(cache, again);
    query_cache_release(cache, session);

    assert_int_equal(store_session_delete(app.store, id, &problem), GPUFL_OK);
    snprintf(record, sizeof record, "%s,\"hostname\":\"elsewhere\"}", start_record);
    write_record(id, record);
    assert_int_equal(query_cache_hold(cache, app.store, id, false, &again, &problem), GPUFL_OK);
    assert_true(again->created_ns != created_ns);
    assert_string_equal(again->model->job.hostname, "elsewhere");
    query_cache_release(cache, again);
    assert_int_equal(store_session_delete(app.store, id, &problem), GPUFL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_at_the_same_time_share_one_load),
        cmocka_unit_test(tracks_requested_at_the_same_time_are_made_once),
        cmocka_unit_test(a_session_that_grows_or_is_sent_again_is_reloaded),
        cmocka_unit_test(a_full_cache_evicts_the_least_recently_used_session),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
