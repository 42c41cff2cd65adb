/* SPDX-License-Identifier: Apache-2.0 */
/* The sessions in a directory, newest first, with their short names. Single-threaded. */
#ifndef GPUFL_LOGFILE_SESSION_SCAN_H
#define GPUFL_LOGFILE_SESSION_SCAN_H

#include "logfile/reader.h"
#include "logfile/short_name.h"

struct session_place {
    char path[SESSION_PATH_SIZE]; /* starts with the directory as the caller wrote it */
    char name[SHORT_NAME_SIZE];   /* short_name.h; "" before session_scan_name, and if the session cannot be read */
    int64_t start_ns;             /* Unix time */
    unsigned group;               /* equal for the sessions of one directory */
};

struct session_scan {
    struct session_place *items; /* owned */
    size_t count, capacity;
    unsigned group_count;
};

/* dir: a session, a directory of sessions, or a directory whose subdirectories are either. "." finds what `gpufl trace`
 * wrote here without -o. GPUFL_OK with count 0: no session. GPUFL_E_NOT_FOUND: there is no such directory. */
NODISCARD gpufl_status session_scan_find(struct session_scan *scan, const char *dir, struct problem *problem);
/* Finds what was recorded here: below the working directory, and in GPUFL_LOG_DIR. */
NODISCARD gpufl_status session_scan_find_here(struct session_scan *scan, struct problem *problem);
/* Fills in the names. A session without a recorded name (of gpufl 1.0) gets the number after that of the previous
 * session in its directory; a session in a directory that is not named by an id gets the directory's name. */
void session_scan_name(struct session_scan *scan);
void session_scan_free(struct session_scan *scan);

#endif
