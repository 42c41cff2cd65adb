/* SPDX-License-Identifier: Apache-2.0 */
/* Lists, changes, configurations, errors, and the OpenAPI description. */
#include "query_fixture.h"

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
    query_app_add(&app, "tests/golden/hostile");
    query_app_add(&app, "tests/golden/killed");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    query_app_stop(&app);
    return 0;
}

static void expect_error(const char *method, const char *target, const char *headers, const char *body, int status,
                         const char *code)
{
    struct json_document error = query_json(&app, status, method, target, headers, body);
    assert_string_equal(json_get_text(json_member(error.root, "error"), "code", ""), code);
    assert_true(*json_get_text(json_member(error.root, "error"), "message", ""));
    json_free(&error);
}

static void sessions_are_listed_page_by_page(void **state)
{
    (void)state;
    unsigned count = 0;
    char target[256], cursor[128] = "";
    do {
        snprintf(target, sizeof target, "/api/v1/sessions?limit=1%s%s", *cursor ? "&cursor=" : "", cursor);
        struct json_document page = query_get(&app, target);
        const struct json_value *row = json_member(page.root, "sessions")->child;
        count += row != NULL;
        snprintf(cursor, sizeof cursor, "%s", json_get_text(page.root, "next_cursor", ""));
        json_free(&page);
    } while (*cursor && count < 100);
    assert_int_equal(count, 4);
    struct json_document found = query_get(&app, "/api/v1/sessions?app=no-such-program");
    assert_int_equal(json_member(found.root, "sessions")->count, 0);
    json_free(&found);
    expect_error("GET", "/api/v1/sessions?sort=color", "", NULL, 400, "parameter_invalid");
    expect_error("GET", "/api/v1/sessions?state=dead", "", NULL, 400, "parameter_invalid");
    expect_error("GET", "/api/v1/sessions?cursor=%21%21", "", NULL, 400, "request_invalid");
}

static void tags_and_retention_are_changed_and_audited(void **state)
{
    (void)state;
    char target[256];
    snprintf(target, sizeof target, "/api/v1/sessions/%s", trace);
    struct json_document changed =
        query_json(&app, 200, "PATCH", target, "", "{\"tags\":[\"nightly\",\"<b>x</b>\"],\"retention_days\":30}");
    const struct json_value *catalog = json_member(changed.root, "catalog");
    assert_int_equal(json_member(catalog, "tags")->count, 2);
    assert_int_equal(json_get_int(catalog, "retention_ns", -1), INT64_C(30) * 86400 * 1000000000);
    json_free(&changed);
    struct json_document found = query_get(&app, "/api/v1/sessions?tag=nightly");
    assert_int_equal(json_member(found.root, "sessions")->count, 1);
    json_free(&found);
    changed = query_json(&app, 200, "PATCH", target, "", "{\"retention_days\":\"forever\"}");
    assert_string_equal(json_get_text(json_member(changed.root, "catalog"), "retention", ""), "forever");
    assert_int_equal(json_member(json_member(changed.root, "catalog"), "tags")->count, 2);
    json_free(&changed);
    expect_error("PATCH", target, "", "{\"app\":\"x\"}", 400, "body_invalid");
    expect_error("PATCH", target, "", "{\"tags\":\"x\"}", 400, "body_invalid");
    expect_error("PATCH", target, "", "{\"tags\":[1]}", 400, "body_invalid");
    expect_error("PATCH", target, "", "{\"retention_days\":-1}", 400, "body_invalid");
    expect_error("PATCH", target, "", "{\"retention_days\":1e99}", 400, "body_invalid");
    expect_error("PATCH", target, "", "{", 400, "body_invalid");
    expect_error("PATCH", target, "", "{}", 400, "body_invalid");
    expect_error("PATCH", "/api/v1/sessions/none", "", "{\"tags\":[]}", 404, "session_unknown");
}

static bool count_entry(void *user, const struct store_audit *entry)
{
    unsigned *count = user;
    *count += !strcmp(entry->action, "session.delete");
    return true;
}

