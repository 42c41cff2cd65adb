/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti_buffers.h"

#include "cupti_records.h"
#include "cupti_replay.h"
#include "faults.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct buffer {
    uint8_t *data;
    size_t size, used, record_limit, records;
    struct buffer *next;
};
struct channel {
    pthread_mutex_t lock;
    struct buffer *filling;
    bool has_owner; /* a live thread; else free for the next one */
    struct channel *next;
};

static pthread_mutex_t channels_lock = PTHREAD_MUTEX_INITIALIZER;
static struct channel *channels;
static struct channel device_channel = {.lock = PTHREAD_MUTEX_INITIALIZER, .has_owner = true};
static _Thread_local struct channel *thread_channel;
static pthread_key_t thread_key;

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_changed = PTHREAD_COND_INITIALIZER;
static struct buffer *queue_first, **queue_last = &queue_first;
static int deliveries_running;
static uint32_t worker_period_ms = 100;
static _Thread_local bool is_delivering;

static _Atomic(cupti_abi_buffer_request_fn *) client_request;
static _Atomic(cupti_abi_buffer_complete_fn *) client_complete;
static atomic_size_t dropped;
static atomic_ullong record_count, absurd_count;
static int64_t drop_every, absurd_every, has_storm;

static void thread_channel_release(void *value)
{
    struct channel *channel = value;
    pthread_mutex_lock(&channels_lock);
    channel->has_owner = false; /* its records wait for a flush or the next owner */
    pthread_mutex_unlock(&channels_lock);
}

struct channel *channel_of_thread(void)
{
    if (thread_channel != NULL || atomic_load(&client_request) == NULL)
        return thread_channel;
    pthread_mutex_lock(&channels_lock);
    struct channel *channel = channels;
    while (channel != NULL && channel->has_owner)
        channel = channel->next;
    if (channel == NULL && (channel = calloc(1, sizeof *channel)) != NULL) {
        pthread_mutex_init(&channel->lock, NULL);
        channel->next = channels;
        channels = channel;
    }
    if (channel != NULL)
        channel->has_owner = true;
    pthread_mutex_unlock(&channels_lock);
    thread_channel = channel;
    if (channel != NULL)
        pthread_setspecific(thread_key, channel);
    return channel;
}

struct channel *channel_of_devices(void)
{
    return &device_channel;
}

static void queue_add(struct buffer *buffer)
{
    pthread_mutex_lock(&queue_lock);
    *queue_last = buffer;
    queue_last = &buffer->next;
    pthread_cond_broadcast(&queue_changed);
    pthread_mutex_unlock(&queue_lock);
}

static bool queue_deliver_one(void)
{
    pthread_mutex_lock(&queue_lock);
    struct buffer *buffer = queue_first;
    if (buffer != NULL) {
        queue_first = buffer->next;
        if (queue_first == NULL)
            queue_last = &queue_first;
        deliveries_running++;
    }
    pthread_mutex_unlock(&queue_lock);
    if (buffer == NULL)
        return false;
    cupti_abi_buffer_complete_fn *complete = atomic_load(&client_complete);
    is_delivering = true;
    complete(NULL, 0, buffer->data, buffer->size, buffer->used);
    is_delivering = false;
    free(buffer);
    pthread_mutex_lock(&queue_lock);
    deliveries_running--;
    pthread_cond_broadcast(&queue_changed);
    pthread_mutex_unlock(&queue_lock);
    return true;
}

/* The following four need the channel's lock. */
static struct buffer *buffer_request(void)
{
    cupti_abi_buffer_request_fn *request = atomic_load(&client_request);
    struct buffer *buffer = request != NULL ? calloc(1, sizeof *buffer) : NULL;
    if (buffer == NULL)
        return NULL;
    request(&buffer->data, &buffer->size, &buffer->record_limit);
    if (buffer->data == NULL || buffer->size < RECORD_BYTES_MAX || ((uintptr_t)buffer->data & 7) != 0) {
        free(buffer);
        return NULL;
    }
    return buffer;
}

static void buffer_append(struct buffer *buffer, const void *record, size_t size)
{
    memcpy(buffer->data + buffer->used, record, size);
    buffer->used += size;
    buffer->records++;
}

static void filling_hand_over(struct channel *channel)
{
    if (channel->filling != NULL)
        queue_add(channel->filling);
    channel->filling = NULL;
}

static bool filling_ensure(struct channel *channel, size_t size)
{
    struct buffer *buffer = channel->filling;
    if (buffer != NULL &&
        (buffer->used + size > buffer->size || (buffer->record_limit != 0 && buffer->records >= buffer->record_limit)))
        filling_hand_over(channel);
    if (channel->filling != NULL)
        return true;
    uint64_t before_ns = clock_now_ns();
    channel->filling = buffer = buffer_request();
    bool reports_overhead = !has_storm && !replay_is_wanted() && kind_is_enabled(CUPTI_ABI_KIND_OVERHEAD);
    if (buffer != NULL && reports_overhead && buffer->record_limit == 0) {
        uint8_t overhead[RECORD_BYTES_MAX];
        size_t overhead_size;
        record_make_request_overhead(before_ns, clock_now_ns(), overhead, &overhead_size);
        if (overhead_size + size <= buffer->size)
            buffer_append(buffer, overhead, overhead_size);
    }
    return buffer != NULL;
}

