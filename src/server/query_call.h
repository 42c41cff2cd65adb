/* SPDX-License-Identifier: Apache-2.0 */
/* One question on its way: what every endpoint gets and how it answers. Endpoints write one JSON object to out, or
 * answer with query_fail or http_respond_... themselves. Worker thread of the request. */
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
    const struct query_session *session; /* whole; of routes that need one */
    struct query_session *held[2];       /* released by the dispatcher */
    unsigned held_count;
};
typedef void query_endpoint(struct query_call *call);

/* Answers with an error; returns false. */
bool query_fail(struct query_call *call, int status, const char *code, const char *format, ...) PRINTF_LIKE(4, 5);
/* The same for what the store or the analysis said; what: "session", "configuration", ... */
bool query_fail_status(struct query_call *call, gpufl_status status, const char *what, const struct problem *problem);

/* Parameters. False: answered with 400. */
bool query_int(struct query_call *call, const char *name, int64_t min, int64_t max, int64_t *value);
const char *query_text(const struct query_call *call, const char *name); /* NULL: absent or empty */
/* One of the words (NULL-terminated): its index in *choice; absent: *choice stays. */
bool query_choice(struct query_call *call, const char *name, const char *const *words, int *choice);
/* from_ns and to_ns of the query; absent: what they hold. An empty stretch is refused. */
bool query_range(struct query_call *call, int64_t *from_ns, int64_t *to_ns);

/* A page of a list that is held whole: limit and cursor of the query. */
struct query_page {
    size_t first, limit;
};
bool query_page(struct query_call *call, size_t limit_default, size_t limit_max, struct query_page *page);
/* "total" and "next_cursor" (null at the end). */
void query_page_end(struct query_call *call, const struct query_page *page, size_t total);

/* A session of the store, loaded; NULL: answered with an error. At most two a call. is_light: query_cache.h. */
struct query_session *query_hold(struct query_call *call, const char *session_id, bool is_light);
/* The session's whole model unless it has too many kernels to load unasked (parameter exact=true asks): then NULL and
 * *is_too_large, and the caller answers from rollups. NULL without it: answered with an error. */
struct query_session *query_whole(struct query_call *call, bool *is_too_large);
/* The session's tracks, and the session itself; NULL as query_whole. is_prompt: of one with more than quick_rows rows
 * only if they are there already. */
const struct track_set *query_whole_tracks(struct query_call *call, bool is_prompt,
                                           const struct query_session **session, bool *is_too_large);
/* The tracks of a whole session; NULL: answered with an error. */
const struct track_set *query_tracks_of(struct query_call *call, struct query_session *session);
/* Sets the ETag of an answer that follows from the loaded session alone; true: the client has it, and is told so. */
bool query_is_known(struct query_call *call, const struct query_session *session);
/* An entry of the audit log. */
void query_audit(struct query_call *call, const char *action, const char *subject, const char *detail);

/* Endpoints, one file per group. */
query_endpoint query_hosts, query_host_metrics, query_search_kernels;                          /* query_hosts.c */
query_endpoint query_sessions, query_session_get, query_session_patch, query_session_remove;   /* query_sessions.c */
query_endpoint query_kernels;                                                                  /* query_kernels.c */
query_endpoint query_launches;                                                                 /* query_launches.c */
query_endpoint query_instances, query_histogram, query_durations, query_occupancy;             /* query_kernel.c */
query_endpoint query_scopes, query_copies, query_syncs, query_graphs;                          /* query_parts.c */
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