static void a_deleted_session_is_gone(void **state)
{
    (void)state;
    char id[64], target[256];
    struct problem problem = {""};
    unsigned entries = 0;
    fixture_session_id("tests/golden/killed", id);
    snprintf(target, sizeof target, "/api/v1/sessions/%s", id);
    struct json_document summary = query_get(&app, target);
    json_free(&summary);
    struct answer answer = query_ask(&app, "DELETE", target, "", NULL);
    assert_int_equal(answer.status, 204);
    answer_free(&answer);
    expect_error("GET", target, "", NULL, 404, "session_unknown");
    expect_error("DELETE", target, "", NULL, 404, "session_unknown");
    assert_int_equal(store_audits(app.store, 0, 100, count_entry, &entries, &problem), GPUFL_OK);
    assert_int_equal(entries, 1);
}

static void missing_things_are_not_found(void **state)
{
    (void)state;
    static const char *const parts[] = {"",        "/kernels",  "/scopes",  "/timeline", "/timeline/tracks", "/losses",
                                        "/copies", "/insights", "/metrics", "/code",     "/stalls",          "/pm"};
    char target[512];
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        snprintf(target, sizeof target, "/api/v1/sessions/%s%s", "0192f300-0000-7000-8000-ffffffffffff", parts[i]);
        expect_error("GET", target, "", NULL, 404, "session_unknown");
        snprintf(target, sizeof target, "/api/v1/sessions/%s%s", "'%20OR%201=1--", parts[i]);
        expect_error("GET", target, "", NULL, 404, "session_unknown");
    }
    snprintf(target, sizeof target, "/api/v1/sessions/%s/kernels/99999/instances", trace);
    expect_error("GET", target, "", NULL, 404, "kernel_unknown");
    snprintf(target, sizeof target, "/api/v1/sessions/%s/kernels/gemm/instances", trace);
    expect_error("GET", target, "", NULL, 400, "kernel_invalid");
    snprintf(target, sizeof target, "/api/v1/sessions/%s/code/none", trace);
    expect_error("GET", target, "", NULL, 404, "function_unknown");
    snprintf(target, sizeof target, "/api/v1/sessions/%s/metrics?step_ns=1", monitor);
    expect_error("GET", target, "", NULL, 400, "parameter_invalid");
}

static void names_with_markup_stay_text(void **state)
{
    (void)state;
    char id[64], target[256];
    fixture_session_id("tests/golden/hostile", id);
    static const char *const parts[] = {"", "/kernels", "/scopes", "/insights", "/copies", "/losses"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        snprintf(target, sizeof target, "/api/v1/sessions/%s%s", id, parts[i]);
        struct answer answer = query_ask(&app, "GET", target, "", NULL);
        char type[64];
        assert_int_equal(answer.status, 200);
        assert_non_null(answer_header(&answer, "Content-Type", type, sizeof type));
        assert_string_equal(type, "application/json");
        for (size_t k = 0; k + 1 < answer.size; k++)
            assert_true((unsigned char)answer.body[k] >= ' ');
        answer_free(&answer);
    }
}

static void hosts_show_the_latest_metrics_of_their_gpus(void **state)
{
    (void)state;
    struct json_document hosts = query_get(&app, "/api/v1/hosts");
    const struct json_value *list = json_member(hosts.root, "hosts");
    assert_true(list->count > 0);
    unsigned gpus = 0;
    const char *host = NULL, *uuid = NULL;
    for (const struct json_value *at = list->child; at; at = at->next)
        for (const struct json_value *gpu = json_member(at, "gpus")->child; gpu; gpu = gpu->next) {
            const struct json_value *metrics = json_member(gpu, "metrics");
            gpus++;
            if (metrics->kind != JSON_OBJECT)
                continue;
            assert_non_null(json_member(metrics, "power_mw"));
            host = json_get_text(at, "host", "");
            uuid = json_get_text(gpu, "uuid", "");
        }
    assert_true(gpus > 0);
    assert_non_null(host);
    char target[512];
    snprintf(target, sizeof target, "/api/v1/hosts/%s/metrics?gpu=%s&metric=power_mw&from_ns=0&to_ns=1", host, uuid);
    struct json_document metrics = query_get(&app, target);
    assert_int_equal(json_member(metrics.root, "series")->count, 0);
    json_free(&metrics);
    json_free(&hosts);
}

