/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the HTTP interface that answers questions: store in, src/analysis over it, JSON out. It writes nothing
 * but tags, retention and configurations.
 *
 * The user pointer of its routes is a struct whose first member is a struct query (struct query itself will do), opened
 * before the HTTP server starts and closed after it stopped. Handlers run on the HTTP server's worker threads. */
#ifndef GPUFL_SERVER_QUERY_H
#define GPUFL_SERVER_QUERY_H

#include "server/api_route.h"
#include "server/live.h"
#include "store/store.h"

struct query_cache;

struct query {
    struct store *store; /* borrowed, as the next two */
    struct live *live;   /* NULL: /api/v1/live answers 503 */
    /* Tables beside query_table() whose routes /api/v1/openapi.json describes. */
    const struct api_table *other_tables;
    size_t other_table_count;
    /* What changed by whose hand goes to the store's audit log; NULL: "local". */
    const char *(*actor)(const struct http_exchange *exchange);
    struct query_cache *cache;         /* owned */
    int64_t exact_kernels, quick_rows; /* of the options */
};

struct query_options {
    uint64_t cache_bytes;  /* memory of sessions kept loaded; 0: 1 GiB. One that is larger alone is answered from
                                 rollups only */
    int64_t exact_kernels; /* sessions with more kernels are answered from rollups until they are loaded; 0: 2 M */
    int64_t quick_rows;    /* the timeline of sessions with more rows does not wait for their loading; 0: 50,000 */
};

NODISCARD gpufl_status query_open(struct query *query, struct store *store, const struct query_options *options,
                                  struct problem *problem);
void query_close(struct query *query); /* zeroed is a no-op */
struct api_table query_table(void);

struct query_metrics {
    uint64_t sessions, bytes;            /* loaded now */
    uint64_t hits, loads, evicted, busy; /* since the start; busy: waited for another request's load */
};
void query_metrics_read(const struct query *query, struct query_metrics *metrics);

#endif
