/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/retention.h"

#include "agent/file_proof.h"
#include "agent/quarantine.h"
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

/* Removes the file. Returns its size, or 0 if it stays. */
static uint64_t remove_file(int dir_fd, const char *name)
{
    struct stat info;
    if (fstatat(dir_fd, name, &info, AT_SYMLINK_NOFOLLOW) || unlinkat(dir_fd, name, 0))
        return 0;
    return (uint64_t)info.st_size;
}

/* Removes our small files and GPUFlight's. */
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

/* Whether the files are still those on which the decision to delete was made. */
static bool is_unchanged(const struct agent_session *session, const struct session_files *files)
{
    uint64_t bytes;
    int64_t changed_wall_ns;
    agent_session_measure(files, &bytes, &changed_wall_ns);
    return bytes == session->bytes && changed_wall_ns == session->changed_wall_ns;
}

/* Why a whole session is deleted, and the result. */
struct removal {
    bool is_unsent_too;
    uint64_t bytes;              /* deleted */
    uint64_t unsent, unnumbered; /* lines that the server does not have; lines without a number */
    uint64_t foreign_bytes;
    bool is_gone; /* including its directory */
};

static bool has_recording(const struct file_proof *proofs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (proofs[i].is_recording)
            return true;
    return false;
}

/* Whether the file may be deleted. Empty files are deleted with a recording. */
static bool is_removable(const struct removal *removal, const struct file_proof *proof)
{
    return !proof->bytes || (proof->is_recording && (removal->is_unsent_too || !proof->unsent));
}

static void tell_kept(const struct agent_session *session, const char *name, const struct file_proof *proof)
{
    if (!session->kept.bytes)
        log_message(GPUFL_LOG_WARNING, "%s/%s: kept: %s", session->dir, name,
                    !proof->records        ? "it is not a recording of this session"
                    : !proof->is_recording ? "not every line of it is a record of this session"
                                           : "the server does not have every line of it");
}

/* Removes files that are proven to belong to the session. Any other file stays, and so does the directory. */
static void remove_files(const struct agent_session *session, const struct session_files *files,
                         const struct file_proof *proofs, struct removal *removal)
{
    bool is_ours = has_recording(proofs, files->log_count), is_whole = true;
    for (size_t i = 0; i < files->log_count; i++) {
        bool is_removed = is_ours && is_removable(removal, &proofs[i]);
        is_whole &= is_removed;
        if (!is_removed) {
            removal->foreign_bytes += proofs[i].records ? 0 : proofs[i].bytes;
            tell_kept(session, files->items[i].name, &proofs[i]);
            continue;
        }
        removal->bytes += remove_file(files->dir_fd, files->items[i].name);
        removal->unsent += proofs[i].unsent;
        removal->unnumbered += proofs[i].unnumbered;
    }
    if (!is_whole)
        return;
    for (size_t i = files->log_count; i < files->count; i++)
        removal->bytes += remove_file(files->dir_fd, files->items[i].name);
    remove_notes(files->dir_fd);
    unlinkat(files->dir_fd, ".tmp", AT_REMOVEDIR);
}

/* Takes the session's lock, so that nobody appends while it is deleted. False: another process holds it. *fd is -1
 * where the file system has no locks; there the last check found other evidence that nobody writes. */
static bool take_lock(const struct session_files *files, int *fd)
{
    *fd = session_lock_open(files->dir_fd);
    return *fd >= 0 || errno == ENOLCK || errno == ENOTSUP;
}

/* One proof per log file; owned. NULL: no memory. */
static struct file_proof *prove_files(const struct agent_session *session, const struct session_files *files)
{
    struct file_proof *proofs = calloc(files->log_count + 1, sizeof *proofs);
    for (size_t i = 0; proofs && i < files->log_count; i++)
        file_prove(&proofs[i], files, &files->items[i], &session->state);
    return proofs;
}

/* Remaining files are not checked again until they change. */
static void note_kept(struct agent_session *session, const struct removal *removal)
{
    struct session_files files;
    if (session_files_list(&files, session->dir, NULL))
        return;
    agent_session_measure(&files, &session->bytes, &session->changed_wall_ns);
    session->kept = (struct kept_files){session->bytes, removal->foreign_bytes, session->changed_wall_ns};
    session_files_free(&files);
}

