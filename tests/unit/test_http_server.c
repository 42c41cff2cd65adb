/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "http_server_fixture.h"

#include <zlib.h>
#include <zstd.h>

#define HOST "Host: 127.0.0.1\r\n"

static struct app app;
static uint16_t port;

static int server_setup(void **state)
{
    (void)state;
    struct http_server_options options = fixture_options(&app);
    port = app_start(&app, &options);
    return 0;
}

static int server_teardown(void **state)
{
    (void)state;
    app_stop(&app);
    return 0;
}

static void status_check(const char *request, int status, const char *part)
{
    struct answer answer = client_ask(port, request);
    if (answer.status != status || !strstr(answer.body ? answer.body : "", part))
        fail_msg("%s\n-> %d (not %d) %s %s", request, answer.status, status, answer.head, answer.body);
    answer_free(&answer);
}

static void header_check(const struct answer *answer, const char *name, const char *value)
{
    char got[512];
    const char *text = answer_header(answer, name, got, sizeof got);
    if (!value)
        assert_null(text);
    else if (!text || strcmp(text, value) != 0)
        fail_msg("%s is '%s', not '%s'", name, text ? text : "(absent)", value);
}

static void a_route_gets_path_and_query_decoded(void **state)
{
    (void)state;
    status_check("GET /echo/a%20b?x=1+2&y=%C3%A9 HTTP/1.1\r\n" HOST "\r\n", 200,
                 "{\"id\":\"a b\",\"rest\":\"\",\"x\":\"1 2\",\"y\":\"\xC3\xA9\",\"body\":\"\"}");
    status_check("GET /inline/a/b HTTP/1.1\r\n" HOST "\r\n", 200, "\"rest\":\"a/b\"");
    status_check("GET /inline HTTP/1.1\r\n" HOST "\r\n", 200, "\"rest\":\"\"");
}

static void a_body_arrives_whole_in_either_framing(void **state)
{
    (void)state;
    status_check("POST /echo/1 HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello", 200, "\"body\":\"hello\"");
    status_check("POST /echo/1 HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
                 200, "\"body\":\"hello\"");
}

static void one_connection_serves_many_requests(void **state)
{
    (void)state;
    int fd = client_connect(port);
    for (int i = 0; i < 5; i++) {
        client_say(fd, i % 2 ? "GET /missing HTTP/1.1\r\n" HOST "\r\n" : "GET /echo/1 HTTP/1.1\r\n" HOST "\r\n");
        struct answer answer = answer_read(fd, true);
        assert_int_equal(answer.status, i % 2 ? 404 : 200);
        answer_free(&answer);
    }
    /* Two requests at once. */
    client_say(fd, "GET /echo/7 HTTP/1.1\r\n" HOST "\r\nGET /inline/8 HTTP/1.1\r\n" HOST "\r\n");
    struct answer first = answer_read(fd, true), second = answer_read(fd, true);
    assert_non_null(strstr(first.body, "\"id\":\"7\""));
    assert_non_null(strstr(second.body, "\"rest\":\"8\""));
    answer_free(&first);
    answer_free(&second);
    close(fd);
}

