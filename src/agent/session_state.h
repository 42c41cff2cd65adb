/* SPDX-License-Identifier: Apache-2.0 */
/* What the server has of a session, and which window is on its way: one small file per session in the agent's state
 * directory, replaced as a whole and forced to the disk. A window's borders are here before its first byte leaves, so
 * that after any crash the same bytes are sent under the same name. One thread. */
#ifndef GPUFL_AGENT_SESSION_STATE_H
#define GPUFL_AGENT_SESSION_STATE_H

#include "base/status.h"
#include "format/catalogue.h"
#include "upload/body_coder.h"

struct pending_window {
    bool is_set;
    bool is_published;    /* a window of GPUFlight's own, by its number; else lines */
    uint64_t first, last; /* lines, both included; or the window's number twice */
    enum body_coding coding;
    uint32_t crc32;
};

struct channel_state {
    uint64_t next_line;   /* the first that the server does not have; lines count from 1 */
    uint64_t next_window; /* the same for published windows */
    bool has_shutdown;    /* the program's end is with the server */
    struct pending_window pending;
};

struct session_state {
    char session_id[65];
    bool is_complete;       /* the server was told that no more comes */
    bool is_acknowledged;   /* everything so far was acknowledged as durable */
    uint64_t refused_lines; /* that the server was sent and did not keep: only this disk has them */
    struct channel_state channels[CHANNEL_COUNT];
};

struct state_dir {
    int fd, lock_fd;    /* owned */
    const char *server; /* borrowed; states of another server do not count */
    char path[512];
};

/* Made when missing. GPUFL_E_BUSY: another agent has it. */
NODISCARD gpufl_status state_dir_open(struct state_dir *dir, const char *path, const char *server,
                                      struct problem *problem);
void state_dir_close(struct state_dir *dir);

void session_state_init(struct session_state *state, const char *session_id);
/* GPUFL_E_NOT_FOUND: there is none for this server, the state is a new one; GPUFL_E_DAMAGED: so it is because the file
 * cannot be read. */
gpufl_status session_state_load(const struct state_dir *dir, const char *session_id, struct session_state *state,
                                struct problem *problem);
NODISCARD gpufl_status session_state_save(const struct state_dir *dir, const struct session_state *state,
                                          struct problem *problem);
void session_state_remove(const struct state_dir *dir, const char *session_id);
/* Removes what was written more than age_s ago and is_known does not know: of sessions that are long gone. */
void session_state_prune(const struct state_dir *dir, int64_t age_s,
                         bool (*is_known)(void *user, const char *session_id), void *user);

#endif
