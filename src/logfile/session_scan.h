/* SPDX-License-Identifier: Apache-2.0 */
/* The sessions in a directory, newest first, with the names that people call them by. Single-threaded. */
#ifndef GPUFL_LOGFILE_SESSION_SCAN_H
#define GPUFL_LOGFILE_SESSION_SCAN_H

#include "logfile/reader.h"
#include "logfile/short_name.h"

struct session_place {
    char path[SESSION_PATH_SIZE]; /* below the directory that was asked for, as it was written */
    char name[SHORT_NAME_SIZE];   /* short_name.h; "" before session_scan_name, and where the session cannot be read */
    int64_t start_ns;             /* since 1970 */
    unsigned group;               /* equal for the sessions of one directory */
};

struct session_scan {
    struct session_place *items; /* owned */
    size_t count, capacity;
    unsigned group_count;
};

/* dir: a session; or a directory of sessions; or one whose subdirectories are either. "." finds what `gpufl trace` wrote
 * here without -o. GPUFL_OK with count 0: nothing is there. GPUFL_E_NOT_FOUND: there is no such directory. */
NODISCARD gpufl_status session_scan_find(struct session_scan *scan, const char *dir, struct problem *problem);
/* What was recorded here: below the working directory, and in GPUFL_LOG_DIR. */
NODISCARD gpufl_status session_scan_find_here(struct session_scan *scan, struct problem *problem);
/* Fills the names. A session that has none written into it (of gpufl 1.0) is numbered on from the session that began before it in
 * its directory; one in a directory that is not called by an id has that directory's name. */
void session_scan_name(struct session_scan *scan);
void session_scan_free(struct session_scan *scan);

#endif
