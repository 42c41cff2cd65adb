/* SPDX-License-Identifier: Apache-2.0 */
/* The most recently requested sessions, loaded and analysed. A session that changed on disk is loaded again.
 * Single-threaded. */
#ifndef GPUFL_MCP_OPEN_SESSIONS_H
#define GPUFL_MCP_OPEN_SESSIONS_H

#include "analysis/analysis.h"
#include "analysis/tracks.h"

enum { OPEN_SESSIONS_MAX = 2 };

struct open_session {
    char path[SESSION_PATH_SIZE]; /* "": the place is free */
    uint64_t fingerprint;         /* of the files' names, sizes and times */
    uint64_t used_at;
    struct session_model *model;
    struct analysis analysis;
    struct track_set tracks;
    bool has_tracks;
};

struct open_sessions {
    struct open_session items[OPEN_SESSIONS_MAX];
    uint64_t uses;
};

void open_sessions_free(struct open_sessions *sessions);
/* Valid until two other sessions are requested. */
NODISCARD gpufl_status open_sessions_get(struct open_sessions *sessions, const char *path, struct open_session **out,
                                         struct problem *problem);
/* NULL: out of memory. */
const struct track_set *open_session_tracks(struct open_session *session);

#endif
