/* SPDX-License-Identifier: Apache-2.0 */
/* Captured graphs and device memory of the simulated GPUs. */
#include "gpu_timeline.h"
#include "h200.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct fake_graph {
    uint32_t id;
    uint32_t node_count, node_capacity;
    struct fake_work *nodes; /* in stream order */
};
static atomic_uint graph_count;
static atomic_ullong node_count;

static struct fake_graph *graph_new(void)
{
    struct fake_graph *graph = calloc(1, sizeof *graph);
    if (graph != NULL)
        graph->id = atomic_fetch_add(&graph_count, 1) + 1;
    return graph;
}

int graph_add(struct fake_graph *graph, const struct fake_work *work)
{
    if (graph->node_count == graph->node_capacity) {
        uint32_t capacity = graph->node_capacity == 0 ? 8 : graph->node_capacity * 2;
        struct fake_work *nodes = realloc(graph->nodes, capacity * sizeof *nodes);
        if (nodes == NULL)
            return FAKE_OUT_OF_MEMORY;
        graph->nodes = nodes;
        graph->node_capacity = capacity;
    }
    struct fake_work *node = &graph->nodes[graph->node_count++];
    *node = *work;
    node->graph_id = graph->id;
    node->graph_node_id = ((uint64_t)graph->id << 32) | (atomic_fetch_add(&node_count, 1) + 1);
    return FAKE_SUCCESS;
}

int fake_capture_begin(struct fake_stream *stream)
{
    if (stream == stream->context->default_stream)
        return FAKE_CAPTURE_UNSUPPORTED; /* as cudaStreamBeginCapture says of the legacy stream */
    if (stream->capture != NULL)
        return FAKE_INVALID_VALUE;
    stream->capture = graph_new();
    if (stream->capture == NULL)
        return FAKE_OUT_OF_MEMORY;
    stream->capture_number = atomic_load(&stream->context->invalidated);
    atomic_fetch_add(&stream->context->capturing, 1);
    return FAKE_SUCCESS;
}

struct fake_graph *fake_capture_end(struct fake_stream *stream, int *result)
{
    struct fake_graph *graph = stream->capture;
    *result = graph != NULL ? FAKE_SUCCESS : FAKE_INVALID_VALUE;
    if (graph == NULL)
        return NULL;
    stream->capture = NULL;
    atomic_fetch_sub(&stream->context->capturing, 1);
    if (stream->capture_number == atomic_load(&stream->context->invalidated))
        return graph;
    fake_graph_destroy(graph);
    *result = FAKE_CAPTURE_INVALIDATED;
    return NULL;
}

int fake_capture_forbids(struct fake_context *context)
{
    return context_spoils_capture(context) ? FAKE_CAPTURE_UNSUPPORTED : FAKE_SUCCESS;
}

static void graph_report(uint32_t cbid, struct fake_graph *executable, bool is_kernel)
{
    const struct fake_tracer *tracer = tracer_get();
    if (tracer != NULL)
        tracer->graph(cbid, executable, is_kernel);
}

struct fake_graph *fake_graph_instantiate(const struct fake_graph *graph)
{
    struct fake_graph *executable = graph_new();
    graph_report(FAKE_RESOURCE_GRAPHEXEC_STARTING, NULL, false);
    for (uint32_t i = 0; i < graph->node_count; i++)
        graph_report(FAKE_RESOURCE_GRAPHNODE_CLONED, NULL, graph->nodes[i].kind == FAKE_WORK_KERNEL);
    for (uint32_t i = 0; executable != NULL && i < graph->node_count; i++)
        if (graph_add(executable, &graph->nodes[i]) != FAKE_SUCCESS) {
            fake_graph_destroy(executable);
            return NULL;
        }
    graph_report(FAKE_RESOURCE_GRAPHEXEC_CREATED, executable, false);
    return executable;
}

