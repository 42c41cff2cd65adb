/* SPDX-License-Identifier: Apache-2.0 */
/* The one directory whose sessions may be read, and the names by which a client may ask for them. A client's text is
 * never opened as a path: it is compared with the sessions that were found below the directory. Sessions behind symbolic
 * links are not among them. One thread. */
#ifndef GPUFL_MCP_SESSION_ROOT_H
#define GPUFL_MCP_SESSION_ROOT_H

#include "logfile/session_select.h"

#include <limits.h>

struct session_root {
    char path[PATH_MAX]; /* absolute, without symbolic links */
};

NODISCARD gpufl_status session_root_open(struct session_root *root, const char *path, struct problem *problem);
/* Newest first, with names; the caller frees. GPUFL_OK also where there is none. */
NODISCARD gpufl_status session_root_list(const struct session_root *root, struct session_scan *found,
                                         struct problem *problem);
/* How clients call a session: by its name where only one has it, else by its directory relative to the root. */
void session_root_label(const struct session_root *root, const struct session_scan *found,
                        const struct session_place *place, char out[SESSION_PATH_SIZE]);

/* word: as session_select.h has it, among the sessions that were found; or a directory, which must be one of theirs. NULL
 * is the newest. GPUFL_E_NOT_FOUND; GPUFL_E_INVALID: several fit; GPUFL_E_PERMISSION: outside the root. */
NODISCARD gpufl_status session_root_choose(const struct session_root *root, struct session_scan *found,
                                           const char *word, struct session_choice *choice, struct problem *problem);

#endif
