/* SPDX-License-Identifier: Apache-2.0 */
/* What a launcher knows about a session whose process did not end it: who the
 * process was, and how it died. The end is appended as a synthetic shutdown
 * record; nothing that the dead writer wrote is ever changed. Single-threaded. */
#ifndef GPUFL_LOGFILE_RECOVERY_H
#define GPUFL_LOGFILE_RECOVERY_H

#include "logfile/short_name.h"

struct session_identity {
    int64_t pid; /* -1 unknown */
    char app[256];
    char session_id[40];
    char name[SHORT_NAME_SIZE]; /* "": an old session, which has none */
    int64_t start_ns;           /* 0 unknown */
};
/* From the job_start record. GPUFL_E_NOT_FOUND: there is none, the process died before it was written. */
NODISCARD gpufl_status session_identity_read(const char *dir, struct session_identity *identity,
                                             struct problem *problem);

struct session_end {
    bool is_known; /* false: somebody else's child, its status went to its parent */
    int exit_code; /* -1 when a signal ended it */
    int signal;    /* 0: none */
};
/* Appends the record to every channel that lacks a shutdown record. *appended: to how many. A torn last line is first
 * closed with LF, so that it stays visible as damage. GPUFL_E_BUSY: the writer still lives. */
NODISCARD gpufl_status session_append_shutdown(const char *dir, const struct session_end *end, unsigned *appended,
                                               struct problem *problem);

#endif
