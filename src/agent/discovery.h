/* SPDX-License-Identifier: Apache-2.0 */
/* Finds session directories below the roots and watches them with inotify; without inotify the caller polls. Symbolic
 * links below a root are not followed. Single-threaded. */
#ifndef GPUFL_AGENT_DISCOVERY_H
#define GPUFL_AGENT_DISCOVERY_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum { DISCOVERY_DEPTH_MAX = 6 };

struct discovery {
    int fd; /* owned; -1: no inotify */
    /* owned; by watch: the session's slot, OWNER_ROOTS for a directory above sessions, or OWNER_NONE */
    int32_t *owners;
    size_t owner_count;
    bool is_changed;    /* a directory above sessions changed */
    bool is_incomplete; /* the last scan could not read every directory; the caller reports it */
};

void discovery_open(struct discovery *discovery);
void discovery_close(struct discovery *discovery);

/* Whether the root can be searched now; the problem says why not. */
NODISCARD gpufl_status discovery_check_root(const char *root, struct problem *problem);
/* Calls on_session for every session directory below the root, or for the root itself. */
void discovery_scan(struct discovery *discovery, const char *root, void (*on_session)(void *user, const char *dir),
                    void *user);
/* Reports changes in the directory under `slot` from now on; false: it cannot be watched. */
bool discovery_watch(struct discovery *discovery, const char *dir, int32_t slot);
/* Reads pending events; calls on_change for each affected session (slot -1: any session). */
void discovery_listen(struct discovery *discovery, void (*on_change)(void *user, int32_t slot), void *user);

#endif
