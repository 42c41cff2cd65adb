/* SPDX-License-Identifier: Apache-2.0 */
/* A cache of loaded sessions with a limit in bytes; requests for the same session share one load. A session that is
 * still growing is reloaded only occasionally: its answers may be some seconds old, and its revision identifies the
 * state. Thread-safe. */
#ifndef GPUFL_SERVER_QUERY_CACHE_H
#define GPUFL_SERVER_QUERY_CACHE_H

#include "analysis/analysis.h"
#include "analysis/tracks.h"
#include "server/query.h"

struct query_session {
    /* Valid between hold and release. */
    char id[STORE_SESSION_ID_MAX + 1];
    int64_t revision, created_ns; /* from the catalog; created_ns changes when a deleted session is sent again */
    bool is_light;                /* only single records: no kernels, copies, samples */
    int64_t kernels;              /* also set when light */
    struct session_model *model;
    struct analysis analysis;
    /* Private to the cache. */
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

/* Loads the session if needed. GPUFL_E_NOT_FOUND: no such session; GPUFL_E_LIMIT: it does not fit into the cache. */
NODISCARD gpufl_status query_cache_hold(struct query_cache *cache, struct store *store, const char *session_id,
                                        bool is_light, struct query_session **out, struct problem *problem);
/* Returns the session only if it is loaded; else NULL. revision and created_ns: from the catalog. */
struct query_session *query_cache_peek(struct query_cache *cache, const char *session_id, int64_t revision,
                                       int64_t created_ns);
/* The tracks of a whole session that is held, made on first use; NULL: no memory. */
const struct track_set *query_cache_tracks(struct query_cache *cache, struct query_session *session);
/* The same, but only if they exist; else NULL. */
const struct track_set *query_cache_tracks_peek(struct query_cache *cache, const struct query_session *session);
void query_cache_release(struct query_cache *cache, struct query_session *session);

/* Loads a model of some record types or of a time span; the caller frees it. kernels_expected: 0 unknown. */
NODISCARD gpufl_status query_load(struct store *store, const struct store_range *range, int64_t kernels_expected,
                                  struct session_model **out, struct problem *problem);

#endif
