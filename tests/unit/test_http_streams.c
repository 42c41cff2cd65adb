/* SPDX-License-Identifier: Apache-2.0 */
/* Streamed bodies, event streams, and stopping while they are in progress. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "http_server_fixture.h"

#include <sys/stat.h>

#define HOST "Host: 127.0.0.1\r\n"

static struct app app;
static uint16_t port;

static int server_setup(void **state)
{
    (void)state;
    struct http_server_options options = fixture_options(&app);
    options.queue_max = 1;
    options.worker_threads = 1;
    options.events_bytes_max = 64 << 10;
    options.heartbeat_ms = 100;
    port = app_start(&app, &options);
    return 0;
}

static int server_teardown(void **state)
{
    (void)state;
    app_stop(&app);
    return 0;
}

static void gate_set(bool is_closed)
{
    app_lock(&app);
    app.is_gate_closed = is_closed;
    app_unlock(&app);
}

static void answer_check(int fd, int status, const char *part)
{
    struct answer answer = answer_read(fd, true);
    if (answer.status != status || !strstr(answer.body ? answer.body : "", part))
        fail_msg("%d (not %d) %s%s", answer.status, status, answer.head, answer.body);
    answer_free(&answer);
}

static void megabytes_stream_through(void **state)
{
    (void)state;
    enum { SIZE = 4 << 20 };
    char *body = malloc(SIZE);
    assert_non_null(body);
    memset(body, 'x', SIZE);
    int fd = client_connect(port);
    char head[128];
    snprintf(head, sizeof head, "POST /upload HTTP/1.1\r\n" HOST "Content-Length: %d\r\n\r\n", SIZE);
    client_say(fd, head);
    assert_true(client_send(fd, body, SIZE));
    answer_check(fd, 202, "{\"bytes\":4194304}");
    /* The same connection, with chunks. */
    client_say(fd, "POST /upload HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 16; i++) {
        client_say(fd, "10000\r\n");
        client_send(fd, body, 0x10000);
        client_say(fd, "\r\n");
    }
    client_say(fd, "0\r\n\r\n");
    answer_check(fd, 202, "{\"bytes\":1048576}");
    close(fd);
    free(body);
}

static void a_slow_consumer_slows_the_client_down(void **state)
{
    (void)state;
    app_settle(&app);
    const unsigned waiters = app.gate_waiters;
    gate_set(true);
    int fd = client_connect(port);
    client_say(fd, "POST /upload?pause HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello");
    app_await(&app, &app.gate_waiters, waiters + 1);
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&wait, 1, 50), 0);
    app_lock(&app);
    struct http_exchange *paused = app.paused;
    app.is_gate_closed = false;
    app_unlock(&app);
    assert_non_null(paused);
    http_exchange_continue(paused);
    answer_check(fd, 202, "{\"bytes\":5}");
    close(fd);
}

static void a_stream_may_reject_the_rest_of_a_body(void **state)
{
    (void)state;
    app_settle(&app);
    const unsigned aborted = app.aborted, ended = app.ended;
    int fd = client_connect(port);
    client_say(fd, "POST /upload?damaged HTTP/1.1\r\n" HOST "Content-Length: 8\r\n\r\nhell");
    client_say(fd, "o!!!");
    answer_check(fd, 422, "body_damaged");
    client_say(fd, "GET /page HTTP/1.1\r\n" HOST "\r\n");
    answer_check(fd, 200, "doctype");
    close(fd);
    app_settle(&app);
    assert_int_equal(app.aborted, aborted + 1);
    assert_int_equal(app.ended, ended);
}

static void a_client_that_leaves_aborts_its_stream(void **state)
{
    (void)state;
    app_settle(&app);
    const unsigned aborted = app.aborted, ended = app.ended, opened = app.opened;
    static const char *const heads[] = {"Content-Length: 500\r\n\r\nhello",
                                        "Transfer-Encoding: chunked\r\n\r\n5\r\nhello"};
    for (unsigned i = 0; i < 2; i++) {
        int fd = client_connect(port);
        client_say(fd, "POST /upload HTTP/1.1\r\n" HOST);
        client_say(fd, heads[i]);
        app_await(&app, &app.opened, opened + i + 1);
        close(fd);
        app_await(&app, &app.aborted, aborted + i + 1);
    }
    app_settle(&app);
    assert_int_equal(app.ended, ended);
    app_await_line(&app, "POST /upload 0");
}

