/* SPDX-License-Identifier: Apache-2.0 */
/* `gpufl serve`: all of its parts, from start to stop, and the routes. One thread calls server_start, server_tick and
 * server_stop; the HTTP server's threads, the control socket's and the upkeep thread use the struct. */
#ifndef GPUFL_SERVER_SERVER_H
#define GPUFL_SERVER_SERVER_H

#include "server/control.h"
#include "server/ingest.h"
#include "server/query.h"
#include "server/server_config.h"

#include <pthread.h>

struct server {
    struct query query; /* first: the query routes' user pointer is the server */
    const struct server_config *config;
    struct store *store; /* owned, like all that follows */
    struct live *live;
    struct key_ring *keys;
    struct ingest ingest;
    struct http_server *_Atomic http; /* requests may arrive before http_server_start returns to the starting thread */
    struct control *control;
    struct api_table tables[3]; /* other than the query table */
    struct http_route *routes;  /* of all tables */
    size_t route_count;
    atomic_bool is_key_needed; /* always beyond loopback; on loopback once a key exists */
    bool is_loopback;
    int64_t started_mono_ns;
    /* The upkeep thread reads the keys every second and runs retention every few minutes. */
    pthread_t upkeep_thread;
    bool has_upkeep;
    pthread_mutex_t upkeep_lock;
    pthread_cond_t upkeep_wake;
    bool is_stopping;
    bool is_commit_trouble_logged; /* upkeep thread only */
    uint64_t key_bytes_saved;      /* upkeep thread only; before and after it, the thread that starts and stops */
    atomic_uint_fast64_t sessions_retired, bytes_retired;
};

/* On failure nothing is left running. config: borrowed. */
NODISCARD gpufl_status server_start(struct server *server, const struct server_config *config, struct problem *problem);
/* Accepts no new requests, finishes those in progress, closes the store. */
void server_stop(struct server *server);
/* Sends live updates. Called a few times per second by the thread that started the server. */
void server_tick(struct server *server);

/* Whether commits make progress, with statistics. Thread-safe. */
struct server_health {
    bool is_good;
    bool is_serving;  /* good, or only the latest commit failed: reading works, and a restart would not help */
    char reason[600]; /* "" when good */
    int64_t uptime_s;
    struct store_stats stats;
    int64_t last_commit_age_ns; /* CELL_UNKNOWN: none since the start */
};
void server_health_read(struct server *server, struct server_health *health);

/* Writes one line to standard error. */
void server_log(const char *format, ...) PRINTF_LIKE(1, 2);
/* Sets the command named in log lines ("serve" by default); static storage, set before the server starts. */
void server_log_as(const char *command);

/* ingest_routes.c: GPUFlight's protocol. health_routes.c: health, readiness, metrics. */
struct api_table ingest_table(void);
struct api_table health_table(void);
struct api_table about_table(void);

#endif