/* With the session's lock held: whether the files are still those that were proven. */
static bool is_still_proven(const struct agent_session *session, const struct session_files *proven)
{
    struct session_files files;
    if (session_files_list(&files, session->dir, NULL))
        return false;
    bool is_same = files.count == proven->count && is_unchanged(session, &files);
    session_files_free(&files);
    return is_same;
}

/* Nothing is removed if another process holds the session's lock or has written since the last check; it is checked
 * again later. */
static void remove_session(struct agent_session *session, struct removal *removal)
{
    struct session_files files;
    int lock_fd = -1;
    if (session_files_list(&files, session->dir, NULL))
        return;
    struct file_proof *proofs = prove_files(session, &files);
    /* Taking the lock creates a file, which must not appear in a directory that is not ours. */
    bool is_ours = proofs && has_recording(proofs, files.log_count);
    bool is_free = proofs && (!is_ours || take_lock(&files, &lock_fd)) && is_still_proven(session, &files);
    if (is_free)
        remove_files(session, &files, proofs, removal);
    session->is_dirty |= !is_free;
    free(proofs);
    session_files_free(&files);
    if (lock_fd >= 0)
        close(lock_fd);
    removal->is_gone = removal->bytes && (rmdir(session->dir) == 0 || errno == ENOENT);
    if (is_free && !removal->is_gone)
        note_kept(session, removal);
}

/* The files were checked before and must not be deleted. */
static bool is_kept(const struct agent_session *session)
{
    return session->kept.bytes && session->kept.bytes == session->bytes &&
           session->kept.changed_wall_ns == session->changed_wall_ns;
}

static uint64_t kept_foreign_bytes(const struct agent_session *session)
{
    return is_kept(session) ? session->kept.foreign_bytes : 0;
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

/* Everything of the session is on the server. */
static bool is_sent(const struct agent_session *session)
{
    return is_finished(session) && session->state.is_acknowledged;
}

/* Copies of the session in other directories were ignored, and stay ignored. */
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
    struct removal removal = {.is_unsent_too = false};
    remove_session(session, &removal);
    if (!removal.bytes)
        return 0;
    counter_add(&work->counters->bytes_deleted, removal.bytes);
    log_message(GPUFL_LOG_INFO, "%s: deleted because the server has it", session->dir);
    settle_duplicates(sessions, count, session);
    if (removal.is_gone)
        forget(work, &sessions[at]);
    return removal.bytes;
}

/* Deletes sealed segments of a session that is still being written, oldest first, until `wanted` bytes are free: only
 * those that the server has, or all. */
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
        struct file_proof proof;
        file_prove(&proof, &files, file, &session->state);
        if (!proof.is_recording || (is_with_server && proof.unsent)) {
            agent_session_note_damage(session, work);
            continue;
        }
        uint64_t bytes = remove_file(files.dir_fd, file->name);
        freed += bytes;
        if (is_with_server) {
            counter_add(&work->counters->bytes_deleted, bytes);
        } else if (bytes) {
            counter_add(&work->counters->bytes_dropped, bytes);
            counter_add(&work->counters->lines_dropped, proof.unsent);
            log_message(GPUFL_LOG_ERROR, "%s/%s: deleted with %" PRIu64 " unsent lines: the disk budget is exceeded",
                        session->dir, file->name, proof.unsent);
        }
    }
    session->bytes = session->bytes > freed ? session->bytes - freed : 0;
    session_files_free(&files);
    return freed;
}

/* Deletes a session that is not completely uploaded. */
static uint64_t drop_session(const struct agent_work *work, struct agent_session **slot)
{
    struct agent_session *session = *slot;
    struct removal removal = {.is_unsent_too = true};
    bool is_finished_one = is_finished(session);
    uint64_t refused = session->state.refused_lines;
    remove_session(session, &removal);
    if (!removal.bytes)
        return 0;
    /* In a session that was sent to its end, lines without numbers were sent, too. */
    uint64_t lines = is_finished_one ? removal.unsent : removal.unsent + removal.unnumbered;
    counter_add(&work->counters->lines_dropped, lines + refused);
    counter_add(&work->counters->bytes_dropped, removal.bytes);
    session->state.refused_lines = 0;
    session->is_unsaved = true;
    if (refused)
        log_message(GPUFL_LOG_ERROR,
                    "%s: deleted with %" PRIu64 " lines that the server refused and %" PRIu64
                    " unsent lines: the disk budget is exceeded",
                    session->dir, refused, lines);
    else
        log_message(GPUFL_LOG_ERROR, "%s: deleted with %" PRIu64 " unsent lines: the disk budget is exceeded",
                    session->dir, lines);
    if (removal.is_gone)
        forget(work, slot);
    return removal.bytes;
}

