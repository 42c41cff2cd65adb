/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that must be rejected: ambiguous and oversized ones, pages of other sites, clients that block a
 * connection. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "http/http_core.h"
#include "http_server_fixture.h"

#define HOST "Host: 127.0.0.1\r\n"
#define SMUGGLED "GET /echo/smuggled HTTP/1.1\r\n" HOST "\r\n"

static struct app app;
static uint16_t port;

static void server_start(unsigned head_timeout_ms, unsigned body_timeout_ms)
{
    static const char *const hosts[] = {"gpus.example", NULL};
    struct http_server_options options = fixture_options(&app);
    options.allowed_hosts = hosts;
    options.head_timeout_ms = options.idle_timeout_ms = head_timeout_ms;
    options.body_timeout_ms = body_timeout_ms;
    options.body_rate_min = 1000;
    port = app_start(&app, &options);
}

/* A busy machine may keep this program's client waiting. */
static int patient_server_setup(void **state)
{
    (void)state;
    server_start(600000, 600000);
    return 0;
}

static int impatient_server_setup(void **state)
{
    (void)state;
    server_start(400, 2000);
    return 0;
}

static int server_teardown(void **state)
{
    (void)state;
    app_stop(&app);
    return 0;
}

/* A strict library rejects some requests before it calls the server: with its own page, or by closing. */
static bool is_refused_by_library(const struct answer *answer)
{
    bool has_page = answer->status >= 400 && answer->body && strstr(answer->body, "<html>");
    return !http_library_is_lenient() && (has_page || !answer->status);
}

/* Checks that the request is rejected with a JSON error and nothing after it is treated as a request. */
static void refused_check(const char *request, size_t size, int status, const char *code)
{
    int fd = client_connect(port);
    client_send(fd, request, size);
    struct answer answer = answer_read(fd, true);
    bool is_expected = answer.status == status && strstr(answer.body ? answer.body : "", code);
    if (!is_expected && !is_refused_by_library(&answer))
        fail_msg("%s\n-> %d (not %d) %s%s", request, answer.status, status, answer.head, answer.body);
    assert_true(client_is_closed(fd));
    answer_free(&answer);
    close(fd);
}

static void ambiguous_framing_is_rejected(void **state)
{
    (void)state;
    static const char *const heads[] = {
        "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: chunked \r\n",
        "Transfer-Encoding:\r\n",
    };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        char request[512];
        snprintf(request, sizeof request, "POST /echo/1 HTTP/1.1\r\n" HOST "%s\r\nhello" SMUGGLED, heads[i]);
        refused_check(request, strlen(request), 400, "\"code\":\"framing_");
    }
}

static void lines_that_proxies_may_parse_differently_are_rejected(void **state)
{
    (void)state;
    static const char *const heads[] = {
        "POST /echo/1 HTTP/1.1\r\n" HOST "X-A: b\r\n c\r\n\r\n" SMUGGLED,
        "POST /echo/1 HTTP/1.1\r\n" HOST "Content-:            5\r\n Length\r\n\r\nhello" SMUGGLED,
        "POST /echo/1 HTTP/1.1\r\n" HOST "Content-Length : 5\r\n\r\nhello" SMUGGLED,
        "POST /echo/1 HTTP/1.1\r\n" HOST "Content-Length\t: 5\r\n\r\nhello" SMUGGLED,
        "POST /echo/1 HTTP/1.1\r\n" HOST "X-A: b\nContent-Length: 5\r\n\r\nhello" SMUGGLED,
        "POST /echo/1 HTTP/1.1\n" HOST "\r\n" SMUGGLED,
        "POST /echo/1 HTTP/1.1\r\n" HOST "X-A: b\r\n\n" SMUGGLED,
        "POST /echo/1 HTTP/1.1\r\n" HOST "X-A: b\x01\r\n\r\n" SMUGGLED,
        "POST /echo/1 HTTP/1.1\r\n" HOST "X-A: b\rContent-Length: 5\r\n\r\nhello" SMUGGLED,
        "POST /echo/1 HTTP/1.1\r\n" HOST "X(A): b\r\n\r\n" SMUGGLED,
        "POST  /echo/1 HTTP/1.1\r\n" HOST "\r\n" SMUGGLED,
        "POST /echo/1  HTTP/1.1\r\n" HOST "\r\n" SMUGGLED,
        "PO\x01ST /echo/1 HTTP/1.1\r\n" HOST "\r\n" SMUGGLED,
    };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        refused_check(heads[i], strlen(heads[i]), 400, "\"code\":\"request_malformed\"");
    static const char nul_value[] = "POST /echo/1 HTTP/1.1\r\n" HOST "X-A: b\0c\r\n\r\n" SMUGGLED;
    refused_check(nul_value, sizeof nul_value - 1, 400, "\"code\":\"request_malformed\"");
    static const char nul_target[] = "GET /echo/1\0/../read HTTP/1.1\r\n" HOST "\r\n" SMUGGLED;
    refused_check(nul_target, sizeof nul_target - 1, 400, "\"code\":\"request_malformed\"");
}