static void kernels_of_all_sessions_are_found_by_part_of_their_name(void **state)
{
    (void)state;
    char target[256];
    snprintf(target, sizeof target, "/api/v1/sessions/%s/kernels?limit=1", trace);
    struct json_document kernels = query_get(&app, target);
    const struct json_value *kernel = json_member(kernels.root, "kernels")->child;
    char part[8];
    snprintf(part, sizeof part, "%.4s", json_get_text(kernel, "name", ""));
    snprintf(target, sizeof target, "/api/v1/search/kernels?q=%s", part);
    struct json_document found = query_get(&app, target);
    bool is_there = false;
    for (const struct json_value *at = json_member(found.root, "kernels")->child; at; at = at->next)
        is_there = is_there || (!strcmp(json_get_text(at, "session_id", ""), trace) &&
                                json_get_int(at, "kernel_id", -1) == json_get_int(kernel, "kernel_id", -2) &&
                                json_get_int(at, "total_ns", -1) == json_get_int(kernel, "total_ns", -2));
    assert_true(is_there);
    json_free(&found);
    json_free(&kernels);
    expect_error("GET", "/api/v1/search/kernels", "", NULL, 400, "parameter_missing");
    found = query_get(&app, "/api/v1/search/kernels?q=%25%27%3B--");
    assert_int_equal(json_member(found.root, "kernels")->count, 0);
    json_free(&found);
}

static void configurations_are_kept_under_their_revision(void **state)
{
    (void)state;
    static const char target[] = "/api/v1/configs/nightly";
    static const char first[] = "{\"profiling_engine\":\"Trace\",\"pc_sampling_rate_hz\":1000}";
    expect_error("GET", target, "", NULL, 404, "configuration_unknown");
    struct answer answer = query_ask(&app, "PUT", target, "If-None-Match: *\r\n", first);
    char etag[32], header[64];
    assert_int_equal(answer.status, 200);
    assert_non_null(answer_header(&answer, "ETag", etag, sizeof etag));
    answer_free(&answer);
    expect_error("PUT", target, "If-None-Match: *\r\n", first, 412, "revision_conflict");
    answer = query_ask(&app, "GET", target, "", NULL);
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer.body, first);
    answer_free(&answer);
    snprintf(header, sizeof header, "If-None-Match: %s\r\n", etag);
    answer = query_ask(&app, "GET", target, header, NULL);
    assert_int_equal(answer.status, 304);
    answer_free(&answer);
    snprintf(header, sizeof header, "If-Match: %s\r\n", etag);
    answer = query_ask(&app, "PUT", target, header, "{\"profiling_engine\":\"Monitor\"}");
    assert_int_equal(answer.status, 200);
    answer_free(&answer);
    expect_error("PUT", target, header, first, 412, "revision_conflict");
    expect_error("DELETE", target, header, NULL, 412, "revision_conflict");
    struct json_document list = query_get(&app, "/api/v1/configs");
    assert_int_equal(json_member(list.root, "configs")->count, 1);
    json_free(&list);
    answer = query_ask(&app, "DELETE", target, "", NULL);
    assert_int_equal(answer.status, 204);
    answer_free(&answer);
    expect_error("GET", target, "", NULL, 404, "configuration_unknown");
}

static void a_configuration_cannot_set_where_data_is_sent(void **state)
{
    (void)state;
    static const char target[] = "/api/v1/configs/evil";
    static const char *const forbidden[] = {"{\"log_path\":\"/etc\"}", "{\"backend_url\":\"http://x\"}",
                                            "{\"api_key\":\"k\"}", "{\"api_path\":\"/x\"}", "{\"config_file\":\"/x\"}"};
    for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++)
        expect_error("PUT", target, "", forbidden[i], 422, "option_forbidden");
    expect_error("PUT", target, "", "{\"pc_sampling_rate_hz\":{}}", 422, "option_invalid");
    expect_error("PUT", target, "", "{\"enabled\":true,\"enabled\":false}", 422, "option_invalid");
    expect_error("PUT", target, "", "[]", 400, "config_invalid");
    expect_error("PUT", target, "", "{", 400, "config_invalid");
    expect_error("PUT", "/api/v1/configs/a%20b", "", "{}", 400, "name_invalid");
    expect_error("GET", target, "", NULL, 404, "configuration_unknown");
}

