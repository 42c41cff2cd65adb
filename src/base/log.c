/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct {
    pthread_mutex_t mutex;
    gpufl_log_fn fn;
    void *user;
    bool to_stderr;
    int message_fd;
} sink = {.mutex = PTHREAD_MUTEX_INITIALIZER, .message_fd = -1};

void log_configure(gpufl_log_fn fn, void *user, bool to_stderr, int message_fd)
{
    pthread_mutex_lock(&sink.mutex);
    sink.fn = fn;
    sink.user = user;
    sink.to_stderr = to_stderr;
    sink.message_fd = message_fd;
    pthread_mutex_unlock(&sink.mutex);
}

void log_abandon(void)
{
    pthread_mutex_init(&sink.mutex, NULL);
}

void log_message(gpufl_log_level level, const char *format, ...)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    int saved_errno = errno;
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    pthread_mutex_lock(&sink.mutex);
    if (sink.fn)
        sink.fn(sink.user, level, text);
    if (sink.to_stderr) {
        char line[640];
        int size = snprintf(line, sizeof line, "gpufl: %s: %s\n", names[level], text);
        if (size > 0 && write(STDERR_FILENO, line, (size_t)size) < 0) {
            /* stderr is gone; nobody to tell */
        }
    }
    if (sink.message_fd >= 0 && level <= GPUFL_LOG_WARNING) {
        char packet[640];
        int size = snprintf(packet, sizeof packet, "%s %s", names[level], text);
        /* A datagram per message; a full or closed socket loses it, never blocks or signals. */
        if (size > 0 && send(sink.message_fd, packet, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
            errno = 0;
    }
    pthread_mutex_unlock(&sink.mutex);
    errno = saved_errno;
}