/* Requests that the library itself rejects get at least an error, and the connection is closed. */
static void bytes_that_are_not_http_end_the_connection(void **state)
{
    (void)state;
    static const char *const requests[] = {
        "POST /echo/1 HTTP/1.1\r\n" HOST "Content-Length: 5x\r\n\r\nhello" SMUGGLED,
        "POST /echo/1 HTTP/1.1\r\n" HOST "Content-Length: -5\r\n\r\nhello" SMUGGLED,
        "POST /echo/1 HTTP/1.1\r\n" HOST "Content-Length: 5, 5\r\n\r\nhello" SMUGGLED,
        "POST /echo/1 HTTP/1.1\r\n" HOST "Content-Length: 99999999999999999999\r\n\r\nhello" SMUGGLED,
        "POST /echo/1 HTTP/1.1\r\n" HOST "no colon\r\n\r\n" SMUGGLED,
        "POST /echo/1 HTTP/2.0\r\n" HOST "\r\n" SMUGGLED,
        "POST /echo/1 HTTP/1.10\r\n" HOST "\r\n" SMUGGLED,
        "POST /echo/1 HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nzz\r\n" SMUGGLED,
        "POST /echo/1 HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n" SMUGGLED,
        "\x16\x03\x01\x02hello\r\n\r\n",
        "GET\r\n\r\n",
    };
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        int fd = client_connect(port);
        char text[4096];
        size_t used = 0;
        client_say(fd, requests[i]);
        for (size_t got; used + 1 < sizeof text && (got = client_read(fd, text + used, sizeof text - 1 - used));)
            used += got;
        text[used] = '\0';
        assert_null(strstr(text, "smuggled"));
        assert_null(strstr(text, "HTTP/1.1 2"));
        close(fd);
    }
}

static void hosts_and_versions_are_checked(void **state)
{
    (void)state;
    refused_check("GET /page HTTP/1.1\r\n\r\n", 22, 400, "\"code\":\"host_missing\"");
    refused_check("GET /page HTTP/1.1\r\n" HOST HOST "\r\n", strlen("GET /page HTTP/1.1\r\n" HOST HOST "\r\n"), 400,
                  "\"code\":\"host_missing\"");
    static const struct {
        const char *request;
        int status;
    } cases[] = {
        {"GET /page HTTP/1.1\r\nHost: localhost:8080\r\n\r\n", 200},
        {"GET /page HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n", 200},
        {"GET /page HTTP/1.1\r\nHost: GPUs.example:8080\r\n\r\n", 200},
        {"GET /page HTTP/1.0\r\n\r\n", 200},
        {"GET /page HTTP/1.1\r\nHost: rebound.example\r\n\r\n", 421},
        {"GET /page HTTP/1.1\r\nHost: 127.0.0.1.rebound.example\r\n\r\n", 421},
        {"GET /page HTTP/1.1\r\nHost: a b\r\n\r\n", 421},
        {"GET /page HTTP/1.1\r\nHost: rebound.example\r\nAuthorization: Bearer " FIXTURE_TOKEN "\r\n\r\n", 200},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct answer answer = client_ask(port, cases[i].request);
        assert_int_equal(answer.status, cases[i].status);
        answer_free(&answer);
    }
}

static void pages_of_other_sites_change_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *headers;
        int status;
    } cases[] = {
        {"Origin: http://127.0.0.1\r\n", 200},     {"Origin: http://127.0.0.1\r\nSec-Fetch-Site: same-origin\r\n", 200},
        {"Origin: https://evil.example\r\n", 403}, {"Origin: null\r\n", 403},
        {"Origin: http://127.0.0.1:81\r\n", 403},  {"Sec-Fetch-Site: cross-site\r\n", 403},
        {"Sec-Fetch-Site: same-site\r\n", 403},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char request[256];
        snprintf(request, sizeof request, "POST /echo/1 HTTP/1.1\r\n" HOST "%sContent-Length: 2\r\n\r\nhi",
                 cases[i].headers);
        struct answer answer = client_ask(port, request);
        assert_int_equal(answer.status, cases[i].status);
        answer_free(&answer);
    }
}

