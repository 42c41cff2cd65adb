/* SPDX-License-Identifier: Apache-2.0 */
/* The query part of the HTTP interface: reads the store, runs src/analysis, answers in JSON. It changes only tags,
 * retention and configurations.
 *
 * The user pointer of its routes is a struct whose first member is a struct query (or a struct query), opened before
 * the HTTP server starts and closed after it stopped. Handlers run on the HTTP server's worker threads. */
#ifndef GPUFL_SERVER_QUERY_H
#define GPUFL_SERVER_QUERY_H

#include "server/api_route.h"
#include "server/live.h"
#include "store/store.h"

struct query_cache;

struct query {
    struct store *store; /* borrowed, like the next two */
    struct live *live;   /* NULL: /api/v1/live answers 503 */
    /* Further tables whose routes /api/v1/openapi.json describes. */
    const struct api_table *other_tables;
    size_t other_table_count;
    /* Name of the caller for the store's audit log; NULL: "local". */
    const char *(*actor)(const struct http_exchange *exchange);
    struct query_cache *cache;         /* owned */
    int64_t exact_kernels, quick_rows; /* of the options */
};

struct query_options {
    uint64_t
        cache_bytes; /* memory of loaded sessions; 0: 1 GiB. A session that is larger is answered from rollups only */
    int64_t exact_kernels; /* sessions with more kernels are answered from rollups until they are loaded; 0: 2 M */
    int64_t quick_rows;    /* the timeline of sessions with more rows does not wait until they are loaded; 0: 50,000 */
};

NODISCARD gpufl_status query_open(struct query *query, struct store *store, const struct query_options *options,
                                  struct problem *problem);
void query_close(struct query *query); /* a zeroed struct is a no-op */
struct api_table query_table(void);

struct query_metrics {
    uint64_t sessions, bytes;            /* loaded now */
    uint64_t hits, loads, evicted, busy; /* since the start; busy: waited for another request's load */
};
void query_metrics_read(const struct query *query, struct query_metrics *metrics);

#endif
