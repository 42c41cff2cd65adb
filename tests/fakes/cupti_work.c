/* SPDX-License-Identifier: Apache-2.0 */
/* GPU work of the look-alike CUPTI: waits in a heap until its simulated end has
 * passed, then becomes a record. */
#include "cupti_buffers.h"
#include "cupti_records.h"
#include "faults.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct pending {
    struct fake_work work;
    struct channel *channel;
    uint32_t kind;
    bool has_latency;
};
static pthread_mutex_t reap_lock = PTHREAD_MUTEX_INITIALIZER; /* one reaper; taken before heap_lock */
static pthread_mutex_t heap_lock = PTHREAD_MUTEX_INITIALIZER;
static struct pending *heap; /* smallest end first */
static size_t heap_count, heap_capacity;
static atomic_bool has_latency;

void records_set_latency(bool is_enabled)
{
    atomic_store(&has_latency, is_enabled);
}

static void heap_swap(size_t a, size_t b)
{
    struct pending swap = heap[a];
    heap[a] = heap[b];
    heap[b] = swap;
}

static bool heap_push(const struct pending *pending)
{
    if (heap_count == heap_capacity) {
        size_t capacity = heap_capacity == 0 ? 1024 : heap_capacity * 2;
        struct pending *grown = realloc(heap, capacity * sizeof *grown);
        if (grown == NULL)
            return false;
        heap = grown;
        heap_capacity = capacity;
    }
    heap[heap_count] = *pending;
    for (size_t at = heap_count++; at > 0 && heap[at].work.end_ns < heap[(at - 1) / 2].work.end_ns; at = (at - 1) / 2)
        heap_swap(at, (at - 1) / 2);
    return true;
}

static void heap_pop(struct pending *out)
{
    *out = heap[0];
    heap[0] = heap[--heap_count];
    for (size_t at = 0;;) {
        size_t least = at, left = 2 * at + 1, right = left + 1;
        if (left < heap_count && heap[left].work.end_ns < heap[least].work.end_ns)
            least = left;
        if (right < heap_count && heap[right].work.end_ns < heap[least].work.end_ns)
            least = right;
        if (least == at)
            return;
        heap_swap(at, least);
        at = least;
    }
}

static uint32_t work_kind(const struct fake_work *work)
{
    switch (work->kind) {
    case FAKE_WORK_KERNEL:
        return kind_is_enabled(CUPTI_ABI_KIND_KERNEL) ? CUPTI_ABI_KIND_KERNEL : CUPTI_ABI_KIND_CONCURRENT_KERNEL;
    case FAKE_WORK_COPY:
        return CUPTI_ABI_KIND_MEMCPY;
    case FAKE_WORK_PEER_COPY:
        return CUPTI_ABI_KIND_MEMCPY2;
    case FAKE_WORK_MEMSET:
        return CUPTI_ABI_KIND_MEMSET;
    }
    return CUPTI_ABI_KIND_INVALID;
}

static bool is_by_thread(void)
{
    char where[16];
    fault_text("device_buffer", where, sizeof where);
    return strcmp(where, "thread") == 0;
}

void record_work(const struct fake_work *work)
{
    struct pending pending = {.work = *work, .kind = work_kind(work), .has_latency = atomic_load(&has_latency)};
    if (!kind_is_enabled(pending.kind))
        return;
    pending.channel = is_by_thread() ? channel_of_thread() : channel_of_devices();
    pthread_mutex_lock(&heap_lock);
    bool is_kept = heap_push(&pending);
    pthread_mutex_unlock(&heap_lock);
    if (!is_kept)
        channel_write(NULL, NULL, 0, false); /* counts it */
}

static void kernel_write(const struct pending *pending)
{
    const struct fake_work *work = &pending->work;
    struct cupti_abi_kernel record = {.kind = pending->kind,
                                      .registers_per_thread = (uint16_t)work->kernel->regs,
                                      .start = record_time(work->start_ns),
                                      .end = record_time(work->end_ns),
                                      .completed = work->end_ns,
                                      .device_id = work->device_id,
                                      .context_id = work->context_id,
                                      .stream_id = work->stream_id,
                                      .static_shared = (int32_t)work->kernel->static_shared_bytes,
                                      .dynamic_shared = (int32_t)work->dynamic_shared_bytes,
                                      .local_per_thread = work->kernel->local_bytes,
                                      .correlation_id = work->correlation_id,
                                      .name = work->kernel->name,
                                      .shared_executed = 32768,
                                      .graph_node_id = work->graph_node_id,
                                      .graph_id = work->graph_id,
                                      .channel_id = 8,
                                      .channel_type = 1,
                                      .cluster = {1, 1, 1}};
    for (int i = 0; i < 3; i++) {
        record.grid[i] = (int32_t)work->grid[i];
        record.block[i] = (int32_t)work->block[i];
    }
    if (pending->has_latency) {
        record.queued = work->queued_ns;
        record.submitted = work->queued_ns + 200;
    }
    channel_write(pending->channel, &record, record_size(record.kind), true);
}