static void faults_after_record(struct channel *channel)
{
    if (absurd_every > 0 && atomic_load(&record_count) % (uint64_t)absurd_every == 0) {
        uint8_t absurd[RECORD_BYTES_MAX];
        size_t size;
        bool is_last = record_make_absurd(atomic_fetch_add(&absurd_count, 1), absurd, &size);
        if (filling_ensure(channel, size)) {
            buffer_append(channel->filling, absurd, size);
            if (is_last)
                filling_hand_over(channel);
        }
    }
    if (has_storm) {
        filling_hand_over(channel);
        channel->filling = buffer_request();
        filling_hand_over(channel);
    }
}

void channel_write(struct channel *channel, const void *record, size_t size, bool is_late)
{
    if (channel == NULL) {
        atomic_fetch_add(&dropped, 1);
        return;
    }
    pthread_mutex_lock(&channel->lock);
    /* Asked with the lock held, so that no record is written after Disable and a flush. */
    if (is_late || record_is_wanted(record)) {
        uint64_t number = atomic_fetch_add(&record_count, 1) + 1;
        bool is_dropped = drop_every > 0 && number % (uint64_t)drop_every == 0;
        if (!is_dropped && filling_ensure(channel, size)) {
            buffer_append(channel->filling, record, size);
            faults_after_record(channel);
        } else {
            atomic_fetch_add(&dropped, 1);
        }
    }
    pthread_mutex_unlock(&channel->lock);
}

void channel_complete(struct channel *channel)
{
    pthread_mutex_lock(&channel->lock);
    filling_hand_over(channel);
    pthread_mutex_unlock(&channel->lock);
}

static void channel_flush(struct channel *channel, bool with_empty)
{
    pthread_mutex_lock(&channel->lock);
    if (channel->filling != NULL && (with_empty || channel->filling->used > 0))
        filling_hand_over(channel);
    pthread_mutex_unlock(&channel->lock);
}

void buffers_flush(bool with_empty)
{
    pthread_mutex_lock(&channels_lock);
    for (struct channel *channel = channels; channel != NULL; channel = channel->next)
        channel_flush(channel, with_empty);
    pthread_mutex_unlock(&channels_lock);
    channel_flush(&device_channel, with_empty);
    while (queue_deliver_one()) {
    }
    pthread_mutex_lock(&queue_lock);
    while (deliveries_running > 0 && !is_delivering)
        pthread_cond_wait(&queue_changed, &queue_lock);
    pthread_mutex_unlock(&queue_lock);
}

size_t buffers_take_dropped(void)
{
    return atomic_exchange(&dropped, 0);
}

static void worker_wait(bool has_work_left)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    pthread_mutex_lock(&queue_lock);
    uint32_t wait_ms = has_work_left ? 2 : worker_period_ms;
    until.tv_nsec += (long)(wait_ms % 1000) * 1000000;
    until.tv_sec += (time_t)(wait_ms / 1000) + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (queue_first == NULL)
        pthread_cond_timedwait(&queue_changed, &queue_lock, &until);
    pthread_mutex_unlock(&queue_lock);
}

static void *worker_run(void *argument)
{
    (void)argument;
    for (;;) {
        bool has_work_left = records_reap(false);
        has_work_left = replay_advance(false) || has_work_left;
        while (queue_deliver_one()) {
        }
        worker_wait(has_work_left);
    }
    return NULL;
}

static void worker_prepare(void)
{
    drop_every = fault_number("drop_every", 0);
    absurd_every = fault_number("absurd_record_every", 0);
    has_storm = fault_number("storm", 0);
    pthread_key_create(&thread_key, thread_channel_release);
}

static void worker_start(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the application's */
    pthread_t worker;
    if (pthread_create(&worker, NULL, worker_run, NULL) == 0)
        pthread_detach(worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void buffers_register(cupti_abi_buffer_request_fn *request, cupti_abi_buffer_complete_fn *complete)
{
    static pthread_once_t prepared = PTHREAD_ONCE_INIT;
    static atomic_int worker_pid; /* a forked child has no worker until it registers afresh */
    pthread_once(&prepared, worker_prepare);
    if (atomic_exchange(&worker_pid, getpid()) != getpid())
        worker_start();
    atomic_store(&client_complete, complete);
    atomic_store(&client_request, request);
}

void buffers_after_fork(void)
{
    pthread_mutex_init(&channels_lock, NULL);
    pthread_mutex_init(&queue_lock, NULL);
    pthread_cond_init(&queue_changed, NULL); /* the parent's worker waited for it */
    pthread_mutex_init(&device_channel.lock, NULL);
    for (struct channel *channel = channels; channel != NULL; channel = channel->next)
        pthread_mutex_init(&channel->lock, NULL);
    deliveries_running = 0;
}

static void channel_forget(struct channel *channel)
{
    pthread_mutex_lock(&channel->lock);
    free(channel->filling);
    channel->filling = NULL;
    pthread_mutex_unlock(&channel->lock);
}

void buffers_forget(void)
{
    atomic_store(&client_request, NULL);
    pthread_mutex_lock(&channels_lock);
    for (struct channel *channel = channels; channel != NULL; channel = channel->next)
        channel_forget(channel);
    pthread_mutex_unlock(&channels_lock);
    channel_forget(&device_channel);
    while (queue_deliver_one()) { /* those were complete before */
    }
    pthread_mutex_lock(&queue_lock);
    while (deliveries_running > 0 && !is_delivering)
        pthread_cond_wait(&queue_changed, &queue_lock);
    pthread_mutex_unlock(&queue_lock);
    atomic_store(&dropped, 0);
}

void buffers_wake_worker(uint32_t period_ms)
{
    pthread_mutex_lock(&queue_lock);
    worker_period_ms = period_ms == 0 ? 100 : period_ms;
    pthread_cond_broadcast(&queue_changed);
    pthread_mutex_unlock(&queue_lock);
}
