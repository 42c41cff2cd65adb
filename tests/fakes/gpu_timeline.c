/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_timeline.h"

#include "faults.h"
#include "h200.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEFAULT_STREAM_ID = 7, FIRST_STREAM_ID = 13 }; /* as CUPTI numbers them */

static pthread_mutex_t world_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fake_context *contexts; /* never freed: late records and waits may still name them */
static struct fake_context *primary_contexts[DEVICE_LIMIT];
static uint32_t context_count;
static _Thread_local struct fake_context *current_context;
static atomic_uint event_count;

uint64_t fake_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void sleep_until_ns(uint64_t time_ns)
{
    struct timespec until = {(time_t)(time_ns / 1000000000u), (long)(time_ns % 1000000000u)};
    while (fake_now_ns() < time_ns)
        clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL);
}

static struct fake_stream *stream_new(struct fake_context *context, uint32_t id, unsigned flags)
{
    struct fake_stream *stream = calloc(1, sizeof *stream);
    if (stream != NULL) {
        stream->context = context;
        stream->id = id;
        stream->flags = flags;
    }
    return stream;
}

struct fake_context *context_create(int device)
{
    struct fake_context *context = calloc(1, sizeof *context);
    if (context == NULL)
        return NULL;
    context->default_stream = stream_new(context, DEFAULT_STREAM_ID, 0);
    if (context->default_stream == NULL) {
        free(context);
        return NULL;
    }
    pthread_mutex_init(&context->lock, NULL);
    context->device = device;
    context->stream_next_id = FIRST_STREAM_ID;
    pthread_mutex_lock(&world_lock);
    context->id = ++context_count;
    context->next = contexts;
    contexts = context;
    pthread_mutex_unlock(&world_lock);
    const struct fake_tracer *tracer = tracer_get();
    if (tracer != NULL)
        tracer->resource(FAKE_RESOURCE_CONTEXT_CREATED, context, NULL);
    return context;
}

static pthread_mutex_t primary_lock = PTHREAD_MUTEX_INITIALIZER;

int fake_has_primary_context(int device)
{
    pthread_mutex_lock(&primary_lock);
    int has_one = device >= 0 && device < fake_device_count() && primary_contexts[device] != NULL;
    pthread_mutex_unlock(&primary_lock);
    return has_one;
}

struct fake_context *fake_primary_context(int device)
{
    if (device < 0 || device >= fake_device_count())
        return NULL;
    pthread_mutex_lock(&primary_lock);
    if (primary_contexts[device] == NULL)
        primary_contexts[device] = context_create(device);
    struct fake_context *context = primary_contexts[device];
    pthread_mutex_unlock(&primary_lock);
    return context;
}

struct fake_context *fake_current_context(void)
{
    return current_context;
}

void fake_set_current_context(struct fake_context *context)
{
    current_context = context;
}

struct fake_stream *fake_stream_create(struct fake_context *context, unsigned flags)
{
    pthread_mutex_lock(&context->lock);
    struct fake_stream *stream = stream_new(context, context->stream_next_id, flags);
    if (stream != NULL)
        context->stream_next_id++;
    pthread_mutex_unlock(&context->lock);
    const struct fake_tracer *tracer = tracer_get();
    if (stream != NULL && tracer != NULL)
        tracer->resource(FAKE_RESOURCE_STREAM_CREATED, context, stream);
    return stream;
}

void fake_stream_destroy(struct fake_stream *stream)
{
    if (stream == NULL || stream == stream->context->default_stream)
        return;
    const struct fake_tracer *tracer = tracer_get();
    if (tracer != NULL)
        tracer->resource(FAKE_RESOURCE_STREAM_DESTROYING, stream->context, stream);
    int result;
    if (stream->capture != NULL)
        fake_graph_destroy(fake_capture_end(stream, &result));
    free(stream);
}

struct fake_stream *fake_stream_of(struct fake_context *context, void *handle)
{
    uintptr_t value = (uintptr_t)handle; /* 1 legacy, 2 per-thread default stream */
    return value <= 2 ? context->default_stream : handle;
}

uint64_t work_duration_ns(const struct fake_work *work)
{
    switch (work->kind) {
    case FAKE_WORK_KERNEL:
        return work->kernel->duration_ns;
    case FAKE_WORK_MEMSET:
        return 800 + work->bytes / 2000; /* 2 TB/s */
    case FAKE_WORK_COPY:
        return work->copy_kind == 8 ? 900 + work->bytes / 1500 : 1200 + work->bytes / 25;
    case FAKE_WORK_PEER_COPY:
        return 1500 + work->bytes / 200;
    }
    return 1000;
}