static void a_proxy_on_this_machine_is_not_the_client(void **state)
{
    (void)state;
    static const char *const marks[] = {"X-Forwarded-For: 192.0.2.1\r\n", "Forwarded: for=192.0.2.1\r\n",
                                        "Via: 1.1 p\r\n"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        char request[256];
        snprintf(request, sizeof request, "GET /read HTTP/1.1\r\n" HOST "%s\r\n", marks[i]);
        struct answer answer = client_ask(port, request);
        assert_int_equal(answer.status, 401);
        assert_non_null(strstr(answer.body, "not from this machine"));
        answer_free(&answer);
    }
}

static void heads_have_a_limit(void **state)
{
    (void)state;
    static char request[64 << 10];
    size_t used = (size_t)snprintf(request, sizeof request, "GET /echo/1 HTTP/1.1\r\n" HOST);
    for (int i = 0; i < 101; i++)
        used += (size_t)snprintf(request + used, sizeof request - used, "X-%d: 1\r\n", i);
    used += (size_t)snprintf(request + used, sizeof request - used, "\r\n");
    refused_check(request, used, 431, "\"code\":\"head_too_large\"");
    used = (size_t)snprintf(request, sizeof request, "GET /echo/1 HTTP/1.1\r\n" HOST "X: ");
    memset(request + used, 'x', 40 << 10);
    used += 40 << 10;
    used += (size_t)snprintf(request + used, sizeof request - used, "\r\n\r\n");
    refused_check(request, used, 431, "\"code\":\"head_too_large\"");
    used = (size_t)snprintf(request, sizeof request, "GET /");
    memset(request + used, 'x', 10 << 10);
    used += 10 << 10;
    used += (size_t)snprintf(request + used, sizeof request - used, " HTTP/1.1\r\n" HOST "\r\n");
    struct answer answer = client_ask(port, request);
    assert_int_equal(answer.status, 414);
    assert_non_null(strstr(answer.body, "target_invalid"));
    answer_free(&answer);
    /* Larger than the library's buffer: the library answers. */
    int fd = client_connect(port);
    client_say(fd, "GET /echo/1 HTTP/1.1\r\nX: ");
    memset(request, 'x', sizeof request);
    for (int i = 0; i < 8 && client_send(fd, request, sizeof request); i++)
        ;
    char line[256] = "";
    client_read_line(fd, line, sizeof line);
    assert_true(!line[0] || strstr(line, " 431 ") || strstr(line, " 413 "));
    close(fd);
}

