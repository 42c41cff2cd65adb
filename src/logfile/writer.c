/* SPDX-License-Identifier: Apache-2.0 */
#include "logfile/writer.h"

#include "base/clock.h"
#include "base/directory.h"
#include "base/log.h"
#include "logfile/line.h"
#include "logfile/sealer.h"
#include "logfile/session_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define ROTATE_BYTES_DEFAULT ((uint64_t)16 << 20)
#define RETRY_NS 1000000000
/* On an almost full disk short lines still fit and long ones do not: failures this close together are one episode. */
#define EPISODE_QUIET_NS (10 * (int64_t)1000000000)

struct channel_file {
    pthread_mutex_t mutex; /* guards everything below */
    enum channel channel;
    int fd; /* -1: none open */
    bool has_file, is_torn, is_failing;
    uint64_t seq, size, segment;
    uint64_t rotate_at_bytes;
    int64_t opened_ns, retry_ns;
    uint64_t lines, bytes, rows[RECORD_TYPE_COUNT];
    uint64_t lost_lines, lost_rows[RECORD_TYPE_COUNT];
};

struct log_writer {
    char *dir; /* owned */
    int dir_fd, lock_fd;
    uint64_t rotate_bytes, rotate_age_ms;
    bool fsync_always, seal;
    struct channel_file channels[CHANNEL_COUNT];

    pthread_mutex_t mutex; /* guards what follows; taken with a channel's mutex held, never the other way round */
    struct sealer *sealer;
    bool has_sealer_failed;
    unsigned failing_channels;
    int last_errno;          /* 0: never failed */
    int64_t last_failure_ns; /* mono */
    uint64_t all_rows[RECORD_TYPE_COUNT],
        all_lost_rows[RECORD_TYPE_COUNT]; /* of log_writer_line_all, once per record */
};

/* A message to send once no mutex is held: the log's callback is the user's code. */
struct notice {
    bool is_set;
    gpufl_log_level level;
    char text[512];
};

static void notice_send(const struct notice *notice)
{
    if (notice->is_set)
        log_message(notice->level, "%s", notice->text);
}

static gpufl_status io_problem(struct problem *problem, int error, const char *what, const char *path)
{
    gpufl_status status = error == EACCES || error == EPERM || error == EROFS ? GPUFL_E_PERMISSION : GPUFL_E_IO;
    return problem_set(problem, status, "%s %s: %s", what, path, strerror(error));
}

