/* SPDX-License-Identifier: Apache-2.0 */
#include "base/endpoint.h"

#include "base/clock.h"
#include "base/own_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 16, REQUEST_MAX = 4096, BODY_MAX = 16 << 20 };

static const int64_t patience_ns = 5000000000;

struct connection {
    int fd; /* -1: free */
    int64_t deadline_ns;
    size_t request_size;
    char request[REQUEST_MAX + 1];
    bool is_answering;
    struct bytes answer; /* reused for the next answer */
    size_t sent;
};

struct endpoint {
    int listen_fd, wake_fd;
    const struct endpoint_page *pages;
    void *user;
    pthread_t thread;
    bool has_thread;
    struct bytes body;
    struct connection connections[CONNECTIONS_MAX];
    char address[128];
};

static gpufl_status address_split(const char *address, char *host, size_t size, const char **port,
                                  struct problem *problem)
{
    const char *colon = strrchr(address, ':');
    const char *start = address, *end = colon;
    if (colon && *address == '[' && colon > address + 1 && colon[-1] == ']') {
        start++;
        end--;
    } else if (colon && memchr(address, ':', (size_t)(colon - address))) {
        colon = NULL; /* an IPv6 address needs brackets */
    }
    char *number_end;
    long number = colon ? strtol(colon + 1, &number_end, 10) : -1;
    if (!colon || !colon[1] || *number_end || number < 0 || number > 65535 || (size_t)(end - start) >= size)
        return problem_set(problem, GPUFL_E_INVALID,
                           "invalid address '%.100s': use HOST:PORT, for example 127.0.0.1:9400", address);
    memcpy(host, start, (size_t)(end - start));
    host[end - start] = '\0';
    *port = colon + 1;
    return GPUFL_OK;
}

static gpufl_status listen_open(struct endpoint *endpoint, const char *address, struct problem *problem)
{
    char host[256] = "";
    const char *port = "";
    gpufl_status status = address_split(address, host, sizeof host, &port, problem);
    if (status != GPUFL_OK)
        return status;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV}, *found;
    int result = getaddrinfo(*host ? host : NULL, port, &hints, &found);
    if (result)
        return problem_set(problem, GPUFL_E_INVALID, "cannot listen on %.100s: %s", address, gai_strerror(result));
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1;
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    bool is_bound = fd >= 0 && !bind(fd, found->ai_addr, found->ai_addrlen) && !listen(fd, CONNECTIONS_MAX);
    int error = errno;
    freeaddrinfo(found);
    if (!is_bound) {
        if (fd >= 0)
            close(fd);
        return problem_set(problem, error == EACCES ? GPUFL_E_PERMISSION : GPUFL_E_BUSY, "cannot listen on %.100s: %s",
                           address, strerror(error));
    }
    endpoint->listen_fd = fd;
    struct sockaddr_storage bound = {0};
    socklen_t size = sizeof bound;
    char name[64] = "", number[16] = "";
    if (!getsockname(fd, (struct sockaddr *)&bound, &size))
        getnameinfo((struct sockaddr *)&bound, size, name, sizeof name, number, sizeof number,
                    NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(endpoint->address, sizeof endpoint->address, strchr(name, ':') ? "[%s]:%s" : "%s:%s", name, number);
    return GPUFL_OK;
}

static const char *status_text(int status)
{
    switch (status) {
    case 200:
        return "OK";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 431:
        return "Request Header Fields Too Large";
    case 503:
        return "Service Unavailable";
    default:
        return "Bad Request";
    }
}

static void answer_write(struct connection *connection, int status, const char *type, const struct bytes *body)
{
    struct bytes *out = &connection->answer;
    bytes_clear(out);
    bytes_append_format(out,
                        "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n"
                        "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n%s\r\n",
                        status, status_text(status), type, body->size, status == 405 ? "Allow: GET\r\n" : "");
    bytes_append(out, body->data, body->size);
    connection->is_answering = !out->failed;
    connection->sent = 0;
}

static void refuse(struct endpoint *endpoint, struct connection *connection, int status)
{
    bytes_clear(&endpoint->body);
    bytes_append_format(&endpoint->body, "%s\n", status_text(status));
    answer_write(connection, status, "text/plain; charset=utf-8", &endpoint->body);
}

