/* SPDX-License-Identifier: Apache-2.0 */
/* Live updates for open pages: sessions that appear, grow and end, and the latest metrics of each GPU. Ingest reports
 * every commit; on each tick the newest state of whatever changed is sent as server-sent events, so traffic grows with
 * the number of watched objects and not with the data received. Tables are bounded: the oldest entry is dropped.
 * Thread-safe. */
#ifndef GPUFL_SERVER_LIVE_H
#define GPUFL_SERVER_LIVE_H

#include "format/batch.h"
#include "http/http_events.h"

enum { LIVE_TICK_MS = 500, LIVE_SESSIONS_MAX = 1024, LIVE_GPUS_MAX = 16384 };

/* Topics of live_subscribe; "" selects both. Events of "sessions" are named session, those of "gpus" gpu. */
#define LIVE_SESSIONS "sessions"
#define LIVE_GPUS "gpus"

struct live; /* opaque */

NODISCARD gpufl_status live_open(struct live **live);
void live_close(struct live *live); /* NULL is a no-op */
/* The server that events are sent through; NULL: none, until the next call. */
void live_attach(struct live *live, struct http_server *server);

/* One commit: rows counts what it added. Texts that are unknown may be ""; earlier ones are then kept. */
struct live_change {
    const char *session_id, *app, *host;
    const char *state; /* "live", "complete" or "crashed" */
    uint64_t rows, kernels, bytes;
    int64_t at_ns; /* wall clock */
};
void live_session_changed(struct live *live, const struct live_change *change);
/* Reports the last row of each device in a device_metric_batch. Device numbers belong to a session: the same number in
 * another session may be another GPU. */
void live_metrics_changed(struct live *live, const char *session_id, const char *host, const struct batch_view *view);

/* Sends what changed since the last tick. */
void live_tick(struct live *live);
/* Answers a GET with the stream of a topic. It begins with the newest state of the entries in the tables, up to a size
 * that a client's queue can hold; the others follow when they change. */
void live_subscribe(struct live *live, struct http_exchange *exchange, const char *topic);

#endif