static void copy_write(const struct pending *pending)
{
    const struct fake_work *work = &pending->work;
    struct cupti_abi_memcpy record = {.kind = pending->kind,
                                      .copy_kind = work->copy_kind,
                                      .src_kind = work->src_kind,
                                      .dst_kind = work->dst_kind,
                                      .flags = work->is_async ? CUPTI_ABI_FLAG_ASYNC : 0,
                                      .bytes = work->bytes,
                                      .start = record_time(work->start_ns),
                                      .end = record_time(work->end_ns),
                                      .device_id = work->device_id,
                                      .context_id = work->context_id,
                                      .stream_id = work->stream_id,
                                      .correlation_id = work->correlation_id,
                                      .graph_node_id = work->graph_node_id,
                                      .graph_id = work->graph_id,
                                      .channel_id = 8,
                                      .channel_type = 2,
                                      .copy_count = 1};
    channel_write(pending->channel, &record, record_size(record.kind), true);
}

static void peer_copy_write(const struct pending *pending)
{
    const struct fake_work *work = &pending->work;
    struct cupti_abi_memcpy_peer record = {.kind = pending->kind,
                                           .copy_kind = work->copy_kind,
                                           .src_kind = work->src_kind,
                                           .dst_kind = work->dst_kind,
                                           .flags = work->is_async ? CUPTI_ABI_FLAG_ASYNC : 0,
                                           .bytes = work->bytes,
                                           .start = record_time(work->start_ns),
                                           .end = record_time(work->end_ns),
                                           .device_id = work->device_id,
                                           .context_id = work->context_id,
                                           .stream_id = work->stream_id,
                                           .src_device_id = work->peer_device_id,
                                           .src_context_id = work->peer_context_id,
                                           .dst_device_id = work->device_id,
                                           .dst_context_id = work->context_id,
                                           .correlation_id = work->correlation_id,
                                           .graph_node_id = work->graph_node_id,
                                           .graph_id = work->graph_id};
    channel_write(pending->channel, &record, record_size(record.kind), true);
}

static void memset_write(const struct pending *pending)
{
    const struct fake_work *work = &pending->work;
    struct cupti_abi_memset record = {.kind = pending->kind,
                                      .value = work->value,
                                      .bytes = work->bytes,
                                      .start = record_time(work->start_ns),
                                      .end = record_time(work->end_ns),
                                      .device_id = work->device_id,
                                      .context_id = work->context_id,
                                      .stream_id = work->stream_id,
                                      .correlation_id = work->correlation_id,
                                      .flags = work->is_async ? CUPTI_ABI_FLAG_ASYNC : 0,
                                      .memory_kind = 3,
                                      .graph_node_id = work->graph_node_id,
                                      .graph_id = work->graph_id,
                                      .channel_id = 8,
                                      .channel_type = 1};
    channel_write(pending->channel, &record, record_size(record.kind), true);
}

static void pending_write(struct pending *pending, uint64_t now_ns)
{
    if (pending->work.end_ns > now_ns) { /* forced out while it runs: consumed without an end */
        pending->work.end_ns = 0;
        if (pending->work.start_ns > now_ns)
            pending->work.start_ns = 0;
    }
    switch (pending->work.kind) {
    case FAKE_WORK_KERNEL:
        kernel_write(pending);
        break;
    case FAKE_WORK_COPY:
        copy_write(pending);
        break;
    case FAKE_WORK_PEER_COPY:
        peer_copy_write(pending);
        break;
    case FAKE_WORK_MEMSET:
        memset_write(pending);
        break;
    }
}

bool records_reap(bool with_running)
{
    pthread_mutex_lock(&reap_lock);
    uint64_t now_ns = clock_now_ns();
    for (;;) {
        struct pending pending;
        pthread_mutex_lock(&heap_lock);
        bool has_one = heap_count > 0 && (with_running || heap[0].work.end_ns <= now_ns);
        if (has_one)
            heap_pop(&pending);
        bool has_more = heap_count > 0;
        pthread_mutex_unlock(&heap_lock);
        if (!has_one) {
            pthread_mutex_unlock(&reap_lock);
            return has_more;
        }
        pending_write(&pending, now_ns);
    }
}

void works_after_fork(void)
{
    pthread_mutex_init(&reap_lock, NULL);
    pthread_mutex_init(&heap_lock, NULL);
}

void works_forget(void)
{
    pthread_mutex_lock(&heap_lock);
    heap_count = 0;
    pthread_mutex_unlock(&heap_lock);
}