/* Copies the value of a header, or "" if it is missing; repeated headers are joined as HTTP specifies. */
static void header_find(const char *headers, const char *name, char *out, size_t size)
{
    size_t name_size = strlen(name), used = 0;
    out[0] = '\0';
    for (const char *line = headers; *line && *line != '\r';) {
        size_t line_size = strcspn(line, "\r\n");
        if (line_size > name_size && line[name_size] == ':' && !strncasecmp(line, name, name_size)) {
            const char *value = line + name_size + 1;
            value += strspn(value, " \t");
            used += (size_t)snprintf(out + used, size - used, "%s%.*s", used ? "," : "",
                                     (int)(line + line_size - value), value);
            if (used >= size)
                return;
        }
        line += line_size;
        line += strspn(line, "\n") ? 1 : strncmp(line, "\r\n", 2) ? 0 : 2;
        if (!line_size)
            return;
    }
}

/* The request is complete: an empty line ends its head. */
static void request_answer(struct endpoint *endpoint, struct connection *connection)
{
    char *line_end = strstr(connection->request, "\r\n");
    char *target = line_end ? memchr(connection->request, ' ', (size_t)(line_end - connection->request)) : NULL;
    char *version = target ? memchr(target + 1, ' ', (size_t)(line_end - target - 1)) : NULL;
    if (!version || strncmp(version + 1, "HTTP/1.", 7) != 0) {
        refuse(endpoint, connection, 400);
        return;
    }
    size_t path_size = strcspn(target + 1, "? ");
    const struct endpoint_page *page = endpoint->pages;
    while (page->path && (strlen(page->path) != path_size || memcmp(page->path, target + 1, path_size) != 0))
        page++;
    if (!page->path) {
        refuse(endpoint, connection, 404);
        return;
    }
    if ((size_t)(target - connection->request) != 3 || memcmp(connection->request, "GET", 3) != 0) {
        refuse(endpoint, connection, 405);
        return;
    }
    char accept[1024];
    header_find(line_end + 2, "Accept", accept, sizeof accept);
    struct endpoint_answer answer = {200, "text/plain; charset=utf-8", &endpoint->body};
    bytes_clear(&endpoint->body);
    endpoint->body.limit = BODY_MAX;
    page->render(endpoint->user, accept, &answer);
    if (endpoint->body.failed)
        refuse(endpoint, connection, 503);
    else
        answer_write(connection, answer.status, answer.content_type, &endpoint->body);
}

static void connection_close(struct connection *connection)
{
    close(connection->fd);
    connection->fd = -1;
}

static void connection_read(struct endpoint *endpoint, struct connection *connection)
{
    ssize_t got =
        recv(connection->fd, connection->request + connection->request_size, REQUEST_MAX - connection->request_size, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        connection_close(connection);
        return;
    }
    connection->request_size += (size_t)got;
    connection->request[connection->request_size] = '\0';
    if (memchr(connection->request, '\0', connection->request_size))
        refuse(endpoint, connection, 400);
    else if (strstr(connection->request, "\r\n\r\n"))
        request_answer(endpoint, connection);
    else if (connection->request_size == REQUEST_MAX)
        refuse(endpoint, connection, 431);
}

