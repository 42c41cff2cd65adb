/* SPDX-License-Identifier: Apache-2.0 */
/* What changes, for pages that are open: sessions that appear, grow and end, and the latest metrics of each GPU. Ingest
 * tells it what was committed; once a beat the newest state of whatever changed goes out as server-sent events, so that
 * traffic grows with what is watched and not with what arrives. Tables are bounded: beyond them the oldest entry makes
 * room. Any thread. */
#ifndef GPUFL_SERVER_LIVE_H
#define GPUFL_SERVER_LIVE_H

#include "format/batch.h"
#include "http/http_events.h"

enum { LIVE_BEAT_MS = 500, LIVE_SESSIONS_MAX = 1024, LIVE_GPUS_MAX = 16384 };

/* Topics of live_subscribe; "" is both. Events of "sessions" are named session, those of "gpus" gpu. */
#define LIVE_SESSIONS "sessions"
#define LIVE_GPUS "gpus"

struct live; /* opaque */

NODISCARD gpufl_status live_open(struct live **live);
void live_close(struct live *live); /* NULL is a no-op */
/* Where events go; NULL: nowhere, until there is a server again. */
void live_attach(struct live *live, struct http_server *server);

/* One commit: rows counts what it brought. Texts may be "" when not known; earlier ones are then kept. */
struct live_change {
    const char *session_id, *app, *host;
    const char *state; /* "live", "complete" or "crashed" */
    uint64_t rows, kernels, bytes;
    int64_t at_ns; /* wall clock */
};
void live_session_changed(struct live *live, const struct live_change *change);
/* The last row of each device in a device_metric_batch. A device's number is that of its session: another session's may
 * be another GPU. */
void live_metrics_changed(struct live *live, const char *session_id, const char *host, const struct batch_view *view);

/* Sends what changed since the last beat. */
void live_beat(struct live *live);
/* Answers a GET with the stream of a topic, beginning with the newest state of what the tables hold, up to a size that a
 * client's queue can take; the rest follows with its next change. */
void live_subscribe(struct live *live, struct http_exchange *exchange, const char *topic);

#endif