static gpufl_status open_session(struct log_writer *writer, const struct log_writer_options *options,
                                 struct problem *problem)
{
    gpufl_status status = directory_make(options->base_dir, problem);
    if (status)
        return status;
    int base_fd = open(options->base_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (base_fd < 0)
        return io_problem(problem, errno, "cannot open the log directory", options->base_dir);
    char *absolute = realpath(options->base_dir, NULL);
    if (asprintf(&writer->dir, "%s/%s", absolute ? absolute : options->base_dir, options->session_id) < 0) {
        writer->dir = NULL;
        status = GPUFL_E_NO_MEMORY;
    } else if (mkdirat(base_fd, options->session_id, 0700)) {
        status = io_problem(problem, errno, "cannot make the session directory", writer->dir);
    } else if ((writer->dir_fd =
                    openat(base_fd, options->session_id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0) {
        status = io_problem(problem, errno, "cannot open the session directory", writer->dir);
    } else if ((writer->lock_fd = openat(writer->dir_fd, SESSION_LOCK_NAME,
                                         O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)) < 0) {
        status = io_problem(problem, errno, "cannot make the lock file in", writer->dir);
    } else if (!session_lock_take(writer->lock_fd) && errno != ENOLCK && errno != ENOTSUP) {
        /* A file system without locks only costs readers the knowledge that the session is live. */
        status = io_problem(problem, errno, "cannot lock", writer->dir);
    }
    free(absolute);
    close(base_fd);
    return status;
}

static void writer_free(struct log_writer *writer)
{
    for (int i = 0; i < CHANNEL_COUNT; i++) {
        if (writer->channels[i].fd >= 0)
            close(writer->channels[i].fd);
        pthread_mutex_destroy(&writer->channels[i].mutex);
    }
    pthread_mutex_destroy(&writer->mutex);
    if (writer->lock_fd >= 0)
        close(writer->lock_fd);
    if (writer->dir_fd >= 0)
        close(writer->dir_fd);
    free(writer->dir);
    free(writer);
}

gpufl_status log_writer_open(struct log_writer **out, const struct log_writer_options *options, struct problem *problem)
{
    if (!options->base_dir || !options->session_id || !session_id_is_valid(options->session_id))
        return problem_set(problem, GPUFL_E_INVALID, "a session needs a log directory and a UUID as its id");
    struct log_writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for the log writer");
    writer->dir_fd = writer->lock_fd = -1;
    writer->rotate_bytes = options->rotate_bytes ? options->rotate_bytes : ROTATE_BYTES_DEFAULT;
    writer->rotate_age_ms = options->rotate_age_ms;
    writer->fsync_always = options->fsync_always;
    writer->seal = options->seal;
    pthread_mutex_init(&writer->mutex, NULL);
    for (int i = 0; i < CHANNEL_COUNT; i++) {
        writer->channels[i].channel = (enum channel)i;
        writer->channels[i].fd = -1;
        pthread_mutex_init(&writer->channels[i].mutex, NULL);
    }
    gpufl_status status = open_session(writer, options, problem);
    if (status)
        writer_free(writer);
    else
        *out = writer;
    return status;
}

static void seal_later(struct log_writer *writer, enum channel channel, uint64_t index)
{
    pthread_mutex_lock(&writer->mutex);
    if (!writer->sealer && !writer->has_sealer_failed) {
        writer->sealer = sealer_start(writer->dir_fd);
        writer->has_sealer_failed = !writer->sealer;
    }
    if (writer->sealer)
        sealer_add(writer->sealer, channel, index); /* a full queue leaves the file plain */
    pthread_mutex_unlock(&writer->mutex);
}

/* The live file becomes a rotated one; the next line makes a new live file. */
static void rotate(struct log_writer *writer, struct channel_file *file)
{
    char live[64], rotated[64];
    session_name_live(live, sizeof live, file->channel);
    session_name_rotated(rotated, sizeof rotated, file->channel, file->segment + 1, "");
    if (renameat(writer->dir_fd, live, writer->dir_fd, rotated)) {
        file->rotate_at_bytes = file->size + writer->rotate_bytes; /* go on in this file, try again later */
        file->opened_ns = clock_mono_ns();
        return;
    }
    file->segment++;
    int fd = file->fd;
    file->fd = -1; /* before close: a forked child must never close a number that is not ours any more */
    close(fd);
    if (writer->seal)
        seal_later(writer, file->channel, file->segment);
}

static int open_live(struct log_writer *writer, struct channel_file *file)
{
    char name[64];
    session_name_live(name, sizeof name, file->channel);
    int fd = openat(writer->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno;
    file->fd = fd;
    file->has_file = true;
    file->is_torn = false;
    file->size = 0;
    file->rotate_at_bytes = writer->rotate_bytes;
    file->opened_ns = writer->rotate_age_ms ? clock_mono_ns() : 0;
    return 0;
}

static bool is_due_for_rotation(const struct log_writer *writer, const struct channel_file *file, size_t size,
                                uint64_t size_limit)
{
    if (file->size == 0)
        return false;
    if (file->size + size > file->rotate_at_bytes || file->size + size > size_limit)
        return true;
    return writer->rotate_age_ms && clock_mono_ns() - file->opened_ns >= (int64_t)writer->rotate_age_ms * 1000000;
}

/* Makes sure that a live file with room for `size` bytes is open; 0 or an errno. */
static int prepare(struct log_writer *writer, struct channel_file *file, size_t size)
{
    /* A write beyond RLIMIT_FSIZE would not just fail: SIGXFSZ would kill the user's program. */
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    getrlimit(RLIMIT_FSIZE, &limit);
    uint64_t size_limit = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
    if (size > size_limit)
        return EFBIG;
    if (file->fd >= 0 && file->is_torn) {
        if (ftruncate(file->fd, (off_t)file->size))
            return errno;
        file->is_torn = false;
    }
    if (file->fd >= 0 && is_due_for_rotation(writer, file, size, size_limit))
        rotate(writer, file);
    if (file->fd >= 0)
        return file->size + size > size_limit ? EFBIG : 0;
    return open_live(writer, file);
}

/* All of both parts, or an errno and nothing (the file cut back). */
static int write_whole(struct channel_file *file, struct iovec parts[2])
{
    struct iovec *part = parts;
    int count = 2;
    while (count) {
        ssize_t written = writev(file->fd, part, count);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            int error = written < 0 ? errno : EIO;
            file->is_torn = ftruncate(file->fd, (off_t)file->size) != 0;
            return error;
        }
        size_t left = (size_t)written;
        while (count && left >= part->iov_len) {
            left -= part->iov_len;
            part++;
            count--;
        }
        if (count) {
            part->iov_base = (char *)part->iov_base + left;
            part->iov_len -= left;
        }
    }
    return 0;
}

static int write_line(struct log_writer *writer, struct channel_file *file, const struct bytes *line, uint64_t seq)
{
    char trailer[LINE_TRAILER_MAX];
    size_t trailer_size = line_trailer(trailer, line->data, line->size, seq);
    size_t size = line->size + trailer_size;
    int error = prepare(writer, file, size);
    if (error)
        return error;
    struct iovec parts[2] = {{line->data, line->size}, {trailer, trailer_size}};
    error = write_whole(file, parts);
    if (error)
        return error;
    file->size += size;
    file->bytes += size;
    file->lines++;
    if (writer->fsync_always)
        fdatasync(file->fd);
    return 0;
}

static const char *advice(int error)
{
    switch (error) {
    case ENOSPC:
    case EDQUOT:
        return "recording continues when there is space";
    case EFBIG:
        return "the file size limit (ulimit -f) is too small; recording continues when it is raised";
    default:
        return "it is tried again every second";
    }
}

static void trouble_begin(struct log_writer *writer, struct channel_file *file, int error, uint64_t rows,
                          struct notice *notice)
{
    int64_t now_ns = clock_mono_ns();
    file->retry_ns = now_ns + RETRY_NS;
    pthread_mutex_lock(&writer->mutex);
    bool is_over = writer->failing_channels == 0 && now_ns - writer->last_failure_ns > EPISODE_QUIET_NS;
    bool is_new = is_over || writer->last_errno != error;
    if (!file->is_failing)
        writer->failing_channels++;
    file->is_failing = true;
    writer->last_errno = error;
    writer->last_failure_ns = now_ns;
    pthread_mutex_unlock(&writer->mutex);
    if (!is_new)
        return;
    notice->is_set = true;
    notice->level = GPUFL_LOG_ERROR;
    snprintf(notice->text, sizeof notice->text, "cannot write %s/%s.log: %s; %s; %llu records were not written so far",
             writer->dir, channel_names[file->channel], strerror(error), advice(error), (unsigned long long)rows);
}

static void trouble_end(struct log_writer *writer, struct channel_file *file, struct notice *notice)
{
    file->is_failing = false;
    pthread_mutex_lock(&writer->mutex);
    bool is_last = --writer->failing_channels == 0;
    pthread_mutex_unlock(&writer->mutex);
    if (!is_last)
        return;
    notice->is_set = true;
    notice->level = GPUFL_LOG_INFO;
    snprintf(notice->text, sizeof notice->text, "writing %s works again; %llu lines of %s.log were not written",
             writer->dir, (unsigned long long)file->lost_lines, channel_names[file->channel]);
}

/* A dropped line uses up its number, so that the hole shows in the file itself. */
static gpufl_status append(struct log_writer *writer, struct channel_file *file, const struct bytes *line,
                           uint64_t rows, struct notice *notice)
{
    uint64_t seq = ++file->seq;
    if (line->failed || !line->size || line->size > LINE_SIZE_MAX - LINE_TRAILER_MAX) {
        /* The caller ran out of memory, or no reader would take it: not the disk's fault, so the next line is tried. */
        file->lost_lines++;
        return GPUFL_E_IO;
    }
    bool is_tried = !file->is_failing || clock_mono_ns() >= file->retry_ns;
    int error = is_tried ? write_line(writer, file, line, seq) : 0;
    if (!is_tried || error)
        file->lost_lines++;
    if (error)
        trouble_begin(writer, file, error, rows, notice);
    else if (is_tried && file->is_failing)
        trouble_end(writer, file, notice);
    return is_tried && !error ? GPUFL_OK : GPUFL_E_IO;
}

gpufl_status log_writer_line(struct log_writer *writer, enum channel channel, enum record_type type,
                             const struct bytes *line, uint64_t rows)
{
    if ((unsigned)channel >= CHANNEL_COUNT || (unsigned)type >= RECORD_TYPE_COUNT)
        return GPUFL_E_INVALID;
    int saved_errno = errno;
    struct channel_file *file = &writer->channels[channel];
    struct notice notice = {.is_set = false};
    pthread_mutex_lock(&file->mutex);
    gpufl_status status = append(writer, file, line, rows, &notice);
    *(status ? &file->lost_rows[type] : &file->rows[type]) += rows;
    pthread_mutex_unlock(&file->mutex);
    notice_send(&notice);
    errno = saved_errno;
    return status;
}

gpufl_status log_writer_line_all(struct log_writer *writer, unsigned always, enum record_type type,
                                 const struct bytes *line)
{
    if ((unsigned)type >= RECORD_TYPE_COUNT)
        return GPUFL_E_INVALID;
    int saved_errno = errno;
    unsigned written = 0, lost = 0;
    for (int i = 0; i < CHANNEL_COUNT; i++) {
        struct channel_file *file = &writer->channels[i];
        struct notice notice = {.is_set = false};
        pthread_mutex_lock(&file->mutex);
        if (file->has_file || always >> i & 1u)
            *(append(writer, file, line, 1, &notice) ? &lost : &written) += 1;
        pthread_mutex_unlock(&file->mutex);
        notice_send(&notice);
    }
    pthread_mutex_lock(&writer->mutex);
    if (written)
        writer->all_rows[type]++;
    else if (lost)
        writer->all_lost_rows[type]++;
    pthread_mutex_unlock(&writer->mutex);
    errno = saved_errno;
    return lost ? GPUFL_E_IO : GPUFL_OK;
}

void log_writer_stats(struct log_writer *writer, struct log_writer_stats *stats)
{
    *stats = (struct log_writer_stats){0};
    for (int i = 0; i < CHANNEL_COUNT; i++) {
        struct channel_file *file = &writer->channels[i];
        pthread_mutex_lock(&file->mutex);
        stats->lines += file->lines;
        stats->bytes += file->bytes;
        stats->lost_lines += file->lost_lines;
        for (int type = 0; type < RECORD_TYPE_COUNT; type++) {
            stats->rows[type] += file->rows[type];
            stats->lost_rows[type] += file->lost_rows[type];
        }
        pthread_mutex_unlock(&file->mutex);
    }
    struct sealer_stats sealed = {0};
    pthread_mutex_lock(&writer->mutex);
    for (int type = 0; type < RECORD_TYPE_COUNT; type++) {
        stats->rows[type] += writer->all_rows[type];
        stats->lost_rows[type] += writer->all_lost_rows[type];
    }
    stats->last_errno = writer->last_errno;
    if (writer->sealer)
        sealer_get_stats(writer->sealer, &sealed);
    pthread_mutex_unlock(&writer->mutex);
    stats->sealed_segments = sealed.segments;
    stats->sealed_plain_bytes = sealed.plain_bytes;
    stats->sealed_bytes = sealed.sealed_bytes;
    stats->seal_cpu_ns = sealed.cpu_ns;
}

const char *log_writer_dir(const struct log_writer *writer)
{
    return writer->dir;
}

void log_writer_close(struct log_writer *writer, unsigned deadline_ms)
{
    if (!writer)
        return;
    if (writer->sealer)
        sealer_stop(writer->sealer, deadline_ms, NULL);
    writer_free(writer);
}

void log_writer_abandon(struct log_writer *writer)
{
    if (!writer)
        return;
    /* The memory is leaked on purpose: a mutex may have been held by a thread that the child does not have.
     * Closing the child's descriptors leaves the parent's files and lock as they are. */
    for (int i = 0; i < CHANNEL_COUNT; i++)
        if (writer->channels[i].fd >= 0)
            close(writer->channels[i].fd);
    if (writer->dir_fd >= 0)
        close(writer->dir_fd);
    if (writer->lock_fd >= 0)
        close(writer->lock_fd);
}
