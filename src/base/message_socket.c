/* SPDX-License-Identifier: Apache-2.0 */
#include "base/message_socket.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

int message_socket_find(void)
{
    const char *text = getenv("GPUFL_MESSAGE_FD");
    char *end;
    long fd = text && *text ? strtol(text, &end, 10) : -1;
    int type = 0, domain = 0;
    socklen_t type_size = sizeof type, domain_size = sizeof domain;
    if (fd < 0 || fd > INT_MAX || *end || getsockopt((int)fd, SOL_SOCKET, SO_TYPE, &type, &type_size) < 0 ||
        getsockopt((int)fd, SOL_SOCKET, SO_DOMAIN, &domain, &domain_size) < 0 || type != SOCK_DGRAM ||
        domain != AF_UNIX)
        return -1;
    return (int)fd;
}

void message_socket_send(int fd, const char *word, pid_t pid)
{
    char text[64];
    int saved_errno = errno, size = snprintf(text, sizeof text, "%s %d", word, (int)pid);
    if (fd >= 0 && size > 0 && send(fd, text, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        errno = 0;
    errno = saved_errno;
}

bool message_socket_take(int fd, const char *word, pid_t pid)
{
    char text[64], wanted[64];
    int saved_errno = errno;
    snprintf(wanted, sizeof wanted, "%s %d", word, (int)pid);
    ssize_t size = fd >= 0 ? recv(fd, text, sizeof text - 1, MSG_DONTWAIT | MSG_PEEK) : -1;
    text[size > 0 ? size : 0] = '\0';
    bool is_wanted = size > 0 && !strcmp(text, wanted);
    if (is_wanted)
        is_wanted = recv(fd, text, sizeof text - 1, MSG_DONTWAIT) == size; /* otherwise another thread received it */
    errno = saved_errno;
    return is_wanted;
}
