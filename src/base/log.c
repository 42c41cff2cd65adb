/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include "base/environment.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct {
    pthread_mutex_t mutex;
    gpufl_log_fn fn;
    void *user;
    bool to_stderr;
    int message_fd;
    char held[1500]; /* warnings without a receiver, joined by "; ", until log_print_held */
    unsigned held_more;
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

static bool has_listener(void)
{
    return sink.fn || sink.to_stderr || sink.message_fd >= 0;
}

/* With the mutex. Each text is stored once; texts that do not fit are counted. */
static void hold(const char *text)
{
    size_t used = strlen(sink.held), size = strlen(text);
    if (strstr(sink.held, text))
        return;
    if (used + size + 3 > sizeof sink.held) {
        sink.held_more++;
        return;
    }
    snprintf(sink.held + used, sizeof sink.held - used, "%s%s", used ? "; " : "", text);
}

/* A full pipe must not block the program: the line is dropped. */
static void print_line(const char *line, int size)
{
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (size > 0 && poll(&out, 1, 0) == 1 && write(STDERR_FILENO, line, (size_t)size) < 0) {
        /* stderr is closed; the message is lost */
    }
}

void log_print_held(void)
{
    int saved_errno = errno;
    char line[sizeof sink.held + 40];
    const char *quiet = getenv("GPUFL_QUIET");
    pthread_mutex_lock(&sink.mutex);
    int size = snprintf(line, sizeof line, "gpufl: %s", sink.held);
    if (sink.held_more)
        size += snprintf(line + size, sizeof line - (size_t)size, "; and %u more", sink.held_more);
    size += snprintf(line + size, sizeof line - (size_t)size, "\n");
    for (char *c = line; c < line + size - 1; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    if (sink.held[0] && !(quiet && word_is_true(quiet)))
        print_line(line, size);
    sink.held[0] = '\0';
    sink.held_more = 0;
    pthread_mutex_unlock(&sink.mutex);
    errno = saved_errno;
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
        print_line(line, size);
    }
    if (sink.message_fd >= 0 && level <= GPUFL_LOG_WARNING) {
        char packet[640];
        int size = snprintf(packet, sizeof packet, "%s %s", names[level], text);
        /* One datagram per message; a full or closed socket loses it, but never blocks or raises a signal. */
        if (size > 0 && send(sink.message_fd, packet, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
            errno = 0;
    }
    if (level <= GPUFL_LOG_WARNING && !has_listener())
        hold(text);
    pthread_mutex_unlock(&sink.mutex);
    errno = saved_errno;
}
