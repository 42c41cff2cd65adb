/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/retention.h"

#include "base/clock.h"
#include "base/log.h"
#include "logfile/segment.h"
#include "logfile/session_source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const int64_t day_ns = (int64_t)86400 * 1000000000;

/* Removes the file; its size, 0 when it stays. */
static uint64_t remove_file(int dir_fd, const char *name)
{
    struct stat info;
    if (fstatat(dir_fd, name, &info, AT_SYMLINK_NOFOLLOW) || unlinkat(dir_fd, name, 0))
        return 0;
    return (uint64_t)info.st_size;
}

/* Our own small files, and GPUFlight's. */
static void remove_notes(int dir_fd)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return;
    }
    struct dirent *entry;
    while ((entry = readdir(dir)) != NULL)
        if (!strncmp(entry->d_name, ".gpufl-", 7) || !strcmp(entry->d_name, ".uploaded") ||
            !strcmp(entry->d_name, ".failed"))
            unlinkat(dir_fd, entry->d_name, 0);
    closedir(dir);
}

/* The files are those of the last look, on which the decision to delete rests. */
static bool is_unchanged(const struct agent_session *session, const struct session_files *files)
{
    uint64_t bytes;
    int64_t changed_wall_ns;
    agent_session_measure(files, &bytes, &changed_wall_ns);
    return bytes == session->bytes && changed_wall_ns == session->changed_wall_ns;
}

/* Whatever else somebody put there stays, and its directory with it. */
static uint64_t remove_files(const struct session_files *files)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < files->count; i++)
        bytes += remove_file(files->dir_fd, files->items[i].name);
    remove_notes(files->dir_fd);
    unlinkat(files->dir_fd, ".tmp", AT_REMOVEDIR);
    return bytes;
}

/* The session's lock, so that nobody appends while it is deleted. False: somebody has it. *fd is -1 where the file system
 * has no locks, and the last look had other reasons to believe that nobody writes. */
static bool take_lock(const struct session_files *files, int *fd)
{
    *fd = session_lock_open(files->dir_fd);
    return *fd >= 0 || errno == ENOLCK || errno == ENOTSUP;
}

/* False: nothing was removed, for somebody has it or wrote to it since the last look; it is looked at again. */
static bool remove_session(struct agent_session *session, uint64_t *bytes, bool *is_gone)
{
    struct session_files files;
    int lock_fd = -1;
    *is_gone = false;
    *bytes = 0;
    if (session_files_list(&files, session->dir, NULL))
        return false;
    bool is_ours = take_lock(&files, &lock_fd);
    if (is_ours) {
        /* Once more with the lock: whoever appends had it until now. */
        session_files_free(&files);
        is_ours = !session_files_list(&files, session->dir, NULL) && is_unchanged(session, &files);
    }
    if (is_ours)
        *bytes = remove_files(&files);
    session->is_dirty |= !is_ours;
    session_files_free(&files);
    if (lock_fd >= 0)
        close(lock_fd);
    *is_gone = is_ours && (rmdir(session->dir) == 0 || errno == ENOENT);
    return is_ours;
}

static void forget(const struct agent_work *work, struct agent_session **slot)
{
    session_state_remove(work->state_dir, (*slot)->sender.session_id);
    free(*slot);
    *slot = NULL;
}

static bool is_finished(const struct agent_session *session)
{
    return session->is_identified && session->state.is_complete && session->is_drained && !session->is_live &&
           !session->is_dirty && session->bytes;
}

/* Everything of the session is safely elsewhere. */
static bool is_sent(const struct agent_session *session)
{
    return is_finished(session) && session->state.is_acknowledged;
}

/* Copies of it in other directories were left alone, and are so for ever. */
static void settle_duplicates(struct agent_session **sessions, size_t count, const struct agent_session *sent)
{
    for (size_t i = 0; i < count; i++)
        if (sessions[i] && sessions[i]->is_duplicate &&
            !strcmp(sessions[i]->sender.session_id, sent->sender.session_id))
            sessions[i]->is_settled = true;
}

static uint64_t delete_sent(const struct agent_work *work, struct agent_session **sessions, size_t count, size_t at)
{
    struct agent_session *session = sessions[at];
    bool is_gone;
    uint64_t bytes;
    if (!remove_session(session, &bytes, &is_gone))
        return 0;
    counter_add(&work->counters->bytes_deleted, bytes);
    log_message(GPUFL_LOG_INFO, "%s: deleted, the server has it", session->dir);
    session->bytes = session->bytes > bytes ? session->bytes - bytes : 0;
    settle_duplicates(sessions, count, session);
    if (is_gone)
        forget(work, &sessions[at]);
    return bytes;
}

/* Sealed segments of a session that is still written to, oldest first, until `wanted` bytes are free. Only what the
 * server has, or everything. */