static void live_updates_are_a_stream_of_events(void **state)
{
    (void)state;
    struct live *live = NULL;
    char line[1024];
    bool is_stream = false;
    expect_error("GET", "/api/v1/live", "", NULL, 503, "not_live");
    expect_error("GET", "/api/v1/live?topic=weather", "", NULL, 400, "parameter_invalid");
    assert_int_equal(live_open(&live), GPUFL_OK);
    live_attach(live, app.server);
    app.query.live = live;
    int fd = client_connect(app.port);
    client_say(fd, "GET /api/v1/live?topic=sessions HTTP/1.1\r\nHost: localhost\r\n\r\n");
    while (client_read_line(fd, line, sizeof line) && strcmp(line, "\r\n") != 0)
        is_stream = is_stream || !strncasecmp(line, "Content-Type: text/event-stream", 31);
    assert_true(is_stream);
    close(fd);
    app.query.live = NULL;
    live_attach(live, NULL);
    live_close(live);
}

/* ---- the description; an end-to-end test compares the answers with it ---- */

static const char *const method_words[HTTP_METHOD_COUNT] = {"get", "post", "put", "patch", "delete"};

static void the_description_has_every_route_and_no_other(void **state)
{
    (void)state;
    struct json_document document = query_get(&app, "/api/v1/openapi.json");
    assert_string_equal(json_get_text(document.root, "openapi", ""), "3.1.0");
    assert_true(*json_get_text(json_member(document.root, "info"), "title", ""));
    assert_true(*json_get_text(json_member(document.root, "info"), "version", ""));
    const struct json_value *paths = json_member(document.root, "paths");
    const struct json_value *schemas = json_member(json_member(document.root, "components"), "schemas");
    struct api_table table = query_table();
    size_t operations = 0;
    for (const struct json_value *path = paths->child; path; path = path->next)
        operations += path->count;
    assert_int_equal(operations, table.count);
    for (size_t i = 0; i < table.count; i++) {
        const struct api_route *route = &table.routes[i];
        const struct json_value *operation =
            json_member(json_member(paths, route->http.pattern), method_words[route->http.method]);
        if (!operation)
            fail_msg("%s is not described", route->http.pattern);
        assert_string_equal(json_get_text(operation, "operationId", ""), route->name);
        if (route->schema && !route->type) /* answers other than JSON have no schema */
            assert_non_null(json_member(schemas, route->schema));
        if (route->body)
            assert_non_null(json_member(schemas, route->body));
        size_t in_query = 0;
        for (const struct json_value *at = json_member(operation, "parameters")->child; at; at = at->next)
            in_query += !strcmp(json_get_text(at, "in", ""), "query");
        size_t count = 0;
        for (; route->parameters && route->parameters[count]; count++) {
            const struct api_parameter *known = api_parameters;
            while (known->name && strcmp(known->name, route->parameters[count]) != 0)
                known++;
            if (!known->name)
                fail_msg("parameter %s has no description", route->parameters[count]);
        }
        assert_int_equal(in_query, count);
    }
    json_free(&document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sessions_are_listed_page_by_page),
        cmocka_unit_test(tags_and_retention_are_changed_and_audited),
        cmocka_unit_test(a_deleted_session_is_gone),
        cmocka_unit_test(missing_things_are_not_found),
        cmocka_unit_test(names_with_markup_stay_text),
        cmocka_unit_test(hosts_show_the_latest_metrics_of_their_gpus),
        cmocka_unit_test(kernels_of_all_sessions_are_found_by_part_of_their_name),
        cmocka_unit_test(configurations_are_kept_under_their_revision),
        cmocka_unit_test(a_configuration_cannot_set_where_data_is_sent),
        cmocka_unit_test(live_updates_are_a_stream_of_events),
        cmocka_unit_test(the_description_has_every_route_and_no_other),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
