/* SPDX-License-Identifier: Apache-2.0 */
/* The sessions that a traced run leaves in a directory: which are new, how each ended, and the line that says so.
 * Single-threaded. */
#ifndef GPUFL_CLI_RECORDING_H
#define GPUFL_CLI_RECORDING_H

#include "cli/child.h"
#include "logfile/reader.h"

#include <limits.h>

struct recording {
    const char *dir;            /* borrowed; as the user wrote it */
    struct session_list before; /* owned */
    struct session_list found;  /* owned; new ones */
    size_t own_count;           /* the first of them are the program's own, the others of processes that it started */
    char begun[PATH_MAX];       /* a new one that a living process has begun and put nothing into; "": none */
    bool is_dir_new;            /* removed again when nothing came into it */
};

/* Makes the directory (0700) and its parents. GPUFL_E_IO: it cannot be made or written; the problem says why. */
NODISCARD gpufl_status recording_prepare(struct recording *recording, const char *dir, struct problem *problem);
/* Finds what is new, and marks the end of sessions whose process died without doing it. */
void recording_collect(struct recording *recording, const struct child_result *child);
/* Does a process still write this session? */
bool recording_is_written(const char *path);
/* recording_summary.c: one line to stderr, whatever the number of sessions: their names, the directory, what was
 * recorded, and the command that shows it. */
void recording_print(const struct recording *recording);
void recording_free(struct recording *recording);

#endif
