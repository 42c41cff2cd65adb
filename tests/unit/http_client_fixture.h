/* SPDX-License-Identifier: Apache-2.0 */
/* A client that sends exactly the given bytes, so that tests can send invalid requests. */
#ifndef GPUFL_TESTS_HTTP_CLIENT_FIXTURE_H
#define GPUFL_TESTS_HTTP_CLIENT_FIXTURE_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FIXTURE_PATIENCE_MS = 20000 };

/* One answer, as text. */
struct answer {
    int status; /* 0: the connection ended without an answer */
    char head[8192];
    char *body; /* owned; NUL-terminated; chunks joined */
    size_t size;
};

static inline int client_connect(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* False when the server has closed the connection. */
static inline bool client_send(int fd, const char *data, size_t size)
{
    while (size) {
        ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        data += sent;
        size -= (size_t)sent;
    }
    return true;
}

static inline bool client_say(int fd, const char *text)
{
    return client_send(fd, text, strlen(text));
}

/* Reads the next bytes; 0 at the end. Fails the test when the server sends nothing. */
static inline size_t client_read(int fd, char *data, size_t size)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&wait, 1, FIXTURE_PATIENCE_MS), 1);
    ssize_t got = recv(fd, data, size, 0);
    return got > 0 ? (size_t)got : 0;
}

static inline bool client_read_line(int fd, char *line, size_t size)
{
    size_t used = 0;
    while (used + 1 < size && client_read(fd, line + used, 1) == 1)
        if (line[used++] == '\n') {
            line[used] = '\0';
            return true;
        }
    return false;
}

static inline const char *answer_header(const struct answer *answer, const char *name, char *out, size_t size)
{
    const size_t name_size = strlen(name);
    for (const char *at = strchr(answer->head, '\n'); at && at[1]; at = strchr(at + 1, '\n'))
        if (!strncasecmp(at + 1, name, name_size) && at[1 + name_size] == ':') {
            snprintf(out, size, "%.*s", (int)strcspn(at + name_size + 3, "\r\n"), at + name_size + 3);
            return out;
        }
    return NULL;
}

static inline void body_read(int fd, struct answer *answer, size_t size)
{
    answer->body = realloc(answer->body, answer->size + size + 1);
    assert_non_null(answer->body);
    while (size) {
        size_t got = client_read(fd, answer->body + answer->size, size);
        assert_true(got > 0);
        answer->size += got;
        size -= got;
    }
    answer->body[answer->size] = '\0';
}

static inline void chunks_read(int fd, struct answer *answer)
{
    char line[128];
    for (size_t size = 1; size;) {
        assert_true(client_read_line(fd, line, sizeof line));
        size = strtoul(line, NULL, 16);
        body_read(fd, answer, size);
        assert_true(client_read_line(fd, line, sizeof line));
    }
}

/* has_body: false for the answer to a HEAD request. */
static inline struct answer answer_read(int fd, bool has_body)
{
    struct answer answer = {0};
    char line[4096], value[64];
    size_t used = 0;
    while (client_read_line(fd, line, sizeof line)) {
        size_t size = strlen(line);
        assert_true(used + size < sizeof answer.head);
        memcpy(answer.head + used, line, size + 1);
        used += size;
        if (!strcmp(line, "\r\n"))
            break;
    }
    sscanf(answer.head, "HTTP/1.%*1[01] %d", &answer.status);
    if (!answer.status)
        return answer;
    body_read(fd, &answer, 0);
    if (has_body && answer_header(&answer, "Content-Length", value, sizeof value))
        body_read(fd, &answer, strtoul(value, NULL, 10));
    else if (has_body && answer_header(&answer, "Transfer-Encoding", value, sizeof value))
        chunks_read(fd, &answer);
    return answer;
}

static inline void answer_free(struct answer *answer)
{
    free(answer->body);
    memset(answer, 0, sizeof *answer);
}

/* Sends one request on a new connection. */
static inline struct answer client_ask(uint16_t port, const char *request)
{
    int fd = client_connect(port);
    client_say(fd, request);
    struct answer answer = answer_read(fd, strncmp(request, "HEAD ", 5) != 0);
    close(fd);
    return answer;
}

/* True when the server closes the connection without sending more. */
static inline bool client_is_closed(int fd)
{
    char byte;
    return client_read(fd, &byte, 1) == 0;
}

#endif
