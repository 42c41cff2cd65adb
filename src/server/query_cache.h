/* SPDX-License-Identifier: Apache-2.0 */
/* Loaded sessions, kept within a limit of bytes; requests for the same session share one load. A session that is still
 * growing is loaded anew at most once in a while: what it answers with may be some seconds old, and its revision says
 * which state it is. Any thread. */
#ifndef GPUFL_SERVER_QUERY_CACHE_H
#define GPUFL_SERVER_QUERY_CACHE_H

#include "analysis/analysis.h"
#include "analysis/tracks.h"
#include "server/query.h"

struct query_session {
    /* Read only between hold and release. */
    char id[STORE_SESSION_ID_MAX + 1];
    int64_t revision, created_ns; /* of the catalog; a session that was deleted and sent again was created anew */
    bool is_light;                /* only single records: no kernels, copies, samples */
    int64_t kernels;              /* also when light */
    struct session_model *model;
    struct analysis analysis;
    /* The cache's own. */
    struct query_session *next;
    struct track_set tracks;
    bool has_tracks; /* query_cache_tracks */
    uint64_t bytes, used_at;
    int64_t loaded_ns, load_ns; /* monotonic */
    unsigned holders;
    enum { QUERY_LOADING, QUERY_READY, QUERY_FAILED } state;
    gpufl_status status;
    struct problem problem;
};

NODISCARD gpufl_status query_cache_open(struct query_cache **out, uint64_t bytes_max);
void query_cache_close(struct query_cache *cache);
void query_cache_metrics(struct query_cache *cache, struct query_metrics *metrics);

/* Loads when needed. GPUFL_E_NOT_FOUND: no such session; GPUFL_E_LIMIT: it does not fit into the cache. */
NODISCARD gpufl_status query_cache_hold(struct query_cache *cache, struct store *store, const char *session_id,
                                        bool is_light, struct query_session **out, struct problem *problem);
/* Only one that is loaded already; NULL. revision and created_ns: as the catalog has them. */
struct query_session *query_cache_peek(struct query_cache *cache, const char *session_id, int64_t revision,
                                       int64_t created_ns);
/* The tracks of a whole session that is held, made when they are first asked for; NULL: no memory. */
const struct track_set *query_cache_tracks(struct query_cache *cache, struct query_session *session);
/* The same, only if they are made already; NULL. */
const struct track_set *query_cache_tracks_peek(struct query_cache *cache, const struct query_session *session);
void query_cache_release(struct query_cache *cache, struct query_session *session);

/* A model of some record types or of a stretch of time, which the caller frees. kernels_expected: 0 unknown. */
NODISCARD gpufl_status query_load(struct store *store, const struct store_range *range, int64_t kernels_expected,
                                  struct session_model **out, struct problem *problem);

#endif
