/* SPDX-License-Identifier: Apache-2.0 */
/* A query in progress: the arguments of every endpoint, and functions for answering. Endpoints write one JSON object to
 * out, or answer with query_fail or http_respond_... themselves. Runs on the request's worker thread. */
#ifndef GPUFL_SERVER_QUERY_CALL_H
#define GPUFL_SERVER_QUERY_CALL_H

#include "analysis/report_json.h"
#include "http/http_exchange.h"
#include "server/query_cache.h"
#include "store/store_catalog.h"
#include "store/store_rollup.h"

#define QUERY_COLUMNS_TYPE "application/vnd.gpufl.columns"

struct query_call {
    struct query *query;
    struct http_exchange *exchange;
    struct bytes out;
    const struct query_session *session; /* whole; for routes that need one */
    struct query_session *held[2];       /* released by the dispatcher */
    unsigned held_count;
};
typedef void query_endpoint(struct query_call *call);

/* Answers with an error; returns false. */
bool query_fail(struct query_call *call, int status, const char *code, const char *format, ...) PRINTF_LIKE(4, 5);
/* The same for a failure of the store or the analysis; what: "session", "configuration", ... */
bool query_fail_status(struct query_call *call, gpufl_status status, const char *what, const struct problem *problem);

/* Parameters. False: already answered with 400. */
bool query_int(struct query_call *call, const char *name, int64_t min, int64_t max, int64_t *value);
const char *query_text(const struct query_call *call, const char *name); /* NULL: absent or empty */
/* Parses one of the words (NULL-terminated) and sets *choice to its index; if absent, *choice is unchanged. */
bool query_choice(struct query_call *call, const char *name, const char *const *words, int *choice);
/* Parses from_ns and to_ns; absent ones are unchanged. An empty range is rejected. */
bool query_range(struct query_call *call, int64_t *from_ns, int64_t *to_ns);

/* A page of a list that is completely in memory: limit and cursor of the query. */
struct query_page {
    size_t first, limit;
};
bool query_page(struct query_call *call, size_t limit_default, size_t limit_max, struct query_page *page);
/* Writes "total" and "next_cursor" (null at the end). */
void query_page_end(struct query_call *call, const struct query_page *page, size_t total);

/* Loads a session of the store; NULL: already answered with an error. At most two per call. is_light: query_cache.h. */
struct query_session *query_hold(struct query_call *call, const char *session_id, bool is_light);
/* The session's whole model. If it has too many kernels to load without exact=true: NULL and *is_too_large, and the
 * caller answers from rollups. NULL without *is_too_large: already answered with an error. */
struct query_session *query_whole(struct query_call *call, bool *is_too_large);
/* The session's tracks, and the session itself; NULL as for query_whole. is_prompt: if the session has more than
 * quick_rows rows, only if they are loaded already. */
const struct track_set *query_whole_tracks(struct query_call *call, bool is_prompt,
                                           const struct query_session **session, bool *is_too_large);
/* The tracks of a whole session; NULL: already answered with an error. */
const struct track_set *query_tracks_of(struct query_call *call, struct query_session *session);
/* Sets the ETag of an answer that depends only on the loaded session. True: the client has the answer already, and 304
 * has been sent. */
bool query_is_known(struct query_call *call, const struct query_session *session);
/* Adds an entry to the audit log. */
void query_audit(struct query_call *call, const char *action, const char *subject, const char *detail);

/* Endpoints, one file per group. */
query_endpoint query_hosts, query_host_metrics, query_search_kernels;                          /* query_hosts.c */
query_endpoint query_sessions, query_session_get, query_session_patch, query_session_remove;   /* query_sessions.c */
query_endpoint query_kernels;                                                                  /* query_kernels.c */
query_endpoint query_launches;                                                                 /* query_launches.c */
query_endpoint query_instances, query_histogram, query_durations, query_occupancy;             /* query_kernel.c */
query_endpoint query_scopes, query_steps, query_copies, query_syncs, query_graphs;             /* query_parts.c */
query_endpoint query_activity;                                                                 /* query_activity.c */
query_endpoint query_allocations;                                                              /* query_memory.c */
query_endpoint query_stalls, query_ranges, query_pm, query_insights, query_losses, query_time; /* query_parts.c */
query_endpoint query_code, query_code_function, query_ptx, query_source;                       /* query_code.c */
query_endpoint query_tracks, query_timeline;                                                   /* query_timeline.c */
query_endpoint query_timeline_event, query_timeline_marks;                                     /* query_event.c */
query_endpoint query_timeline_range;                                                           /* query_range.c */
query_endpoint query_metrics_steps;                                                            /* query_metrics.c */
query_endpoint query_compare, query_live, query_openapi;                                       /* query_routes.c */
query_endpoint query_configs, query_config_get, query_config_put, query_config_remove;         /* query_configs.c */

#endif
