/* SPDX-License-Identifier: Apache-2.0 */
/* `gpufl serve` from its first to its last breath: everything that runs, and the routes. Started, beaten and stopped by
 * one thread; the HTTP server's threads, the control socket's and the keeper use what is in it. */
#ifndef GPUFL_SERVER_SERVER_H
#define GPUFL_SERVER_SERVER_H

#include "server/control.h"
#include "server/ingest.h"
#include "server/query.h"
#include "server/server_config.h"

#include <pthread.h>

struct server {
    struct query query; /* first: the query routes' user pointer is the server's */
    const struct server_config *config;
    struct store *store; /* owned, as all that follows */
    struct live *live;
    struct key_ring *keys;
    struct ingest ingest;
    struct http_server *_Atomic http; /* requests come before the one who starts it knows it */
    struct control *control;
    struct api_table tables[3]; /* beside the query's */
    struct http_route *routes;  /* of all tables */
    size_t route_count;
    atomic_bool is_key_needed; /* beyond the loopback; and on it from the first key on */
    bool is_loopback;
    int64_t started_mono_ns;
    /* The keeper: keys are read anew every second, retention runs every few minutes. */
    pthread_t keeper;
    bool has_keeper;
    pthread_mutex_t keeper_lock;
    pthread_cond_t keeper_wake;
    bool is_stopping;
    bool is_commit_trouble_told; /* of the keeper */
    uint64_t key_bytes_saved;    /* of the keeper, before and after it of the thread that starts and stops */
    atomic_uint_fast64_t sessions_retired, bytes_retired;
};

/* On failure nothing is left running. config: borrowed. */
NODISCARD gpufl_status server_start(struct server *server, const struct server_config *config, struct problem *problem);
/* Takes no new requests, lets those under way finish, closes the store. */
void server_stop(struct server *server);
/* Some times a second, from the thread that started it: events for those who watch. */
void server_beat(struct server *server);

/* Whether commits make progress, and what they do; any thread. */
struct server_health {
    bool is_good;
    bool is_serving;  /* good, or only the latest commit failed: reading works, and a restart would not help */
    char reason[600]; /* "" when good */
    int64_t uptime_s;
    struct store_stats stats;
    int64_t last_commit_age_ns; /* CELL_UNKNOWN: none since the start */
};
void server_health_read(struct server *server, struct server_health *health);

/* One line on standard error. */
void server_log(const char *format, ...) PRINTF_LIKE(1, 2);
/* The command that lines name; static storage, set before the server starts. "serve" at first. */
void server_log_as(const char *command);

/* ingest_routes.c: GPUFlight's protocol. health_routes.c: health, readiness, metrics. */
struct api_table ingest_table(void);
struct api_table health_table(void);
struct api_table about_table(void);

#endif
