/* SPDX-License-Identifier: Apache-2.0 */
#include "base/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

bool notify_send(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t size = path ? strlen(path) : 0;
    if (size < 2 || size >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@'))
        return false;
    int saved_errno = errno;
    memcpy(address.sun_path, path, size);
    if (path[0] == '@') /* an abstract name */
        address.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ssize_t sent = -1;
    if (fd >= 0) {
        socklen_t address_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
        sent = sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&address, address_size);
        close(fd);
    }
    errno = saved_errno;
    return sent >= 0;
}

int64_t notify_watchdog_ns(void)
{
    const char *text = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    if (!text || !*text || (pid && strtol(pid, NULL, 10) != (long)getpid()))
        return 0;
    char *end;
    errno = 0;
    long long usec = strtoll(text, &end, 10);
    return errno || *end || usec <= 0 || usec > INT64_MAX / 1000 ? 0 : usec * 1000;
}