/* In the order of deletion: what the server has, what it refused, what it may still accept. */
enum victim { VICTIM_SENT, VICTIM_SEGMENTS, VICTIM_REFUSED, VICTIM_UNSENT, VICTIM_UNSENT_SEGMENTS, VICTIM_COUNT };

static bool is_victim(const struct agent_session *session, enum victim victim)
{
    bool has_files = session->is_identified && session->bytes && !is_kept(session);
    switch (victim) {
    case VICTIM_SENT:
        return has_files && is_sent(session);
    case VICTIM_REFUSED:
        return has_files && is_finished(session) && session->state.refused_lines;
    case VICTIM_UNSENT:
        return has_files && !session->is_live;
    default:
        return has_files;
    }
}

/* The session that was written to least recently. */
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

static uint64_t delete_victim(const struct agent_work *work, struct agent_session **sessions, size_t count,
                              struct agent_session **slot, enum victim victim, uint64_t wanted)
{
    switch (victim) {
    case VICTIM_SENT:
        return delete_sent(work, sessions, count, (size_t)(slot - sessions));
    case VICTIM_REFUSED:
    case VICTIM_UNSENT:
        return drop_session(work, slot);
    default:
        return delete_segments(work, *slot, victim == VICTIM_UNSENT_SEGMENTS, wanted);
    }
}

/* Deletes quarantined copies before the sessions that they come from. */
static uint64_t drop_copies(const struct agent_work *work, uint64_t wanted)
{
    struct quarantine_drop drop;
    quarantine_make_room(work->quarantine_dir, wanted, &drop);
    if (drop.windows) {
        counter_add(&work->counters->bytes_dropped, drop.bytes);
        log_message(GPUFL_LOG_ERROR, "%s: %" PRIu64 " refused windows deleted: the disk budget is exceeded",
                    work->quarantine_dir, drop.windows);
    }
    return drop.bytes;
}

static void keep_budget(const struct retention *retention, const struct agent_work *work,
                        struct agent_session **sessions, size_t count, uint64_t total)
{
    const uint64_t max = retention->spool_bytes_max;
    for (enum victim victim = 0; victim < VICTIM_COUNT; victim++) {
        int64_t after_ns = INT64_MIN;
        struct agent_session **slot;
        if (victim == VICTIM_REFUSED && total > max)
            total -= drop_copies(work, total - max);
        while (total > max && (slot = find_oldest(sessions, count, victim, after_ns)) != NULL) {
            after_ns = (*slot)->changed_wall_ns;
            uint64_t foreign_before = kept_foreign_bytes(*slot);
            uint64_t freed = delete_victim(work, sessions, count, slot, victim, total - max);
            freed += *slot ? kept_foreign_bytes(*slot) - foreign_before : 0;
            total = total > freed ? total - freed : 0;
        }
    }
}

static uint64_t spool_bytes(struct agent_session **sessions, size_t count)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += sessions[i] ? sessions[i]->bytes - kept_foreign_bytes(sessions[i]) : 0;
    return bytes;
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
        if (is_sent(sessions[i]) && !is_kept(sessions[i]) && is_old)
            delete_sent(work, sessions, count, i);
        else if (!sessions[i]->state.is_complete && retention->keep == AGENT_KEEP_UNACKNOWLEDGED)
            delete_segments(work, sessions[i], false, UINT64_MAX);
    }
    uint64_t copies = quarantine_bytes(work->quarantine_dir);
    if (retention->spool_bytes_max)
        keep_budget(retention, work, sessions, count, spool_bytes(sessions, count) + copies);
    atomic_store(&work->counters->quarantine_bytes, quarantine_bytes(work->quarantine_dir));
}
