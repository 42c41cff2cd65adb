/* SPDX-License-Identifier: Apache-2.0 */
/* The file names in a session directory: the kind of each file, and the order in which a channel's files were written.
 * Supports our layout, GPUFlight's and its older flat layout (reader.h). Symbolic links below the directory are never
 * followed. */
#ifndef GPUFL_LOGFILE_SESSION_DIR_H
#define GPUFL_LOGFILE_SESSION_DIR_H

#include "base/status.h"
#include "format/catalogue.h"

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define SESSION_LOCK_NAME ".gpufl-session.lock"
#define SESSION_ID_SIZE 36
#define SESSION_NAME_MAX 300 /* ".tmp/" and a file name */

enum session_file_kind {
    SESSION_FILE_LIVE,       /* <channel>.log */
    SESSION_FILE_ROTATED,    /* <channel>.NNNNNN.log */
    SESSION_FILE_SEALED,     /* <channel>.NNNNNN.log.zst */
    SESSION_FILE_WINDOW,     /* <channel>.<N>.log.gz */
    SESSION_FILE_RETIRED,    /* .tmp/<channel>.<N>.log */
    SESSION_FILE_ACTIVE,     /* .tmp/<channel>.log */
    SESSION_FILE_FLAT,       /* <app>.<channel>.log[.<N>] */
    SESSION_FILE_SIDECAR,    /* .gpufl-window.<channel>.<N>.json */
    SESSION_FILE_LOSS_MARKER /* .gpufl-transport-loss.<channel>.<N>.json */
};

struct session_file {
    char name[SESSION_NAME_MAX]; /* relative to the session directory */
    enum session_file_kind kind;
    enum channel channel;
    uint64_t index;  /* 0: none */
    size_t app_size; /* flat layout: the app's part of the name */
};

struct session_files {
    int dir_fd;                 /* owned */
    struct session_file *items; /* owned; by channel, oldest first; sidecars and loss markers at the end */
    size_t count, capacity;
    size_t log_count; /* items before the sidecars */
};

/* Lists the directory. GPUFL_E_NOT_FOUND: there is no such directory, or it contains no session. */
NODISCARD gpufl_status session_files_list(struct session_files *files, const char *path, struct problem *problem);
void session_files_free(struct session_files *files);
/* session_list.c: the same for a directory that is a session, or for the newest session in it. */
NODISCARD gpufl_status session_files_find(struct session_files *files, const char *path, struct problem *problem);

/* session_id.c: a new UUID (version 7: sorts by time), 36 characters and NUL. */
void session_id_make(char out[SESSION_ID_SIZE + 1]);
bool session_id_is_valid(const char *text);
/* session_list.c: when the session in this directory of sessions began; false: it is not a directory. */
bool session_start_read(int base_fd, const char *id, struct timespec *started);
/* Whether gpufl or GPUFlight uses this name for a log file in a session directory. */
bool session_file_is_log(const char *name);
/* <channel>.log, <channel>.NNNNNN.log, and with a suffix */
void session_name_live(char *out, size_t size, enum channel channel);
void session_name_rotated(char *out, size_t size, enum channel channel, uint64_t index, const char *suffix);

/* seal_session.c: renames the live file to the next number of its channel and updates *live, except its name. */
NODISCARD gpufl_status session_live_retire(const struct session_files *files, struct session_file *live,
                                           struct problem *problem);

/* Opens a regular file for reading, never through a symbolic link; -1 with errno (ELOOP: symbolic link, EINVAL: not a regular file). */
int session_file_open(int dir_fd, const char *name);
/* Describes an errno of session_file_open. */
const char *session_file_error(int error);

/* Takes the writer's lock (fd: of the lock file); false with errno: another process holds it. */
bool session_lock_take(int lock_fd);
/* Opens the lock file, creating it if missing, and takes the writer's lock, so that only one process appends; close the
 * descriptor to release it. -1 with errno; EAGAIN: another process holds it. */
int session_lock_open(int dir_fd);
enum session_lock_state {
    SESSION_LOCK_FREE, /* or there is no lock file */
    SESSION_LOCK_HELD,
    SESSION_LOCK_UNKNOWN /* this file system does not support locks: the writer may be running */
};
enum session_lock_state session_lock_look(int dir_fd);
/* Whether the lock of this session directory is known to be held by a running writer. */
bool session_lock_is_held(int dir_fd);

#endif
