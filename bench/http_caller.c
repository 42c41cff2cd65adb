/* SPDX-License-Identifier: Apache-2.0 */
#include "http_caller.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { RECEIVE_BYTES = 64 << 10 };

_Noreturn static void die(const char *what)
{
    fprintf(stderr, "http: %s: %s\n", what, strerror(errno));
    exit(1);
}

void http_caller_open(struct http_caller *caller, uint16_t port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int yes = 1;
    *caller = (struct http_caller){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (caller->fd < 0 || connect(caller->fd, (const struct sockaddr *)&address, sizeof address))
        die("connect");
    setsockopt(caller->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

void http_caller_close(struct http_caller *caller)
{
    close(caller->fd);
    bytes_free(&caller->request);
    bytes_free(&caller->answer);
}

void http_caller_send(struct http_caller *caller, const char *method, const char *target, const char *headers,
                      const void *body, size_t size)
{
    bytes_clear(&caller->request);
    bytes_clear(&caller->answer);
    bytes_append_format(&caller->request, "%s %s HTTP/1.1\r\nHost: localhost\r\n%s", method, target, headers);
    if (body)
        bytes_append_format(&caller->request, "Content-Length: %zu\r\n", size);
    bytes_append_text(&caller->request, "\r\n");
    struct iovec parts[2] = {{caller->request.data, caller->request.size}, {(void *)(uintptr_t)body, size}};
    for (int first = 0; first < 2;) {
        if (!parts[first].iov_len) {
            first++;
            continue;
        }
        const struct msghdr message = {.msg_iov = parts + first, .msg_iovlen = (size_t)(2 - first)};
        ssize_t sent = sendmsg(caller->fd, &message, MSG_NOSIGNAL);
        if (sent < 0)
            die("send");
        for (int i = first; i < 2 && sent; i++) {
            size_t part = (size_t)sent < parts[i].iov_len ? (size_t)sent : parts[i].iov_len;
            parts[i].iov_base = (char *)parts[i].iov_base + part;
            parts[i].iov_len -= part;
            sent -= (ssize_t)part;
        }
    }
}

int http_caller_receive(struct http_caller *caller)
{
    struct bytes *answer = &caller->answer;
    if (!bytes_reserve(answer, RECEIVE_BYTES))
        die("no memory");
    ssize_t got = recv(caller->fd, answer->data + answer->size, answer->capacity - answer->size, 0);
    if (got <= 0)
        die(got ? "recv" : "the server closed the connection");
    answer->size += (size_t)got;
    const char *end = memmem(answer->data, answer->size, "\r\n\r\n", 4);
    if (!end)
        return 0;
    caller->body_at = (size_t)(end - answer->data) + 4;
    const char *length = memmem(answer->data, caller->body_at, "Content-Length: ", 16);
    size_t size = length ? strtoull(length + 16, NULL, 10) : 0;
    return answer->size - caller->body_at >= size ? (int)strtol(answer->data + 9, NULL, 10) : 0;
}

static int answer_wait(struct http_caller *caller)
{
    int status;
    do
        status = http_caller_receive(caller);
    while (!status);
    return status;
}

int http_caller_get(struct http_caller *caller, const char *target)
{
    http_caller_send(caller, "GET", target, "", NULL, 0);
    return answer_wait(caller);
}

void http_caller_send_window(struct http_caller *caller, const struct window *window)
{
    char headers[512];
    snprintf(headers, sizeof headers,
             "Content-Type: application/x-ndjson\r\nContent-Encoding: %s\r\nX-GpuFlight-Session-Id: %s\r\n"
             "X-GpuFlight-Window-Id: %s-%s-%" PRIu64 "\r\nX-GpuFlight-Window-Channel: %s\r\n"
             "X-GpuFlight-Window-Sequence: %" PRIu64 "\r\nX-GpuFlight-Window-CRC32: %" PRIu32 "\r\n",
             window->coding, window->session_id, window->session_id, window->channel, window->sequence, window->channel,
             window->sequence, window->crc32);
    http_caller_send(caller, "POST", "/api/v1/events/stream", headers, window->body, window->size);
}

void http_caller_post_window(struct http_caller *caller, const struct window *window)
{
    http_caller_send_window(caller, window);
    int status = answer_wait(caller);
    if (status != 202) {
        fprintf(stderr, "http: a window was answered with %d: %s\n", status,
                bytes_text(&caller->answer) + caller->body_at);
        exit(1);
    }
}

void http_caller_complete(struct http_caller *caller, const char *session_id)
{
    char headers[160];
    snprintf(headers, sizeof headers, "X-GpuFlight-Session-Id: %s\r\n", session_id);
    http_caller_send(caller, "POST", "/api/v1/events/session-complete", headers, "", 0);
    if (answer_wait(caller) != 200) {
        fprintf(stderr, "http: the session could not be completed\n");
        exit(1);
    }
}