static void connection_write(struct connection *connection)
{
    ssize_t sent = send(connection->fd, connection->answer.data + connection->sent,
                        connection->answer.size - connection->sent, MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    connection->sent += sent > 0 ? (size_t)sent : 0;
    if (sent <= 0)
        connection_close(connection);
    else if (connection->sent == connection->answer.size) {
        /* Unread input would turn the close into a reset, which could discard the answer. */
        char rest[1024];
        shutdown(connection->fd, SHUT_WR);
        while (recv(connection->fd, rest, sizeof rest, MSG_DONTWAIT) > 0) {
        }
        connection_close(connection);
    }
}

static void connection_accept(struct endpoint *endpoint)
{
    for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
        struct connection *connection = &endpoint->connections[i];
        if (connection->fd >= 0)
            continue;
        connection->fd = accept4(endpoint->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        connection->deadline_ns = clock_mono_ns() + patience_ns;
        connection->request_size = 0;
        connection->is_answering = false;
        return;
    }
}

static void *endpoint_main(void *argument)
{
    struct endpoint *endpoint = argument;
    for (;;) {
        struct pollfd fds[CONNECTIONS_MAX + 2] = {{endpoint->wake_fd, POLLIN, 0}};
        int64_t now_ns = clock_mono_ns(), wait_ns = -1;
        bool has_room = false;
        for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
            struct connection *connection = &endpoint->connections[i];
            if (connection->fd >= 0 && now_ns >= connection->deadline_ns)
                connection_close(connection);
            has_room |= connection->fd < 0;
            if (connection->fd >= 0 && (wait_ns < 0 || connection->deadline_ns - now_ns < wait_ns))
                wait_ns = connection->deadline_ns - now_ns;
            fds[i + 2] = (struct pollfd){connection->fd, connection->is_answering ? POLLOUT : POLLIN, 0};
        }
        fds[1] = (struct pollfd){has_room ? endpoint->listen_fd : -1, POLLIN, 0};
        if (poll(fds, CONNECTIONS_MAX + 2, wait_ns < 0 ? -1 : (int)(wait_ns / 1000000 + 1)) < 0 && errno != EINTR)
            return NULL;
        if (fds[0].revents)
            return NULL;
        for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
            struct connection *connection = &endpoint->connections[i];
            if (!fds[i + 2].revents || connection->fd < 0)
                continue;
            if (connection->is_answering)
                connection_write(connection);
            else
                connection_read(endpoint, connection);
        }
        if (fds[1].revents)
            connection_accept(endpoint);
    }
}

static void endpoint_free(struct endpoint *endpoint)
{
    for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
        if (endpoint->connections[i].fd >= 0)
            close(endpoint->connections[i].fd);
        bytes_free(&endpoint->connections[i].answer);
    }
    if (endpoint->listen_fd >= 0)
        close(endpoint->listen_fd);
    if (endpoint->wake_fd >= 0)
        close(endpoint->wake_fd);
    bytes_free(&endpoint->body);
    free(endpoint);
}

gpufl_status endpoint_open(struct endpoint **out, const char *address, const struct endpoint_page *pages, void *user,
                           struct problem *problem)
{
    struct endpoint *endpoint = calloc(1, sizeof *endpoint);
    if (!endpoint)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory");
    endpoint->pages = pages;
    endpoint->user = user;
    endpoint->listen_fd = -1;
    for (size_t i = 0; i < CONNECTIONS_MAX; i++)
        endpoint->connections[i].fd = -1;
    endpoint->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    gpufl_status status = listen_open(endpoint, address, problem);
    if (status != GPUFL_OK) {
        endpoint_free(endpoint);
        return status;
    }
    *out = endpoint;
    return GPUFL_OK;
}

gpufl_status endpoint_run(struct endpoint *endpoint, struct problem *problem)
{
    endpoint->has_thread = endpoint->wake_fd >= 0 && own_thread_start(&endpoint->thread, "gpufl-pages",
                                                                      OWN_THREAD_STACK_SMALL, endpoint_main, endpoint);
    return endpoint->has_thread
               ? GPUFL_OK
               : problem_set(problem, GPUFL_E_NO_MEMORY, "cannot start a thread for %.100s", endpoint->address);
}

gpufl_status endpoint_start(struct endpoint **out, const char *address, const struct endpoint_page *pages, void *user,
                            struct problem *problem)
{
    gpufl_status status = endpoint_open(out, address, pages, user, problem);
    if (status == GPUFL_OK && (status = endpoint_run(*out, problem)) != GPUFL_OK) {
        endpoint_stop(*out);
        *out = NULL;
    }
    return status;
}

const char *endpoint_address(const struct endpoint *endpoint)
{
    return endpoint->address;
}

void endpoint_stop(struct endpoint *endpoint)
{
    if (!endpoint)
        return;
    if (endpoint->has_thread) {
        eventfd_write(endpoint->wake_fd, 1);
        pthread_join(endpoint->thread, NULL);
    }
    endpoint_free(endpoint);
}
