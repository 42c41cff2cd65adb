/* SPDX-License-Identifier: Apache-2.0 */
/* Ends a session that its process did not end: a launcher knows which process it was and how it died. The end is
 * appended as a synthetic shutdown record; what the dead writer wrote is never changed. Single-threaded. */
#ifndef GPUFL_LOGFILE_RECOVERY_H
#define GPUFL_LOGFILE_RECOVERY_H

#include "logfile/short_name.h"

struct session_identity {
    int64_t pid; /* -1: unknown */
    char app[256];
    char session_id[40];
    char name[SHORT_NAME_SIZE]; /* "": a session of an older version, without a name */
    int64_t start_ns;           /* 0: unknown */
};
/* Reads the job_start record. GPUFL_E_NOT_FOUND: there is none; the process died before it was written. */
NODISCARD gpufl_status session_identity_read(const char *dir, struct session_identity *identity,
                                             struct problem *problem);

struct session_end {
    bool is_known; /* false: not our child, so its status is unknown */
    int exit_code; /* -1: killed by a signal */
    int signal;    /* 0: none */
};
/* Appends the record to every channel that lacks a shutdown record. *appended: the number of channels. A torn last line
 * is terminated with LF first, so that it remains visible as damage. GPUFL_E_BUSY: the writer is still running. */
NODISCARD gpufl_status session_append_shutdown(const char *dir, const struct session_end *end, unsigned *appended,
                                               struct problem *problem);

#endif
