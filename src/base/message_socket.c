/* SPDX-License-Identifier: Apache-2.0 */
#include "base/message_socket.h"

#include <limits.h>
#include <stdlib.h>
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
