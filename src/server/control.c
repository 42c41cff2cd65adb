/* SPDX-License-Identifier: Apache-2.0 */
#include "server/control.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { REQUEST_BYTES_MAX = 64 << 10, REQUEST_TIMEOUT_MS = 5000 };
#define ANSWER_BYTES_MAX ((size_t)64 << 20)
#define SOCKET_NAME "control.sock"

struct control {
    int dir_fd, listen_fd, stop_fd;
    control_handler *handler;
    void *user;
    pthread_t thread;
};

/* Uses the directory's descriptor, because a socket's path may have at most 107 bytes. */
static void address_make(struct sockaddr_un *address, int dir_fd)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path, sizeof address->sun_path, "/proc/self/fd/%d/" SOCKET_NAME, dir_fd);
}

static bool peer_is_trusted(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) && (peer.uid == geteuid() || peer.uid == 0);
}

/* Reads bytes up to LF or the end. False: too many, too slow, or truncated. */
static bool receive(int fd, struct bytes *out, size_t limit, int timeout_ms)
{
    int64_t deadline_ns = clock_mono_ns() + (int64_t)timeout_ms * 1000000;
    for (;;) {
        int64_t left_ms = (deadline_ns - clock_mono_ns()) / 1000000;
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        if (timeout_ms >= 0 && (left_ms <= 0 || poll(&wait, 1, (int)left_ms) <= 0))
            return false;
        if (out->size >= limit || !bytes_reserve(out, 4096))
            return false;
        ssize_t got = recv(fd, out->data + out->size, out->capacity - out->size, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got == 0 && out->size;
        out->size += (size_t)got;
        if (out->data[out->size - 1] == '\n') {
            out->size--;
            return true;
        }
    }
}

static bool send_all(int fd, const char *data, size_t size)
{
    while (size) {
        ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR)
            return false;
        if (sent > 0) {
            data += sent;
            size -= (size_t)sent;
        }
    }
    return true;
}

static void serve_one(struct control *control, int fd)
{
    struct bytes request = {0}, answer = {0};
    const struct timeval patience = {.tv_sec = REQUEST_TIMEOUT_MS / 1000};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (peer_is_trusted(fd) && receive(fd, &request, REQUEST_BYTES_MAX, REQUEST_TIMEOUT_MS)) {
        control->handler(control->user, request.data, request.size, &answer);
        bytes_append_char(&answer, '\n');
        if (!answer.failed)
            send_all(fd, answer.data, answer.size);
    }
    if (request.data)
        explicit_bzero(request.data, request.capacity);
    if (answer.data)
        explicit_bzero(answer.data, answer.capacity); /* it may have contained a new key */
    bytes_free(&request);
    bytes_free(&answer);
    close(fd);
}

static void *listen_run(void *user)
{
    struct control *control = user;
    for (;;) {
        struct pollfd waits[] = {{.fd = control->listen_fd, .events = POLLIN},
                                 {.fd = control->stop_fd, .events = POLLIN}};
        if (poll(waits, 2, -1) < 0 && errno != EINTR)
            return NULL;
        if (waits[1].revents)
            return NULL;
        int fd = waits[0].revents ? accept4(control->listen_fd, NULL, NULL, SOCK_CLOEXEC) : -1;
        if (fd >= 0)
            serve_one(control, fd);
    }
}

static void control_free(struct control *control)
{
    const int fds[] = {control->listen_fd, control->stop_fd, control->dir_fd};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    free(control);
}

gpufl_status control_start(struct control **out, const char *data_dir, control_handler *handler, void *user,
                           struct problem *problem)
{
    struct control *control = calloc(1, sizeof *control);
    if (!control)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for the control socket");
    *control = (struct control){.listen_fd = -1, .handler = handler, .user = user};
    control->dir_fd = open(data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    control->stop_fd = eventfd(0, EFD_CLOEXEC);
    control->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address;
    address_make(&address, control->dir_fd);
    int error = control->dir_fd < 0 || control->stop_fd < 0 || control->listen_fd < 0 ? errno : 0;
    /* An existing socket belongs to a dead server: the store allows one server at a time in the directory. */
    if (!error) {
        unlinkat(control->dir_fd, SOCKET_NAME, 0);
        if (bind(control->listen_fd, (const struct sockaddr *)&address, sizeof address) ||
            fchmodat(control->dir_fd, SOCKET_NAME, 0600, 0) || listen(control->listen_fd, 8))
            error = errno;
    }
    if (!error)
        error = pthread_create(&control->thread, NULL, listen_run, control);
    if (error) {
        control_free(control);
        return problem_set(problem, GPUFL_E_IO, "%.300s/" SOCKET_NAME ": %s", data_dir, strerror(error));
    }
    *out = control;
    return GPUFL_OK;
}

void control_stop(struct control *control)
{
    if (!control)
        return;
    uint64_t one = 1;
    while (write(control->stop_fd, &one, sizeof one) < 0 && errno == EINTR)
        continue;
    pthread_join(control->thread, NULL);
    unlinkat(control->dir_fd, SOCKET_NAME, 0);
    control_free(control);
}

gpufl_status control_call(const char *data_dir, const struct bytes *request, struct bytes *answer,
                          struct problem *problem)
{
    int dir_fd = open(data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0)
        return problem_set(problem, GPUFL_E_NOT_FOUND, "%.300s: %s", data_dir, strerror(errno));
    struct sockaddr_un address;
    address_make(&address, dir_fd);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    gpufl_status status = GPUFL_OK;
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address))
        status = problem_set(problem, errno == ENOENT || errno == ECONNREFUSED ? GPUFL_E_NOT_FOUND : GPUFL_E_PERMISSION,
                             "%.300s/" SOCKET_NAME ": %s", data_dir, strerror(errno));
    else if (!send_all(fd, request->data, request->size) || !send_all(fd, "\n", 1) ||
             !receive(fd, answer, ANSWER_BYTES_MAX, -1))
        status = problem_set(problem, GPUFL_E_IO, "the server on %.300s closed the connection", data_dir);
    if (fd >= 0)
        close(fd);
    close(dir_fd);
    return status;
}