static void every_error_is_json(void **state)
{
    (void)state;
    status_check("GET /nowhere HTTP/1.1\r\n" HOST "\r\n", 404, "{\"error\":{\"code\":\"not_found\",\"message\":\"");
    status_check("GET /silent HTTP/1.1\r\n" HOST "\r\n", 500, "\"code\":\"no_answer\"");
    status_check("BREW /echo/1 HTTP/1.1\r\n" HOST "\r\n", 501, "\"code\":\"method_unknown\"");
    status_check("TRACE /echo/1 HTTP/1.1\r\n" HOST "\r\n", 501, "\"code\":\"method_unknown\"");
    status_check("GET /a%zz HTTP/1.1\r\n" HOST "\r\n", 400, "\"code\":\"target_invalid\"");
    status_check("GET /echo/1?x=%ff HTTP/1.1\r\n" HOST "\r\n", 400, "\"code\":\"target_invalid\"");
    struct answer answer = client_ask(port, "DELETE /echo/1 HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(answer.status, 405);
    header_check(&answer, "Allow", "GET, HEAD, POST");
    header_check(&answer, "Content-Type", "application/json");
    answer_free(&answer);
}

static void traversal_reaches_no_route(void **state)
{
    (void)state;
    static const char *const paths[] = {"/inline/../read",      "/inline/%2e%2e/read", "/inline/..%2fread",
                                        "/files/..%5c..%5cetc", "/files//etc/passwd",  "/files/%00"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        char request[256];
        snprintf(request, sizeof request, "GET %s HTTP/1.1\r\n" HOST "\r\n", paths[i]);
        status_check(request, 400, "\"code\":\"target_invalid\"");
    }
}

static void query_parameters_are_checked_by_name_and_range(void **state)
{
    (void)state;
    status_check("GET /checked HTTP/1.1\r\n" HOST "\r\n", 200, "50");
    status_check("GET /checked?limit=7 HTTP/1.1\r\n" HOST "\r\n", 200, "7");
    status_check("GET /checked?limt=7 HTTP/1.1\r\n" HOST "\r\n", 400, "did you mean 'limit'?");
    status_check("GET /checked?limit=101 HTTP/1.1\r\n" HOST "\r\n", 400, "limit is not a number from 1 to 100");
    status_check("GET /checked?limit=7x HTTP/1.1\r\n" HOST "\r\n", 400, "limit is not a number");
    status_check("GET /checked?limit=99999999999999999999 HTTP/1.1\r\n" HOST "\r\n", 400, "limit is not a number");
    status_check("GET /checked?limit=1&limit=2 HTTP/1.1\r\n" HOST "\r\n", 400, "given twice");
}

static void every_answer_has_its_security_headers(void **state)
{
    (void)state;
    char first[64], second[64];
    struct answer answer = client_ask(port, "GET /nowhere HTTP/1.1\r\n" HOST "\r\n");
    header_check(&answer, "X-Content-Type-Options", "nosniff");
    header_check(&answer, "Referrer-Policy", "no-referrer");
    header_check(&answer, "Cross-Origin-Resource-Policy", "same-origin");
    header_check(&answer, "Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
    header_check(&answer, "Cache-Control", "no-store");
    header_check(&answer, "Server", NULL);
    assert_non_null(answer_header(&answer, "X-Request-Id", first, sizeof first));
    answer_free(&answer);
    answer = client_ask(port, "GET /page HTTP/1.1\r\n" HOST "\r\n");
    char policy[256];
    assert_non_null(answer_header(&answer, "Content-Security-Policy", policy, sizeof policy));
    assert_non_null(strstr(policy, "default-src 'none'; script-src 'self'; style-src 'self'"));
    assert_non_null(strstr(policy, "frame-ancestors 'none'"));
    assert_null(strstr(policy, "unsafe"));
    assert_non_null(answer_header(&answer, "X-Request-Id", second, sizeof second));
    assert_string_not_equal(first, second);
    answer_free(&answer);
}

static void head_is_get_without_a_body(void **state)
{
    (void)state;
    int fd = client_connect(port);
    client_say(fd, "HEAD /page HTTP/1.1\r\n" HOST "\r\nGET /page HTTP/1.1\r\n" HOST "\r\n");
    struct answer head = answer_read(fd, false), get = answer_read(fd, true);
    char head_size[32], get_size[32];
    assert_int_equal(head.status, 200);
    assert_int_equal(get.status, 200);
    assert_string_equal(answer_header(&head, "Content-Length", head_size, sizeof head_size),
                        answer_header(&get, "Content-Length", get_size, sizeof get_size));
    answer_free(&head);
    answer_free(&get);
    close(fd);
}

static void json_is_compressed_with_the_clients_preferred_encoding(void **state)
{
    (void)state;
    static char plain[64 << 10];
    struct answer answer = client_ask(port, "GET /large HTTP/1.1\r\n" HOST "\r\n");
    header_check(&answer, "Content-Encoding", NULL);
    const size_t size = answer.size;
    assert_true(size > 10000 && size < sizeof plain);
    struct answer zstd = client_ask(port, "GET /large HTTP/1.1\r\n" HOST "Accept-Encoding: gzip, zstd\r\n\r\n");
    header_check(&zstd, "Content-Encoding", "zstd");
    header_check(&zstd, "Vary", "Accept-Encoding");
    assert_true(zstd.size < size / 10);
    assert_int_equal(ZSTD_decompress(plain, sizeof plain, zstd.body, zstd.size), size);
    assert_memory_equal(plain, answer.body, size);
    struct answer gzip = client_ask(port, "GET /large HTTP/1.1\r\n" HOST "Accept-Encoding: gzip\r\n\r\n");
    header_check(&gzip, "Content-Encoding", "gzip");
    z_stream stream = {.next_in = (Bytef *)gzip.body, .avail_in = (uInt)gzip.size};
    memset(plain, 0, sizeof plain);
    stream.next_out = (Bytef *)plain;
    stream.avail_out = sizeof plain;
    assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
    assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
    inflateEnd(&stream);
    assert_memory_equal(plain, answer.body, size);
    answer_free(&answer);
    answer_free(&zstd);
    answer_free(&gzip);
}

static void a_known_version_is_not_sent_again(void **state)
{
    (void)state;
    struct answer answer = client_ask(port, "GET /large HTTP/1.1\r\n" HOST "If-None-Match: \"v0\", \"v1\"\r\n\r\n");
    assert_int_equal(answer.status, 304);
    header_check(&answer, "ETag", "W/\"v1\"");
    assert_int_equal(answer.size, 0);
    char policy[256]; /* a browser would merge it into its cached page */
    assert_null(answer_header(&answer, "Content-Security-Policy", policy, sizeof policy));
    answer_free(&answer);
    answer = client_ask(port, "GET /large HTTP/1.1\r\n" HOST "If-None-Match: \"v0\"\r\n\r\n");
    assert_int_equal(answer.status, 200);
    answer_free(&answer);
}

static void static_files_are_cached_by_their_names(void **state)
{
    (void)state;
    struct answer answer = client_ask(port, "GET /files/app.12ab.js HTTP/1.1\r\n" HOST "Accept-Encoding: gzip\r\n\r\n");
    header_check(&answer, "Content-Encoding", "gzip");
    header_check(&answer, "Cache-Control", "public, max-age=31536000, immutable");
    assert_string_equal(answer.body, "GZ");
    answer_free(&answer);
    answer = client_ask(port, "GET /files/app.12ab.js HTTP/1.1\r\n" HOST "\r\n");
    assert_string_equal(answer.body, "let x;");
    answer_free(&answer);
    answer = client_ask(port, "GET /files/index.html HTTP/1.1\r\n" HOST "\r\n");
    header_check(&answer, "Cache-Control", "no-cache");
    header_check(&answer, "ETag", "W/\"77\"");
    answer_free(&answer);
    status_check("GET /files/none HTTP/1.1\r\n" HOST "\r\n", 404, "no such file");
}

static void a_source_is_sent_in_chunks(void **state)
{
    (void)state;
    struct answer answer = client_ask(port, "GET /countdown HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(answer.status, 200);
    assert_non_null(strstr(answer.body, "line 3000\n"));
    assert_string_equal(answer.body + answer.size - 7, "line 1\n");
    answer_free(&answer);
    /* A source that fails ends the connection, so that no client mistakes a part for the whole. */
    int fd = client_connect(port);
    client_say(fd, "GET /countdown?fail HTTP/1.1\r\n" HOST "\r\n");
    char block[4096], tail[8] = "";
    for (size_t got; (got = client_read(fd, block, sizeof block));)
        if (got >= 5)
            memcpy(tail, block + got - 5, 5);
    assert_memory_not_equal(tail, "0\r\n\r\n", 5);
    close(fd);
}

static void keys_are_required_by_scope(void **state)
{
    (void)state;
    app_settle(&app);
    const unsigned released = app.released;
    struct answer answer = client_ask(port, "GET /read HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(answer.status, 401);
    header_check(&answer, "WWW-Authenticate", "Bearer");
    answer_free(&answer);
    status_check("GET /read HTTP/1.1\r\n" HOST "Authorization: Bearer wrong\r\n\r\n", 401, "key_missing");
    status_check("GET /read HTTP/1.1\r\n" HOST "Authorization: Bearer " FIXTURE_TOKEN "\r\n\r\n", 200, "{");
    status_check("DELETE /admin HTTP/1.1\r\n" HOST "Authorization: Bearer " FIXTURE_TOKEN "\r\n\r\n", 403,
                 "this key only reads");
    answer = client_ask(port, "GET /read HTTP/1.1\r\n" HOST "Authorization: Bearer slow\r\n\r\n");
    assert_int_equal(answer.status, 429);
    header_check(&answer, "Retry-After", "7");
    answer_free(&answer);
    app_settle(&app);
    assert_int_equal(app.released, released + 2);
}

static void the_log_names_the_key_but_never_shows_it(void **state)
{
    (void)state;
    app_settle(&app);
    const unsigned before = app.log_count;
    status_check("GET /read?token=hidden HTTP/1.1\r\n" HOST "Authorization: Bearer " FIXTURE_TOKEN "\r\n\r\n", 200,
                 "{");
    app_settle(&app);
    assert_int_equal(app.log_count, before + 1);
    assert_string_equal(app.log[before % 64], "GET /read 200 /read key-1 in=0 127.0.0.1");
    for (size_t i = 0; i < 64; i++)
        assert_null(strstr(app.log[i], FIXTURE_TOKEN));
}

static void requests_are_counted_by_route(void **state)
{
    (void)state;
    struct http_route_metrics before, after;
    const size_t index = 1; /* POST /echo/{id} */
    app_settle(&app);
    http_server_route_metrics(app.server, index, &before);
    status_check("POST /echo/1 HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc", 200, "abc");
    status_check("POST /echo/1 HTTP/1.1\r\n" HOST "Content-Length: 2000\r\n\r\n", 413, "larger than 1000 bytes");
    app_settle(&app);
    http_server_route_metrics(app.server, index, &after);
    assert_int_equal(after.requests[2] - before.requests[2], 1);
    assert_int_equal(after.requests[4] - before.requests[4], 1);
    assert_int_equal(after.bytes_in - before.bytes_in, 3);
    assert_true(after.bytes_out > before.bytes_out);
    uint64_t durations = 0;
    for (size_t i = 0; i <= HTTP_DURATION_BOUNDS; i++)
        durations += after.durations[i] - before.durations[i];
    assert_int_equal(durations, 2);
    struct http_route_metrics unrouted;
    http_server_route_metrics(app.server, FIXTURE_ROUTE_COUNT, &unrouted);
    assert_true(unrouted.requests[4] > 0);
}

enum { CROWD = 8, CROWD_REQUESTS = 100 };

/* Returns the number of correct answers. */
static void *crowd_run(void *argument)
{
    const unsigned member = (unsigned)(uintptr_t)argument;
    uintptr_t right = 0;
    int fd = client_connect(port);
    for (unsigned i = 0; i < CROWD_REQUESTS; i++) {
        char request[128], expected[64];
        snprintf(request, sizeof request, "%s /echo/%u-%u HTTP/1.1\r\n" HOST "%s\r\n%s", i % 2 ? "GET" : "POST", member,
                 i, i % 2 ? "" : "Content-Length: 5\r\n", i % 2 ? "" : "hello");
        snprintf(expected, sizeof expected, "{\"id\":\"%u-%u\",\"rest\":\"\",\"body\":\"%s\"}", member, i,
                 i % 2 ? "" : "hello");
        client_say(fd, request);
        struct answer answer = answer_read(fd, true);
        right += answer.status == 200 && !strcmp(answer.body, expected);
        answer_free(&answer);
    }
    close(fd);
    return (void *)right;
}

static void many_concurrent_clients_each_get_their_answer(void **state)
{
    (void)state;
    pthread_t threads[CROWD];
    for (uintptr_t i = 0; i < CROWD; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, crowd_run, (void *)i), 0);
    for (unsigned i = 0; i < CROWD; i++) {
        void *right = NULL;
        pthread_join(threads[i], &right);
        assert_int_equal((uintptr_t)right, CROWD_REQUESTS);
    }
}

static void a_failed_start_reports_the_reason(void **state)
{
    (void)state;
    struct http_server *server = NULL;
    struct problem problem = {""};
    char listen[32];
    struct http_server_options options = fixture_options(&app);
    snprintf(listen, sizeof listen, "127.0.0.1:%u", port);
    options.listen = listen;
    assert_int_equal(http_server_start(&server, &options, &problem), GPUFL_E_IO);
    assert_non_null(strstr(problem.text, "in use"));
    options.listen = "203.0.113.77:0";
    assert_int_equal(http_server_start(&server, &options, &problem), GPUFL_E_IO);
    assert_non_null(strstr(problem.text, "not an address of this machine"));
    options.listen = "nonsense";
    assert_int_equal(http_server_start(&server, &options, &problem), GPUFL_E_INVALID);
    options.listen = "127.0.0.1:0";
    options.authorize = NULL;
    assert_int_equal(http_server_start(&server, &options, &problem), GPUFL_E_INVALID);
    options.authorize = fixture_authorize;
    options.tls_cert = "/nonexistent/cert.pem";
    assert_int_equal(http_server_start(&server, &options, &problem), GPUFL_E_INVALID);
    options.tls_key = "/nonexistent/key.pem";
    assert_int_equal(http_server_start(&server, &options, &problem), GPUFL_E_IO);
    assert_non_null(strstr(problem.text, "cert.pem"));
    assert_null(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_route_gets_path_and_query_decoded),
        cmocka_unit_test(a_body_arrives_whole_in_either_framing),
        cmocka_unit_test(one_connection_serves_many_requests),
        cmocka_unit_test(every_error_is_json),
        cmocka_unit_test(traversal_reaches_no_route),
        cmocka_unit_test(query_parameters_are_checked_by_name_and_range),
        cmocka_unit_test(every_answer_has_its_security_headers),
        cmocka_unit_test(head_is_get_without_a_body),
        cmocka_unit_test(json_is_compressed_with_the_clients_preferred_encoding),
        cmocka_unit_test(a_known_version_is_not_sent_again),
        cmocka_unit_test(static_files_are_cached_by_their_names),
        cmocka_unit_test(a_source_is_sent_in_chunks),
        cmocka_unit_test(keys_are_required_by_scope),
        cmocka_unit_test(the_log_names_the_key_but_never_shows_it),
        cmocka_unit_test(requests_are_counted_by_route),
        cmocka_unit_test(many_concurrent_clients_each_get_their_answer),
        cmocka_unit_test(a_failed_start_reports_the_reason),
    };
    return cmocka_run_group_tests(tests, server_setup, server_teardown);
}
