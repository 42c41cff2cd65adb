/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal.h"

#include "base/clock.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool terminal_use_color(int fd, const char *mode)
{
    if (strcmp(mode, "always") == 0)
        return true;
    if (strcmp(mode, "never") == 0)
        return false;
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    return isatty(fd) && !(no_color && *no_color) && !(term && strcmp(term, "dumb") == 0);
}

struct progress {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_done;
    char what[128];
    uint64_t total_bytes, bytes_before;
    int64_t start_ns;
    _Atomic double given_share; /* negative: not given */
};

/* What this process has read so far, as the kernel counts it. */
static uint64_t bytes_read(void)
{
    unsigned long long bytes = 0;
    FILE *file = fopen("/proc/self/io", "re");
    if (!file)
        return 0;
    if (fscanf(file, "rchar: %llu", &bytes) != 1)
        bytes = 0;
    fclose(file);
    return bytes;
}

/* The number of bytes of UTF-8 text that fit into the columns. */
static size_t text_fit(const char *text, size_t columns)
{
    size_t size = 0;
    for (size_t used = 0; text[size]; size++) {
        used += ((unsigned char)text[size] & 0xc0) != 0x80;
        if (used > columns)
            break;
    }
    return size;
}

static void progress_show(const struct progress *progress)
{
    double elapsed = (double)(clock_mono_ns() - progress->start_ns) / 1e9;
    uint64_t done = bytes_read() - progress->bytes_before;
    double given = progress->given_share;
    double share = given >= 0 ? given : progress->total_bytes ? (double)done / (double)progress->total_bytes : 0;
    char time[96];
    if (share > 0.02 && share < 1)
        snprintf(time, sizeof time, " · %.0f %% · %.0f s, about %.0f s left", 100 * share, elapsed,
                 elapsed / share - elapsed);
    else
        snprintf(time, sizeof time, " · %.0f s", elapsed);
    /* A line that wraps could not be erased. */
    size_t room = (size_t)terminal_columns(STDERR_FILENO, 80) - 1;
    char line[256];
    snprintf(line, sizeof line, "gpufl: %s%s", progress->what, time);
    if (line[text_fit(line, room)])
        snprintf(line, sizeof line, "gpufl: %s", progress->what);
    fprintf(stderr, "\r\033[K%.*s", (int)text_fit(line, room), line);
    fflush(stderr);
}

static void *progress_run(void *argument)
{
    struct progress *progress = argument;
    bool is_shown = false;
    int64_t wake_ns = progress->start_ns + 1000000000;
    pthread_mutex_lock(&progress->mutex);
    while (!progress->is_done) {
        struct timespec wake = {.tv_sec = wake_ns / 1000000000, .tv_nsec = wake_ns % 1000000000};
        pthread_cond_timedwait(&progress->changed, &progress->mutex, &wake);
        if (!progress->is_done && clock_mono_ns() >= wake_ns) {
            progress_show(progress);
            is_shown = true;
            wake_ns += 250000000;
        }
    }
    pthread_mutex_unlock(&progress->mutex);
    if (is_shown)
        fputs("\r\033[K", stderr);
    return NULL;
}

struct progress *progress_start(const char *what, uint64_t total_bytes)
{
    if (!isatty(STDERR_FILENO))
        return NULL;
    struct progress *progress = calloc(1, sizeof *progress);
    if (!progress)
        return NULL;
    snprintf(progress->what, sizeof progress->what, "%s", what);
    progress->total_bytes = total_bytes;
    progress->given_share = -1;
    progress->bytes_before = bytes_read();
    progress->start_ns = clock_mono_ns();
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&progress->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&progress->mutex, NULL);
    if (pthread_create(&progress->thread, NULL, progress_run, progress) != 0) {
        pthread_mutex_destroy(&progress->mutex);
        pthread_cond_destroy(&progress->changed);
        free(progress);
        return NULL;
    }
    return progress;
}

void progress_set(struct progress *progress, double share)
{
    if (progress)
        progress->given_share = share;
}

void progress_say(struct progress *progress, const char *what, double share)
{
    if (!progress)
        return;
    pthread_mutex_lock(&progress->mutex);
    snprintf(progress->what, sizeof progress->what, "%s", what);
    pthread_mutex_unlock(&progress->mutex);
    progress_set(progress, share);
}

void progress_finish(struct progress *progress)
{
    if (!progress)
        return;
    pthread_mutex_lock(&progress->mutex);
    progress->is_done = true;
    pthread_cond_signal(&progress->changed);
    pthread_mutex_unlock(&progress->mutex);
    pthread_join(progress->thread, NULL);
    pthread_mutex_destroy(&progress->mutex);
    pthread_cond_destroy(&progress->changed);
    free(progress);
}

uint64_t directory_bytes(const char *path)
{
    uint64_t total = 0;
    DIR *directory = opendir(path);
    if (!directory)
        return 0;
    for (struct dirent *entry; (entry = readdir(directory));) {
        struct stat status;
        if (fstatat(dirfd(directory), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode))
            total += (uint64_t)status.st_size;
    }
    closedir(directory);
    return total;
}

static const char *interrupt_message;

static void on_interrupt(int signal_number)
{
    ssize_t written = write(STDERR_FILENO, interrupt_message, strlen(interrupt_message));
    (void)written;
    _exit(128 + signal_number);
}

void terminal_on_interrupt(const char *message)
{
    interrupt_message = message;
    struct sigaction action = {.sa_handler = on_interrupt};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
}
