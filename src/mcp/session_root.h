/* SPDX-License-Identifier: Apache-2.0 */
/* The directory whose sessions may be read, and the names by which a client may request them. A client's text is never
 * opened as a path: it is compared with the sessions found below the directory, which exclude those behind symbolic
 * links. Single-threaded. */
#ifndef GPUFL_MCP_SESSION_ROOT_H
#define GPUFL_MCP_SESSION_ROOT_H

#include "logfile/session_select.h"

#include <limits.h>

struct session_root {
    char path[PATH_MAX]; /* absolute, without symbolic links */
};

NODISCARD gpufl_status session_root_open(struct session_root *root, const char *path, struct problem *problem);
/* Newest first, with names; the caller frees. GPUFL_OK even if there is none. */
NODISCARD gpufl_status session_root_list(const struct session_root *root, struct session_scan *found,
                                         struct problem *problem);
/* The client's word for a session: its name if that is unique, else its directory relative to the root. */
void session_root_label(const struct session_root *root, const struct session_scan *found,
                        const struct session_place *place, char out[SESSION_PATH_SIZE]);

/* word: as in session_select.h, among the sessions that were found; or a directory, which must be one of theirs. NULL:
 * the newest. GPUFL_E_NOT_FOUND; GPUFL_E_INVALID: ambiguous; GPUFL_E_PERMISSION: outside the root. */
NODISCARD gpufl_status session_root_choose(const struct session_root *root, struct session_scan *found,
                                           const char *word, struct session_choice *choice, struct problem *problem);

#endif
