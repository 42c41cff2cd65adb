/* SPDX-License-Identifier: Apache-2.0 */
/* What the server has of a session, and which window is pending: one small file per session in the agent's state
 * directory, replaced atomically and synced. A window's limits are saved before its first byte is sent, so that after
 * any crash the same bytes are sent under the same id. Single-threaded. */
#ifndef GPUFL_AGENT_SESSION_STATE_H
#define GPUFL_AGENT_SESSION_STATE_H

#include "base/status.h"
#include "format/catalogue.h"
#include "upload/body_coder.h"

struct pending_window {
    bool is_set;
    bool is_published;    /* a GPUFlight window, by its number; otherwise lines */
    uint64_t first, last; /* line numbers, inclusive; or the window's number twice */
    enum body_coding coding;
    uint32_t crc32;
};

struct channel_state {
    uint64_t next_line;   /* the first line that the server does not have; lines count from 1 */
    uint64_t next_window; /* the same for published windows */
    bool has_shutdown;    /* the server has the program's end */
    struct pending_window pending;
};

struct session_state {
    char session_id[65];
    bool is_complete;       /* the server was notified that the session is complete */
    bool is_acknowledged;   /* everything so far is acknowledged as durable */
    uint64_t refused_lines; /* sent, but rejected by the server: they exist only on this disk */
    struct channel_state channels[CHANNEL_COUNT];
};

struct state_dir {
    int fd, lock_fd;    /* owned */
    const char *server; /* borrowed; the states of other servers are ignored */
    char path[512];
};

/* Creates the directory if missing. GPUFL_E_BUSY: another agent uses it. */
NODISCARD gpufl_status state_dir_open(struct state_dir *dir, const char *path, const char *server,
                                      struct problem *problem);
void state_dir_close(struct state_dir *dir);

void session_state_init(struct session_state *state, const char *session_id);
/* GPUFL_E_NOT_FOUND: there is no state for this server, and *state is a new one; GPUFL_E_DAMAGED: the file cannot be
 * read, and *state is a new one. */
gpufl_status session_state_load(const struct state_dir *dir, const char *session_id, struct session_state *state,
                                struct problem *problem);
NODISCARD gpufl_status session_state_save(const struct state_dir *dir, const struct session_state *state,
                                          struct problem *problem);
void session_state_remove(const struct state_dir *dir, const char *session_id);
/* Removes states that were written more than age_s ago and for which is_known returns false: those of sessions that are
 * long gone. */
void session_state_prune(const struct state_dir *dir, int64_t age_s,
                         bool (*is_known)(void *user, const char *session_id), void *user);

#endif
