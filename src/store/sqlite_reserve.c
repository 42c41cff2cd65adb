/* SPDX-License-Identifier: Apache-2.0 */
/* Disk space reserved for deletions. SQLite writes before it frees, so sessions could not be deleted on a full disk. A
 * file beside the database holds the reserve; a deletion that finds the disk full releases it, and nothing else is
 * written until the reserve is held again. */
#include "store/sqlite_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* The reserve is larger than the write-ahead log usually is, because a checkpoint can grow the database by the log's
 * contents before the log is truncated. A deletion itself writes about a thousandth of what it frees. */
enum {
    RESERVE_BYTES_MAX = 64 << 20,
    RESERVE_BYTES_MIN = 1 << 20,
    DISK_PART = 8, /* the reserve's share of a small disk */
    LOG_PAGES_MAX = 8000,
    PAGE_BYTES = 4096,
    VACUUM_ROUNDS_MAX = 256
};

void reserve_plan(struct sqlite_store *store)
{
    struct statvfs disk;
    uint64_t bytes = RESERVE_BYTES_MAX;
    if (!statvfs(store->path, &disk) && (uint64_t)disk.f_blocks * disk.f_frsize / DISK_PART < bytes)
        bytes = (uint64_t)disk.f_blocks * disk.f_frsize / DISK_PART;
    store->reserve_bytes = (off_t)(bytes > RESERVE_BYTES_MIN ? bytes : RESERVE_BYTES_MIN);
    uint64_t pages = (uint64_t)store->reserve_bytes / 2 / PAGE_BYTES;
    sqlite3_wal_autocheckpoint(store->writer.db, (int)(pages < LOG_PAGES_MAX ? pages : LOG_PAGES_MAX));
}

static int reserve_open(const struct sqlite_store *store)
{
    char path[sizeof store->path + 16];
    snprintf(path, sizeof path, "%s-reserve", store->path);
    return open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
}

void reserve_take(struct sqlite_store *store)
{
    struct rlimit limit;
    int fd = store->reserve == RESERVE_HELD ? -1 : reserve_open(store);
    if (fd < 0)
        return;
    /* A file size limit is not a full disk. */
    bool is_limited = getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur < (rlim_t)store->reserve_bytes;
    int error = is_limited ? EFBIG : posix_fallocate(fd, 0, store->reserve_bytes);
    bool is_full = error == ENOSPC || error == EDQUOT;
    if (error && ftruncate(fd, 0))
        is_full = true;
    store->reserve = !error ? RESERVE_HELD : is_full ? RESERVE_SPENT : RESERVE_NONE;
    close(fd);
}

/* True when a checkpoint of the write-ahead log fits into the reserve. */
static bool is_log_small(const struct sqlite_store *store)
{
    char path[sizeof store->path + 16];
    struct stat info;
    snprintf(path, sizeof path, "%s-wal", store->path);
    return stat(path, &info) == 0 && info.st_size <= store->reserve_bytes;
}

bool reserve_spend(struct sqlite_store *store)
{
    int fd = reserve_open(store);
    if (fd < 0)
        return false;
    off_t size = lseek(fd, 0, SEEK_END);
    bool is_spent = size > 0 && !ftruncate(fd, 0);
    close(fd);
    if (is_spent)
        store->reserve = RESERVE_SPENT;
    /* The write-ahead log can free the most space. If it is larger than the reserve, the deletion goes first. */
    if (is_spent && store->writer.db && is_log_small(store))
        connection_checkpoint(&store->writer);
    return is_spent;
}

void reserve_restore(struct sqlite_store *store)
{
    struct connection *writer = &store->writer;
    struct problem ignored;
    for (unsigned round = 0; store->reserve == RESERVE_SPENT && round < VACUUM_ROUNDS_MAX; round++) {
        int64_t free_pages = 0;
        connection_checkpoint(writer);
        reserve_take(store);
        if (store->reserve == RESERVE_HELD ||
            statement_integer(writer, &free_pages, NULL, &ignored, "PRAGMA freelist_count", "") || free_pages <= 0 ||
            statement_run(writer, &ignored, "PRAGMA incremental_vacuum(1024)", ""))
            return;
    }
}
