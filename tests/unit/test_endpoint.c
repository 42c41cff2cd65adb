/* SPDX-License-Identifier: Apache-2.0 */
/* The endpoint through a raw socket, so that malformed requests can be sent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/endpoint.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct endpoint *endpoint;
static int port;
static size_t body_size;

static void page_render(void *user, const char *accept, struct endpoint_answer *answer)
{
    assert_ptr_equal(user, &port);
    bytes_append_format(answer->body, "accept=%s;", accept);
    for (size_t i = 0; i < body_size; i++)
        bytes_append_char(answer->body, 'a');
}
static void failing_render(void *user, const char *accept, struct endpoint_answer *answer)
{
    (void)user, (void)accept;
    answer->body->failed = true;
}
static const struct endpoint_page pages[] = {{"/page", page_render}, {"/failing", failing_render}, {NULL, NULL}};

static int set_up(void **state)
{
    (void)state;
    struct problem problem = {""};
    assert_int_equal(endpoint_start(&endpoint, "127.0.0.1:0", pages, &port, &problem), GPUFL_OK);
    port = (int)strtol(strrchr(endpoint_address(endpoint), ':') + 1, NULL, 10);
    assert_true(port > 0);
    body_size = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    endpoint_stop(endpoint);
    return 0;
}

static int dial(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static struct bytes answer_read(int fd)
{
    struct bytes answer = {0};
    char part[4096];
    ssize_t got;
    while ((got = recv(fd, part, sizeof part, 0)) > 0)
        bytes_append(&answer, part, (size_t)got);
    close(fd);
    return answer;
}

static struct bytes ask(const char *request, size_t size)
{
    int fd = dial();
    /* Sending may fail if the endpoint stopped reading. */
    (void)!send(fd, request, size, MSG_NOSIGNAL);
    return answer_read(fd);
}

static void assert_answer(const char *request, size_t size, const char *status, const char *part)
{
    struct bytes answer = ask(request, size);
    const char *text = bytes_text(&answer);
    if (strncmp(text, status, strlen(status)) != 0 || !strstr(text, part))
        fail_msg("%.60s: %s", request, text);
    bytes_free(&answer);
}
#define ASSERT_ANSWER(request, status, part) assert_answer(request, strlen(request), status, part)

static void pages_are_found_by_their_path(void **state)
{
    (void)state;
    ASSERT_ANSWER("GET /page HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\n", "\r\n\r\naccept=;");
    ASSERT_ANSWER("GET /page?x=y HTTP/1.0\r\n\r\n", "HTTP/1.1 200 ", "Content-Length: 8\r\n");
    ASSERT_ANSWER("GET /page HTTP/1.1\r\nX: y\r\naccept:  text/a, b\r\nAccept: c\r\n\r\n", "HTTP/1.1 200 ",
                  "accept=text/a, b,c;");
    ASSERT_ANSWER("GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 404 ", "Not Found");
    ASSERT_ANSWER("GET /pages HTTP/1.1\r\n\r\n", "HTTP/1.1 404 ", "");
    ASSERT_ANSWER("GET /../page HTTP/1.1\r\n\r\n", "HTTP/1.1 404 ", "");
    ASSERT_ANSWER("POST /page HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 405 ", "Allow: GET\r\n");
    ASSERT_ANSWER("GET /failing HTTP/1.1\r\n\r\n", "HTTP/1.1 503 ", "");
}

static void malformed_requests_are_refused(void **state)
{
    (void)state;
    ASSERT_ANSWER("\r\n\r\n", "HTTP/1.1 400 ", "Bad Request");
    ASSERT_ANSWER("GET\r\n\r\n", "HTTP/1.1 400 ", "");
    ASSERT_ANSWER("GET /page\r\n\r\n", "HTTP/1.1 400 ", "");
    ASSERT_ANSWER("GET /page HTTP/2.0\r\n\r\n", "HTTP/1.1 400 ", "");
    assert_answer("GET /page\0 HTTP/1.1\r\n\r\n", 23, "HTTP/1.1 400 ", "");
    char *longest = malloc(8192);
    memset(longest, 'a', 8192);
    assert_answer(longest, 8192, "HTTP/1.1 431 ", "");
    free(longest);
}

static void requests_may_arrive_in_parts_and_from_many_clients(void **state)
{
    (void)state;
    enum { CLIENTS = 12 };
    static const char request[] = "GET /page HTTP/1.1\r\nAccept: parts\r\n\r\n";
    int fds[CLIENTS];
    body_size = 1 << 20; /* more than a socket buffers */
    for (int i = 0; i < CLIENTS; i++)
        fds[i] = dial();
    for (size_t at = 0; at < sizeof request - 1; at += 7)
        for (int i = 0; i < CLIENTS; i++) {
            size_t left = sizeof request - 1 - at;
            assert_true(send(fds[i], request + at, left < 7 ? left : 7, MSG_NOSIGNAL) > 0);
        }
    for (int i = 0; i < CLIENTS; i++) {
        struct bytes answer = answer_read(fds[i]);
        assert_non_null(strstr(bytes_text(&answer), "accept=parts;aaa"));
        assert_true(answer.size > body_size);
        bytes_free(&answer);
    }
}

static void idle_clients_do_not_block_others(void **state)
{
    (void)state;
    enum { IDLE = 15 };
    int fds[IDLE];
    for (int i = 0; i < IDLE; i++)
        fds[i] = dial();
    ASSERT_ANSWER("GET /page HTTP/1.1\r\n\r\n", "HTTP/1.1 200 ", "accept=");
    for (int i = 0; i < IDLE; i++)
        close(fds[i]);
    ASSERT_ANSWER("GET /page HTTP/1.1\r\n\r\n", "HTTP/1.1 200 ", "accept=");
}

static void addresses_are_checked(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "", "9400", ":", "127.0.0.1:", "127.0.0.1:70000", "127.0.0.1:x", "::1:9400", "[::1]", "256.1.1.1:80"};
    struct endpoint *none = NULL;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct problem problem = {""};
        assert_int_equal(endpoint_start(&none, wrong[i], pages, NULL, &problem), GPUFL_E_INVALID);
        assert_true(problem.text[0]);
    }
    struct problem problem = {""};
    assert_int_equal(endpoint_start(&none, endpoint_address(endpoint), pages, NULL, &problem), GPUFL_E_BUSY);
    assert_non_null(strstr(problem.text, "cannot listen on 127.0.0.1:"));
    endpoint_stop(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pages_are_found_by_their_path, set_up, tear_down),
        cmocka_unit_test_setup_teardown(malformed_requests_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(requests_may_arrive_in_parts_and_from_many_clients, set_up, tear_down),
        cmocka_unit_test_setup_teardown(idle_clients_do_not_block_others, set_up, tear_down),
        cmocka_unit_test_setup_teardown(addresses_are_checked, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