static uint64_t max_ns(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

int stream_enqueue(struct fake_stream *stream, struct fake_work *work)
{
    struct fake_context *context = stream->context;
    bool is_default = stream == context->default_stream;
    pthread_mutex_lock(&context->lock);
    for (;;) {
        uint64_t slot_free_ns = stream->queue_end_ns[stream->queue_next];
        if (slot_free_ns <= fake_now_ns())
            break;
        pthread_mutex_unlock(&context->lock);
        sleep_until_ns(slot_free_ns);
        pthread_mutex_lock(&context->lock);
    }
    work->queued_ns = fake_now_ns();
    uint64_t start_ns = work->queued_ns + LAUNCH_LATENCY_NS;
    if (stream->tail_ns != 0)
        start_ns = max_ns(start_ns, stream->tail_ns + STREAM_GAP_NS);
    if (is_default)
        start_ns = max_ns(start_ns, context->blocking_end_ns);
    else if ((stream->flags & 1) == 0)
        start_ns = max_ns(start_ns, context->default_stream->tail_ns);
    work->start_ns = start_ns;
    work->end_ns = start_ns + work_duration_ns(work);
    work->device_id = (uint32_t)context->device;
    work->context_id = context->id;
    work->stream_id = stream->id;
    stream->tail_ns = work->end_ns;
    stream->queue_end_ns[stream->queue_next] = work->end_ns;
    stream->queue_next = (stream->queue_next + 1) % STREAM_QUEUE_DEPTH;
    context->latest_end_ns = max_ns(context->latest_end_ns, work->end_ns);
    if ((stream->flags & 1) == 0)
        context->blocking_end_ns = max_ns(context->blocking_end_ns, work->end_ns);
    pthread_mutex_unlock(&context->lock);
    const struct fake_tracer *tracer = tracer_get();
    if (tracer != NULL)
        tracer->work(work);
    return FAKE_SUCCESS;
}

int fake_enqueue(struct fake_stream *stream, struct fake_work *work)
{
    work->correlation_id = correlation_id_current();
    if (stream->capture != NULL)
        return graph_add(stream->capture, work);
    return stream_enqueue(stream, work);
}

static int wait_until_ns(uint64_t end_ns, struct fake_sync *sync)
{
    sync->start_ns = fake_now_ns();
    sync->correlation_id = correlation_id_current();
    sleep_until_ns(end_ns);
    if (fault_gpu_is_lost())
        return FAKE_UNKNOWN;
    sync->end_ns = fake_now_ns();
    const struct fake_tracer *tracer = tracer_get();
    if (tracer != NULL)
        tracer->sync(sync);
    return FAKE_SUCCESS;
}

void fake_work_wait(const struct fake_work *work)
{
    sleep_until_ns(work->end_ns);
}

int fake_stream_wait(struct fake_stream *stream)
{
    struct fake_context *context = stream->context;
    struct fake_sync sync = {.type = 3, .context_id = context->id, .stream_id = stream->id, .event_id = ~0u};
    pthread_mutex_lock(&context->lock);
    uint64_t end_ns = stream->tail_ns;
    pthread_mutex_unlock(&context->lock);
    return wait_until_ns(end_ns, &sync);
}

int fake_context_wait(struct fake_context *context)
{
    struct fake_sync sync = {.type = 4, .context_id = context->id, .stream_id = ~0u, .event_id = ~0u};
    pthread_mutex_lock(&context->lock);
    uint64_t end_ns = context->latest_end_ns;
    pthread_mutex_unlock(&context->lock);
    return wait_until_ns(end_ns, &sync);
}

struct fake_event *fake_event_create(void)
{
    struct fake_event *event = calloc(1, sizeof *event);
    if (event != NULL)
        event->id = atomic_fetch_add(&event_count, 1) + 1;
    return event;
}

void fake_event_destroy(struct fake_event *event)
{
    free(event);
}

void fake_event_record(struct fake_event *event, struct fake_stream *stream)
{
    pthread_mutex_lock(&stream->context->lock);
    event->time_ns = max_ns(stream->tail_ns, fake_now_ns());
    pthread_mutex_unlock(&stream->context->lock);
}

int fake_event_wait(struct fake_event *event)
{
    struct fake_context *context = fake_current_context();
    struct fake_sync sync = {
        .type = 1, .context_id = context != NULL ? context->id : ~0u, .stream_id = ~0u, .event_id = event->id};
    return wait_until_ns(event->time_ns, &sync);
}

bool fake_event_is_done(const struct fake_event *event)
{
    return fake_now_ns() >= event->time_ns;
}

uint64_t fake_event_time_ns(const struct fake_event *event)
{
    return event->time_ns;
}

void fake_stream_wait_event(struct fake_stream *stream, struct fake_event *event)
{
    struct fake_sync sync = {.start_ns = fake_now_ns(),
                             .type = 2,
                             .correlation_id = correlation_id_current(),
                             .context_id = stream->context->id,
                             .stream_id = stream->id,
                             .event_id = event->id};
    pthread_mutex_lock(&stream->context->lock);
    stream->tail_ns = max_ns(stream->tail_ns, event->time_ns);
    pthread_mutex_unlock(&stream->context->lock);
    sync.end_ns = fake_now_ns();
    const struct fake_tracer *tracer = tracer_get();
    if (tracer != NULL)
        tracer->sync(&sync);
}