static void requests_beyond_the_queue_are_answered_with_503(void **state)
{
    (void)state;
    app_settle(&app);
    const unsigned waiters = app.gate_waiters;
    struct http_metrics metrics;
    gate_set(true);
    int busy = client_connect(port), queued = client_connect(port), refused = client_connect(port);
    client_say(busy, "GET /gate HTTP/1.1\r\n" HOST "\r\n");
    app_await(&app, &app.gate_waiters, waiters + 1);
    client_say(queued, "GET /gate HTTP/1.1\r\n" HOST "\r\n");
    do {
        usleep(1000);
        http_server_metrics(app.server, &metrics);
    } while (!metrics.requests_queued);
    client_say(refused, "POST /upload HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nx");
    struct answer answer = answer_read(refused, true);
    char after[16];
    assert_int_equal(answer.status, 503);
    assert_non_null(answer_header(&answer, "Retry-After", after, sizeof after));
    answer_free(&answer);
    /* Requests that need no worker are still answered. */
    client_say(refused, "GET /page HTTP/1.1\r\n" HOST "\r\n");
    answer_check(refused, 200, "doctype");
    gate_set(false);
    answer_check(busy, 204, "");
    answer_check(queued, 204, "");
    close(busy);
    close(queued);
    close(refused);
}

/* Reads until the text appears; event streams do not end. */
static void stream_await(int fd, const char *text)
{
    char buffer[8192];
    size_t used = 0;
    while (used + 1 < sizeof buffer) {
        size_t got = client_read(fd, buffer + used, sizeof buffer - 1 - used);
        assert_true(got > 0);
        used += got;
        buffer[used] = '\0';
        if (strstr(buffer, text))
            return;
    }
    fail_msg("no '%s' in '%s'", text, buffer);
}

static void clients_await(uint64_t count)
{
    struct http_metrics metrics;
    do {
        usleep(1000);
        http_server_metrics(app.server, &metrics);
    } while (metrics.events_clients != count);
}

static void events_reach_the_clients_of_their_topic(void **state)
{
    (void)state;
    int all = client_connect(port), one = client_connect(port);
    client_say(all, "GET /events HTTP/1.1\r\n" HOST "\r\n");
    client_say(one, "GET /events?topic=b HTTP/1.1\r\n" HOST "\r\n");
    stream_await(all, "event: hello\ndata: one\ndata: two\n\n");
    stream_await(one, "event: hello\ndata: one\ndata: two\n\n");
    http_server_publish(app.server, "a", "first", "1", 1);
    http_server_publish(app.server, "b", "second", "2\r3", 3);
    stream_await(all, "event: second\ndata: 2\ndata: 3\n\n");
    char text[4096];
    size_t used = 0;
    do {
        used += client_read(one, text + used, sizeof text - 1 - used);
        text[used] = '\0';
    } while (!strstr(text, "event: second"));
    assert_null(strstr(text, "event: first"));
    /* Without events there are heartbeats. */
    stream_await(one, ":\n\n");
    close(all);
    close(one);
    clients_await(0);
}

static void a_client_that_does_not_read_is_dropped(void **state)
{
    (void)state;
    struct http_metrics metrics;
    static char data[16 << 10];
    memset(data, 'x', sizeof data);
    int slow = client_connect(port);
    client_say(slow, "GET /events HTTP/1.1\r\n" HOST "\r\n");
    clients_await(1);
    do {
        http_server_publish(app.server, "", "bulk", data, sizeof data);
        http_server_metrics(app.server, &metrics);
    } while (!metrics.events_dropped);
    clients_await(0);
    close(slow);
}