static uint64_t delete_segments(const struct agent_work *work, struct agent_session *session, bool is_unsent_too,
                                uint64_t wanted)
{
    struct session_files files;
    uint64_t freed = 0;
    if (!session->is_identified || session->is_unsaved || session_files_list(&files, session->dir, NULL))
        return 0;
    for (size_t i = 0; i < files.log_count && freed < wanted; i++) {
        const struct session_file *file = &files.items[i];
        const struct channel_state *state = &session->state.channels[file->channel];
        struct segment_footer footer;
        int fd = file->kind == SESSION_FILE_SEALED ? session_file_open(files.dir_fd, file->name) : -1;
        bool has_footer = fd >= 0 && !segment_footer_read(fd, &footer, NULL);
        if (fd >= 0)
            close(fd);
        bool is_with_server = has_footer && footer.last_seq < state->next_line && session->state.is_acknowledged;
        if (!has_footer || (!is_with_server && !is_unsent_too))
            continue;
        uint64_t bytes = remove_file(files.dir_fd, file->name);
        freed += bytes;
        if (is_with_server) {
            counter_add(&work->counters->bytes_deleted, bytes);
        } else if (bytes) {
            uint64_t first = footer.first_seq > state->next_line ? footer.first_seq : state->next_line;
            uint64_t lines = footer.last_seq >= first ? footer.last_seq - first + 1 : 0;
            counter_add(&work->counters->bytes_dropped, bytes);
            counter_add(&work->counters->lines_dropped, lines);
            log_message(GPUFL_LOG_ERROR, "%s/%s: deleted with %" PRIu64 " unsent lines: the disk budget is spent",
                        session->dir, file->name, lines);
        }
    }
    session->bytes = session->bytes > freed ? session->bytes - freed : 0;
    session_files_free(&files);
    return freed;
}

/* Lines of the session that the server does not have. */
static uint64_t count_unsent(const struct agent_session *session)
{
    struct session_files files;
    uint64_t lines = 0;
    if (session_files_list(&files, session->dir, NULL))
        return 0;
    for (size_t i = 0; i < files.log_count; i++) {
        struct line_source source;
        const struct channel_state *state = &session->state.channels[files.items[i].channel];
        int fd = session_file_open(files.dir_fd, files.items[i].name);
        if (fd < 0)
            continue;
        if (!line_source_open(&source, fd, session_file_coding(&files.items[i]), UINT64_MAX)) {
            const char *text;
            size_t size;
            while (line_source_next(&source, &text, &size) == LINE_WHOLE) {
                int64_t seq = line_end_read(text, size).seq;
                lines += seq < 0 || (uint64_t)seq >= state->next_line;
            }
            line_source_close(&source);
        }
        close(fd);
    }
    session_files_free(&files);
    return lines;
}

static uint64_t drop_unsent(const struct agent_work *work, struct agent_session **slot)
{
    bool is_gone;
    uint64_t lines = count_unsent(*slot), bytes;
    if (!remove_session(*slot, &bytes, &is_gone))
        return 0;
    counter_add(&work->counters->lines_dropped, lines);
    counter_add(&work->counters->bytes_dropped, bytes);
    log_message(GPUFL_LOG_ERROR, "%s: deleted with %" PRIu64 " unsent lines: the disk budget is spent", (*slot)->dir,
                lines);
    (*slot)->bytes = (*slot)->bytes > bytes ? (*slot)->bytes - bytes : 0;
    if (is_gone)
        forget(work, slot);
    return bytes;
}

enum victim { VICTIM_SENT, VICTIM_SEGMENTS, VICTIM_UNSENT, VICTIM_UNSENT_SEGMENTS, VICTIM_COUNT };

static bool is_victim(const struct agent_session *session, enum victim victim)
{
    switch (victim) {
    case VICTIM_SENT:
        return is_sent(session);
    case VICTIM_UNSENT:
        return session->is_identified && !session->is_live && session->bytes;
    default:
        return session->is_identified && session->bytes;
    }
}

/* The session that was written to the longest ago. */
static struct agent_session **find_oldest(struct agent_session **sessions, size_t count, enum victim victim,
                                          int64_t after_ns)
{
    struct agent_session **oldest = NULL;
    for (size_t i = 0; i < count; i++)
        if (sessions[i] && is_victim(sessions[i], victim) && sessions[i]->changed_wall_ns > after_ns &&
            (!oldest || sessions[i]->changed_wall_ns < (*oldest)->changed_wall_ns))
            oldest = &sessions[i];
    return oldest;
}

static void keep_budget(const struct retention *retention, const struct agent_work *work,
                        struct agent_session **sessions, size_t count)
{
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += sessions[i] ? sessions[i]->bytes : 0;
    for (enum victim victim = 0; victim < VICTIM_COUNT; victim++) {
        int64_t after_ns = INT64_MIN;
        struct agent_session **slot;
        while (total > retention->spool_bytes_max && (slot = find_oldest(sessions, count, victim, after_ns)) != NULL) {
            after_ns = (*slot)->changed_wall_ns;
            uint64_t wanted = total - retention->spool_bytes_max;
            uint64_t freed = victim == VICTIM_SENT ? delete_sent(work, sessions, count, (size_t)(slot - sessions))
                             : victim == VICTIM_UNSENT
                                 ? drop_unsent(work, slot)
                                 : delete_segments(work, *slot, victim != VICTIM_SEGMENTS, wanted);
            total = total > freed ? total - freed : 0;
        }
    }
}

void retention_run(const struct retention *retention, const struct agent_work *work, struct agent_session **sessions,
                   size_t count)
{
    const int64_t now_ns = clock_wall_ns();
    for (size_t i = 0; i < count && retention->keep != AGENT_KEEP_ALL; i++) {
        if (!sessions[i])
            continue;
        bool is_old = retention->keep == AGENT_KEEP_UNACKNOWLEDGED ||
                      now_ns - sessions[i]->changed_wall_ns > (int64_t)retention->keep_days * day_ns;
        if (is_sent(sessions[i]) && is_old)
            delete_sent(work, sessions, count, i);
        else if (!sessions[i]->state.is_complete && retention->keep == AGENT_KEEP_UNACKNOWLEDGED)
            delete_segments(work, sessions[i], false, UINT64_MAX);
    }
    if (retention->spool_bytes_max)
        keep_budget(retention, work, sessions, count);
}