int fake_graph_launch(struct fake_graph *graph, struct fake_stream *stream)
{
    int result = FAKE_SUCCESS;
    for (uint32_t i = 0; result == FAKE_SUCCESS && i < graph->node_count; i++) {
        struct fake_work work = graph->nodes[i];
        work.correlation_id = correlation_id_current(); /* nodes carry the launch's id */
        result = stream_enqueue(stream, &work);
    }
    return result;
}

void fake_graph_destroy(struct fake_graph *graph)
{
    if (graph != NULL)
        free(graph->nodes);
    free(graph);
}

/* Device memory is host memory with a header in front, so that copies can be real. */
struct allocation {
    uint64_t magic;
    size_t bytes;
    struct fake_context *context;
    struct allocation *next, *previous; /* of all: what a lost GPU does not free is not a leak */
    char alignment[24];
};
_Static_assert(sizeof(struct allocation) == 64, "keeps the payload aligned");
#define ALLOCATION_MAGIC 0x6d656d6f72792121ull
static atomic_ullong allocated_bytes;
static struct allocation *allocations;
static pthread_mutex_t allocations_lock = PTHREAD_MUTEX_INITIALIZER;

static void allocation_link(struct allocation *allocation)
{
    pthread_mutex_lock(&allocations_lock);
    allocation->next = allocations;
    if (allocations != NULL)
        allocations->previous = allocation;
    allocations = allocation;
    pthread_mutex_unlock(&allocations_lock);
}

static void allocation_unlink(struct allocation *allocation)
{
    pthread_mutex_lock(&allocations_lock);
    if (allocation->previous != NULL)
        allocation->previous->next = allocation->next;
    else
        allocations = allocation->next;
    if (allocation->next != NULL)
        allocation->next->previous = allocation->previous;
    pthread_mutex_unlock(&allocations_lock);
}

static void memory_report(uint64_t address, const struct allocation *allocation, bool is_free)
{
    const struct fake_tracer *tracer = tracer_get();
    if (tracer == NULL)
        return;
    struct fake_memory memory = {.time_ns = fake_now_ns(),
                                 .address = address,
                                 .bytes = allocation->bytes,
                                 .is_free = is_free,
                                 .device_id = (uint32_t)allocation->context->device,
                                 .context_id = allocation->context->id,
                                 .correlation_id = correlation_id_current()};
    tracer->memory(&memory);
}

int fake_memory_alloc(uint64_t *address, size_t bytes)
{
    struct fake_context *context = fake_current_context();
    if (context == NULL)
        return FAKE_INVALID_CONTEXT;
    if (bytes == 0 || address == NULL)
        return FAKE_INVALID_VALUE;
    if (bytes > H200_MEMORY_BYTES || atomic_load(&allocated_bytes) + bytes > H200_MEMORY_BYTES)
        return FAKE_OUT_OF_MEMORY;
    struct allocation *allocation = calloc(1, sizeof *allocation + bytes);
    if (allocation == NULL)
        return FAKE_OUT_OF_MEMORY;
    allocation->magic = ALLOCATION_MAGIC;
    allocation->bytes = bytes;
    allocation->context = context;
    allocation_link(allocation);
    atomic_fetch_add(&allocated_bytes, bytes);
    *address = (uint64_t)(uintptr_t)(allocation + 1);
    memory_report(*address, allocation, false);
    return FAKE_SUCCESS;
}

int fake_memory_free(uint64_t address)
{
    if (address == 0)
        return FAKE_SUCCESS;
    struct allocation *allocation = (struct allocation *)(uintptr_t)address - 1;
    if (allocation->magic != ALLOCATION_MAGIC)
        return FAKE_INVALID_VALUE;
    memory_report(address, allocation, true);
    atomic_fetch_sub(&allocated_bytes, allocation->bytes);
    allocation->magic = 0;
    allocation_unlink(allocation);
    free(allocation);
    return FAKE_SUCCESS;
}