static void stopping_waits_for_requests_in_progress(void **state)
{
    (void)state;
    static struct app own;
    struct http_server_options options = fixture_options(&own);
    uint16_t own_port = app_start(&own, &options);
    int idle = client_connect(own_port), events = client_connect(own_port), upload = client_connect(own_port);
    client_say(idle, "GET /page HTTP/1.1\r\n" HOST "\r\n");
    answer_check(idle, 200, "doctype");
    client_say(events, "GET /events HTTP/1.1\r\n" HOST "\r\n");
    stream_await(events, "event: hello");
    client_say(upload, "POST /upload HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\nab");
    app_await(&own, &own.opened, 1);
    pthread_t stopper;
    assert_int_equal(pthread_create(&stopper, NULL, (void *(*)(void *))(void (*)(void))app_stop, &own), 0);
    /* Once these two are closed the server has begun to stop. */
    assert_true(client_is_closed(idle));
    char block[256];
    while (client_read(events, block, sizeof block))
        ;
    client_say(upload, "cd");
    struct answer answer = answer_read(upload, true);
    assert_int_equal(answer.status, 202);
    char connection[16];
    assert_string_equal(answer_header(&answer, "Connection", connection, sizeof connection), "close");
    answer_free(&answer);
    pthread_join(stopper, NULL);
    assert_int_equal(own.ended, 1);
    close(idle);
    close(events);
    close(upload);
}

static void stopping_aborts_requests_after_the_grace_period(void **state)
{
    (void)state;
    static struct app own;
    struct http_server_options options = fixture_options(&own);
    uint16_t own_port = app_start(&own, &options);
    own.is_gate_closed = true;
    int paused = client_connect(own_port), half = client_connect(own_port);
    client_say(paused, "POST /upload?pause HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\nabcd");
    client_say(half, "POST /upload HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\nab");
    app_await(&own, &own.opened, 2);
    app_await(&own, &own.gate_waiters, 1);
    http_server_stop(own.server, 0);
    assert_int_equal(own.aborted, 2);
    assert_int_equal(own.ended, 0);
    close(paused);
    close(half);
}

/* Makes a request with `openssl s_client`, which checks the server's certificate. */
static void tls_ask(uint16_t tls_port, const char *directory, char *out, size_t size)
{
    char command[512];
    snprintf(
        command, sizeof command,
        "printf 'GET /echo/1 HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n' | timeout 20 openssl "
        "s_client -quiet -verify_return_error -CAfile %s/cert.pem -connect 127.0.0.1:%u 2>/dev/null",
        directory, tls_port);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t used = fread(out, 1, size - 1, pipe);
    out[used] = '\0';
    pclose(pipe);
}

static void tls_serves_the_same(void **state)
{
    (void)state;
    char directory[] = "/tmp/gpufl-http-XXXXXX", command[512], cert[64], key[64], text[4096];
    assert_non_null(mkdtemp(directory));
    snprintf(cert, sizeof cert, "%s/cert.pem", directory);
    snprintf(key, sizeof key, "%s/key.pem", directory);
    snprintf(command, sizeof command,
             "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost "
             "-keyout %s -out %s 2>/dev/null",
             key, cert);
    assert_int_equal(system(command), 0);
    static struct app own;
    struct http_server_options options = fixture_options(&own);
    options.tls_cert = cert;
    options.tls_key = key;
    uint16_t tls_port = app_start(&own, &options);
    tls_ask(tls_port, directory, text, sizeof text);
    assert_non_null(strstr(text, "HTTP/1.1 200 OK"));
    assert_non_null(strstr(text, "{\"id\":\"1\""));
    /* Plain text on the TLS port gets no answer. */
    int fd = client_connect(tls_port);
    client_say(fd, "GET /page HTTP/1.1\r\n" HOST "\r\n");
    while (client_read(fd, text, sizeof text - 1))
        assert_null(strstr(text, "HTTP/1.1 200"));
    close(fd);
    app_stop(&own);
    struct problem problem = {""};
    options.tls_key = cert;
    assert_int_not_equal(http_server_start(&own.server, &options, &problem), GPUFL_OK);
    assert_non_null(strstr(problem.text, "cert.pem"));
    unlink(cert);
    unlink(key);
    rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(megabytes_stream_through),
        cmocka_unit_test(a_slow_consumer_slows_the_client_down),
        cmocka_unit_test(a_stream_may_reject_the_rest_of_a_body),
        cmocka_unit_test(a_client_that_leaves_aborts_its_stream),
        cmocka_unit_test(requests_beyond_the_queue_are_answered_with_503),
        cmocka_unit_test(events_reach_the_clients_of_their_topic),
        cmocka_unit_test(a_client_that_does_not_read_is_dropped),
        cmocka_unit_test(stopping_waits_for_requests_in_progress),
        cmocka_unit_test(stopping_aborts_requests_after_the_grace_period),
        cmocka_unit_test(tls_serves_the_same),
    };
    return cmocka_run_group_tests(tests, server_setup, server_teardown);
}
