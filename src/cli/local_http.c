/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/local_http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { STEP_SECONDS = 1, ANSWER_BYTES_MAX = 4 << 20, READ_BYTES = 16 << 10 };

static bool answer_read(int fd, struct bytes *answer)
{
    for (;;) {
        if (answer->size >= ANSWER_BYTES_MAX || !bytes_reserve(answer, READ_BYTES))
            return false;
        ssize_t got = recv(fd, answer->data + answer->size, READ_BYTES, 0);
        if (got == 0)
            return true;
        if (got < 0 && errno != EINTR)
            return false;
        answer->size += got > 0 ? (size_t)got : 0;
    }
}

/* HTTP/1.0, so that the answer ends where the connection does. */
static bool exchange(int fd, uint16_t port, const char *path, struct bytes *answer)
{
    const struct timeval patience = {.tv_sec = STEP_SECONDS};
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    char request[1024];
    int size = snprintf(request, sizeof request, "GET %s HTTP/1.0\r\nHost: 127.0.0.1:%u\r\n\r\n", path, port);
    if (size < 0 || (size_t)size >= sizeof request)
        return false;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    return !connect(fd, (const struct sockaddr *)&address, sizeof address) &&
           send(fd, request, (size_t)size, MSG_NOSIGNAL) == size && answer_read(fd, answer);
}

int local_http_get(uint16_t port, const char *path, struct bytes *body, struct problem *problem)
{
    struct bytes answer = {0};
    int status = 0;
    bytes_clear(body);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    errno = 0;
    if (fd >= 0 && exchange(fd, port, path, &answer)) {
        const char *text = bytes_text(&answer), *end = strstr(text, "\r\n\r\n");
        if (end && sscanf(text, "HTTP/1.%*1u %3d ", &status) == 1)
            bytes_append(body, end + 4, answer.size - (size_t)(end + 4 - text));
    }
    if (!status || body->failed)
        problem_set(problem, GPUFL_E_IO, "127.0.0.1:%u%.100s: %s", port, path,
                    errno ? strerror(errno) : "no HTTP answer");
    if (fd >= 0)
        close(fd);
    bytes_free(&answer);
    return body->failed ? 0 : status;
}
