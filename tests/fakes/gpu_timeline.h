/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated GPUs: contexts, streams and the time line of each stream. Work
 * is given its start and end the moment it is enqueued; nothing runs, waiting
 * is sleeping until the end. One lock per context. */
#ifndef FAKES_GPU_TIMELINE_H
#define FAKES_GPU_TIMELINE_H

#include "fake_gpu.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum {
    STREAM_QUEUE_DEPTH = 1024, /* as on real GPUs: a launch into a full queue blocks */
    LAUNCH_LATENCY_NS = 1500,
    STREAM_GAP_NS = 500,
    DEVICE_LIMIT = 16
};

struct fake_stream {
    struct fake_context *context;
    uint32_t id;
    unsigned flags; /* 1: does not wait for the default stream */
    uint64_t tail_ns;
    uint64_t queue_end_ns[STREAM_QUEUE_DEPTH]; /* ends of the last enqueued work, a ring */
    uint32_t queue_next;
    struct fake_graph *capture; /* being recorded, or NULL */
    uint32_t capture_number;    /* of context->invalidated when it began */
};
struct fake_context {
    pthread_mutex_t lock;
    uint32_t id;
    int device;
    uint32_t stream_next_id;
    _Atomic uint32_t capturing, invalidated; /* streams that capture; times that this was spoilt */
    uint64_t latest_end_ns, blocking_end_ns; /* of all streams; of those the default stream waits for */
    struct fake_stream *default_stream;
    struct fake_context *next;
};
/* What no context can do while one of its streams captures: true, and the capture is no longer valid. */
static inline bool context_spoils_capture(struct fake_context *context)
{
    if (atomic_load(&context->capturing) == 0)
        return false;
    atomic_fetch_add(&context->invalidated, 1);
    return true;
}

struct fake_event {
    uint32_t id;
    _Atomic uint64_t time_ns; /* 0: never recorded */
};

struct fake_context *context_create(int device);
const struct fake_tracer *tracer_get(void);
void sleep_until_ns(uint64_t time_ns);
/* Adds a copy of work to the graph that the stream captures. */
int graph_add(struct fake_graph *graph, const struct fake_work *work);
/* Duration on a believable H200. */
uint64_t work_duration_ns(const struct fake_work *work);
/* Enqueues even while capturing; work's kind and shape must be set. */
int stream_enqueue(struct fake_stream *stream, struct fake_work *work);
uint32_t correlation_id_current(void);

#endif
