/* SPDX-License-Identifier: Apache-2.0 */
/* Finds session directories below the roots, and hears of changes in them by inotify; where that is not to be had, the
 * caller looks from time to time. Symbolic links below a root are not followed. One thread. */
#ifndef GPUFL_AGENT_DISCOVERY_H
#define GPUFL_AGENT_DISCOVERY_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum { DISCOVERY_DEPTH_MAX = 6 };

struct discovery {
    int fd;          /* owned; -1: no inotify */
    int32_t *owners; /* owned; by watch: the session's slot, OWNER_ROOTS for a directory above sessions, OWNER_NONE */
    size_t owner_count;
    bool is_changed;    /* directories above sessions */
    bool is_incomplete; /* a scan could not look everywhere, and whoever scans says so */
};

void discovery_open(struct discovery *discovery);
void discovery_close(struct discovery *discovery);

/* Whether the root can be searched now; the problem says why not. */
NODISCARD gpufl_status discovery_check_root(const char *root, struct problem *problem);
/* Calls on_session for every session directory below the root, or for the root itself. */
void discovery_scan(struct discovery *discovery, const char *root, void (*on_session)(void *user, const char *dir),
                    void *user);
/* Changes in the directory are told under `slot` from now on; false: they cannot be. */
bool discovery_watch(struct discovery *discovery, const char *dir, int32_t slot);
/* Takes in what happened; on_change for each session concerned (slot -1: any of them). */
void discovery_listen(struct discovery *discovery, void (*on_change)(void *user, int32_t slot), void *user);

#endif
