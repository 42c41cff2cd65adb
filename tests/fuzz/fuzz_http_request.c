/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes on a connection to a real server: it answers in HTTP or closes the connection, and continues to
 * serve. */
#include "http/http_exchange.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PATIENCE_MS = 20000, INPUT_MAX = 64 << 10 };

static void echo_handle(struct http_exchange *exchange, void *user)
{
    (void)user;
    const char *value = "";
    struct bytes out = {.limit = 256 << 10};
    struct bytes *body = http_exchange_body(exchange);
    bytes_append_text(&out, http_exchange_path_value(exchange, "rest"));
    for (size_t i = 0; i < http_exchange_query_count(exchange); i++) {
        bytes_append_text(&out, http_exchange_query_at(exchange, i, &value));
        bytes_append_text(&out, value);
    }
    bytes_append(&out, body->data, body->size);
    http_respond_bytes(exchange, 200, "text/plain", &out);
}

static void stream_open(struct http_exchange *exchange, void *user)
{
    (void)user;
    http_exchange_set_state(exchange, malloc(1));
}

static size_t stream_data(struct http_exchange *exchange, void *user, const void *data, size_t size)
{
    (void)user;
    if (memchr(data, '!', size))
        http_respond_error(exchange, 400, "body_damaged", "no");
    return size;
}

static void stream_end(struct http_exchange *exchange, void *user)
{
    (void)user;
    free(http_exchange_state(exchange));
    http_respond_empty(exchange, 202);
}

static void stream_abort(struct http_exchange *exchange, void *user)
{
    (void)user;
    free(http_exchange_state(exchange));
}

static const struct http_stream stream = {stream_open, stream_data, stream_end, stream_abort};
static const struct http_route routes[] = {
    {HTTP_POST, "/upload", HTTP_SCOPE_NONE, HTTP_ROUTE_INLINE, NULL, &stream, 0},
    {HTTP_POST, "/{rest...}", HTTP_SCOPE_NONE, 0, echo_handle, NULL, 4096},
    {HTTP_GET, "/{rest...}", HTTP_SCOPE_NONE, HTTP_ROUTE_INLINE, echo_handle, NULL, 0},
};
static struct http_server *server;

static void server_end(void)
{
    http_server_stop(server, 0);
}

static void server_begin(void)
{
    const struct http_server_options options = {
        .listen = "127.0.0.1:0",
        .routes = routes,
        .route_count = sizeof routes / sizeof *routes,
        .event_threads = 1,
        .worker_threads = 1,
        .head_timeout_ms = 20,
        .idle_timeout_ms = 20,
        .body_timeout_ms = 40,
    };
    if (http_server_start(&server, &options, NULL))
        abort();
    atexit(server_end);
}

static void die(const char *what)
{
    perror(what);
    abort();
}

/* The fuzzer's timer interrupts waits once a second, which is not a finding. */
static bool fd_wait(int fd, short events)
{
    struct pollfd wait = {.fd = fd, .events = events};
    int ready;
    while ((ready = poll(&wait, 1, PATIENCE_MS)) < 0 && errno == EINTR)
        continue;
    return ready == 1;
}

/* An interrupted connect continues in the background: wait for its end and read its result. */
static void fd_connect(int fd)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(http_server_port(server))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (!connect(fd, (struct sockaddr *)&address, sizeof address))
        return;
    if (errno != EINTR)
        die("connect");
    int result = 0;
    socklen_t size = sizeof result;
    if (!fd_wait(fd, POLLOUT) || getsockopt(fd, SOL_SOCKET, SO_ERROR, &result, &size))
        die("interrupted connect");
    if (result) {
        errno = result;
        die("connect, later");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > INPUT_MAX)
        return 0;
    if (!server)
        server_begin();
    /* Reset instead of a lingering close, because of thousands of connections per second. */
    const struct linger hard = {.l_onoff = 1, .l_linger = 0};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard))
        die("socket");
    fd_connect(fd);
    /* This suffix ends most connections at once; the others end by the server's timeout. */
    static const char farewell[] = "\r\n\r\nGET / HTTP/1.0\r\n\r\n";
    send(fd, data, size, MSG_NOSIGNAL);
    send(fd, farewell, sizeof farewell - 1, MSG_NOSIGNAL);
    shutdown(fd, SHUT_WR);
    char text[4096];
    bool is_first = true;
    for (;;) {
        if (!fd_wait(fd, POLLIN))
            die("no answer");
        ssize_t got = recv(fd, text, sizeof text, 0);
        if (got <= 0)
            break;
        if (is_first && got >= 7 && memcmp(text, "HTTP/1.", 7) != 0)
            abort();
        is_first = false;
    }
    close(fd);
    return 0;
}