static void bodies_have_a_limit(void **state)
{
    (void)state;
    static char body[4096];
    memset(body, 'x', sizeof body);
    static const char declared[] = "POST /echo/1 HTTP/1.1\r\n" HOST "Content-Length: 1001\r\n\r\n";
    refused_check(declared, strlen(declared), 413, "\"code\":\"body_too_large\"");
    /* Of unknown size: read to its end, answered, and the connection stays open. */
    int fd = client_connect(port);
    client_say(fd, "POST /echo/1 HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1000\r\n");
    client_send(fd, body, sizeof body);
    client_say(fd, "\r\n0\r\n\r\n");
    struct answer answer = answer_read(fd, true);
    assert_int_equal(answer.status, 413);
    answer_free(&answer);
    client_say(fd, "GET /page HTTP/1.1\r\n" HOST "\r\n");
    answer = answer_read(fd, true);
    assert_int_equal(answer.status, 200);
    answer_free(&answer);
    close(fd);
    /* Endless: cut off. */
    fd = client_connect(port);
    client_say(fd, "POST /echo/1 HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
    unsigned sent = 0;
    while (sent < 100000 && client_say(fd, "1000\r\n") && client_send(fd, body, sizeof body) && client_say(fd, "\r\n"))
        sent++;
    assert_in_range(sent, 256, 99999); /* at least one megabyte is read before that */
    close(fd);
    app_settle(&app);
    app_await_line(&app, "POST /echo/1 413");
    static const char packed[] =
        "POST /echo/1 HTTP/1.1\r\n" HOST "Content-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx";
    answer = client_ask(port, packed);
    assert_int_equal(answer.status, 415);
    answer_free(&answer);
}

static void a_client_that_expects_100_continue_is_rejected_before_the_body(void **state)
{
    (void)state;
    int fd = client_connect(port);
    client_say(fd, "POST /upload?refuse HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 100\r\n\r\n");
    struct answer answer = answer_read(fd, true);
    assert_int_equal(answer.status, 409);
    answer_free(&answer);
    close(fd);
    fd = client_connect(port);
    client_say(fd, "POST /upload HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    char line[64];
    assert_true(client_read_line(fd, line, sizeof line));
    assert_string_equal(line, "HTTP/1.1 100 Continue\r\n");
    assert_true(client_read_line(fd, line, sizeof line));
    client_say(fd, "abc");
    answer = answer_read(fd, true);
    assert_int_equal(answer.status, 202);
    answer_free(&answer);
    close(fd);
}

static void timeouts_check(uint64_t more_than)
{
    struct http_metrics metrics;
    http_server_metrics(app.server, &metrics);
    assert_true(metrics.timeouts > more_than);
}

static void a_head_that_never_ends_times_out(void **state)
{
    (void)state;
    struct http_metrics metrics;
    http_server_metrics(app.server, &metrics);
    /* Even if bytes keep trickling in. */
    int fd = client_connect(port);
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    client_say(fd, "GET /page HTTP/1.1\r\n");
    unsigned sent = 0;
    while (poll(&wait, 1, 20) == 0 && sent < 500 && client_say(fd, "X: 1\r\n"))
        sent++;
    assert_true(sent < 500);
    struct answer answer = answer_read(fd, true);
    assert_int_equal(answer.status, 408);
    assert_non_null(strstr(answer.body, "\"code\":\"request_timeout\""));
    answer_free(&answer);
    close(fd);
    timeouts_check(metrics.timeouts);
    /* No bytes at all, and an idle time between two requests. */
    fd = client_connect(port);
    answer = answer_read(fd, true);
    assert_int_equal(answer.status, 408);
    answer_free(&answer);
    close(fd);
    for (;;) { /* on a busy machine this client itself may be late */
        fd = client_connect(port);
        client_say(fd, "GET /page HTTP/1.1\r\n" HOST "\r\n");
        answer = answer_read(fd, true);
        const int status = answer.status;
        answer_free(&answer);
        if (status == 200)
            break;
        assert_int_equal(status, 408);
        close(fd);
    }
    assert_true(client_is_closed(fd));
    close(fd);
}

static void a_body_that_trickles_times_out(void **state)
{
    (void)state;
    app_settle(&app);
    const unsigned aborted = app.aborted;
    for (unsigned sent = 0; !sent;) { /* on a busy machine this client itself may be late */
        int fd = client_connect(port);
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        client_say(fd, "POST /upload HTTP/1.1\r\n" HOST "Content-Length: 100000\r\n\r\n");
        while (poll(&wait, 1, 20) == 0 && sent < 500 && client_say(fd, "x"))
            sent++;
        assert_true(sent < 500);
        struct answer answer = answer_read(fd, true);
        assert_int_equal(answer.status, 408);
        assert_true(!sent || strstr(answer.body, "too slowly"));
        answer_free(&answer);
        close(fd);
    }
    app_await(&app, &app.aborted, aborted + 1);
    app_settle(&app);
    app_await_line(&app, "POST /upload 408");
}

int main(void)
{
    const struct CMUnitTest refusals[] = {
        cmocka_unit_test(ambiguous_framing_is_rejected),
        cmocka_unit_test(lines_that_proxies_may_parse_differently_are_rejected),
        cmocka_unit_test(bytes_that_are_not_http_end_the_connection),
        cmocka_unit_test(hosts_and_versions_are_checked),
        cmocka_unit_test(pages_of_other_sites_change_nothing),
        cmocka_unit_test(a_proxy_on_this_machine_is_not_the_client),
        cmocka_unit_test(heads_have_a_limit),
        cmocka_unit_test(bodies_have_a_limit),
        cmocka_unit_test(a_client_that_expects_100_continue_is_rejected_before_the_body),
    };
    const struct CMUnitTest timeouts[] = {
        cmocka_unit_test(a_head_that_never_ends_times_out),
        cmocka_unit_test(a_body_that_trickles_times_out),
    };
    int failed = cmocka_run_group_tests(refusals, patient_server_setup, server_teardown);
    return failed + cmocka_run_group_tests(timeouts, impatient_server_setup, server_teardown);
}
