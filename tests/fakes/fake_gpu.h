/* SPDX-License-Identifier: Apache-2.0 */
/* What the look-alike libraries say to each other: the fake driver tells the
 * fake CUPTI what happens, and the fake runtime uses the driver's insides the
 * way the real one does (without traced driver calls). Objects are owned by the
 * fake driver and live as long as the process unless a destroy call ends them. */
#ifndef FAKES_FAKE_GPU_H
#define FAKES_FAKE_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_API __attribute__((visibility("default")))

enum { FAKE_DOMAIN_DRIVER = 1, FAKE_DOMAIN_RUNTIME = 2, FAKE_DOMAIN_RESOURCE = 3 };
enum {
    FAKE_RESOURCE_CONTEXT_CREATED = 1,
    FAKE_RESOURCE_CONTEXT_DESTROYING = 2,
    FAKE_RESOURCE_STREAM_CREATED = 3,
    FAKE_RESOURCE_STREAM_DESTROYING = 4,
    FAKE_RESOURCE_INIT_FINISHED = 5,
    FAKE_RESOURCE_GRAPHEXEC_STARTING = 17,
    FAKE_RESOURCE_GRAPHEXEC_CREATED = 18,
    FAKE_RESOURCE_GRAPHNODE_CLONED = 20
};
/* CUresult and cudaError_t agree on these */
enum {
    FAKE_SUCCESS = 0,
    FAKE_INVALID_VALUE = 1,
    FAKE_OUT_OF_MEMORY = 2,
    FAKE_NOT_INITIALIZED = 3,
    FAKE_NO_DEVICE = 100,
    FAKE_INVALID_DEVICE = 101,
    FAKE_INVALID_CONTEXT = 201,
    FAKE_INVALID_HANDLE = 400,
    FAKE_NOT_FOUND = 500,
    FAKE_NOT_READY = 600,
    FAKE_CAPTURE_UNSUPPORTED = 900,
    FAKE_CAPTURE_INVALIDATED = 901,
    FAKE_UNKNOWN = 999 /* also what everything answers once the GPU is lost */
};

/* X(function, callback id, CUPTI's name for it) */
#define FAKE_DRIVER_CALLS(X)                           \
    X(cuInit, 1, "cuInit")                             \
    X(cuCtxSynchronize, 17, "cuCtxSynchronize")        \
    X(cuEventRecord, 119, "cuEventRecord")             \
    X(cuEventSynchronize, 121, "cuEventSynchronize")   \
    X(cuStreamCreate, 124, "cuStreamCreate")           \
    X(cuStreamSynchronize, 126, "cuStreamSynchronize") \
    X(cuMemsetD8Async, 216, "cuMemsetD8Async")         \
    X(cuCtxCreate_v2, 235, "cuCtxCreate_v2")           \
    X(cuMemAlloc_v2, 243, "cuMemAlloc_v2")             \
    X(cuMemFree_v2, 245, "cuMemFree_v2")               \
    X(cuMemcpyHtoD_v2, 276, "cuMemcpyHtoD_v2")         \
    X(cuMemcpyDtoH_v2, 278, "cuMemcpyDtoH_v2")         \
    X(cuStreamWaitEvent, 295, "cuStreamWaitEvent")     \
    X(cuLaunchKernel, 307, "cuLaunchKernel")           \
    X(cuGraphLaunch, 514, "cuGraphLaunch")
#define FAKE_RUNTIME_CALLS(X)                                       \
    X(cudaGetDeviceCount, 3, "cudaGetDeviceCount_v3020")            \
    X(cudaSetDevice, 16, "cudaSetDevice_v3020")                     \
    X(cudaGetDevice, 17, "cudaGetDevice_v3020")                     \
    X(cudaMalloc, 20, "cudaMalloc_v3020")                           \
    X(cudaFree, 22, "cudaFree_v3020")                               \
    X(cudaMemcpy, 31, "cudaMemcpy_v3020")                           \
    X(cudaMemcpyAsync, 41, "cudaMemcpyAsync_v3020")                 \
    X(cudaMemset, 49, "cudaMemset_v3020")                           \
    X(cudaMemsetAsync, 51, "cudaMemsetAsync_v3020")                 \
    X(cudaStreamCreate, 129, "cudaStreamCreate_v3020")              \
    X(cudaStreamSynchronize, 131, "cudaStreamSynchronize_v3020")    \
    X(cudaEventCreate, 133, "cudaEventCreate_v3020")                \
    X(cudaEventRecord, 135, "cudaEventRecord_v3020")                \
    X(cudaEventDestroy, 136, "cudaEventDestroy_v3020")              \
    X(cudaEventSynchronize, 137, "cudaEventSynchronize_v3020")      \
    X(cudaEventQuery, 138, "cudaEventQuery_v3020")                  \
    X(cudaEventElapsedTime, 139, "cudaEventElapsedTime_v3020")      \
    X(cudaStreamWaitEvent, 147, "cudaStreamWaitEvent_v3020")        \
    X(cudaDeviceSynchronize, 165, "cudaDeviceSynchronize_v3020")    \
    X(cudaStreamDestroy, 201, "cudaStreamDestroy_v5050")            \
    X(cudaLaunchKernel, 211, "cudaLaunchKernel_v7000")              \
    X(cudaMemcpyPeerAsync, 161, "cudaMemcpyPeerAsync_v4000")        \
    X(cudaGraphLaunch, 311, "cudaGraphLaunch_v10000")               \
    X(cudaGraphExecDestroy, 313, "cudaGraphExecDestroy_v10000")     \
    X(cudaGraphDestroy, 314, "cudaGraphDestroy_v10000")             \
    X(cudaStreamBeginCapture, 315, "cudaStreamBeginCapture_v10000") \
    X(cudaStreamEndCapture, 319, "cudaStreamEndCapture_v10000")     \
    X(cudaGraphInstantiate, 443, "cudaGraphInstantiate_v12000")

/* FAKE_ID_cuLaunchKernel = 307, ... */
enum {
#define FAKE_CALL_ID(function, id, text) FAKE_ID_##function = id,
    FAKE_DRIVER_CALLS(FAKE_CALL_ID) FAKE_RUNTIME_CALLS(FAKE_CALL_ID)
#undef FAKE_CALL_ID
};

/* The "cubin" of this world, what cuModuleLoadData and __cudaRegisterFatBinary take. */
struct fake_kernel {
    const char *name; /* mangled; must stay valid while the process lives */
    uint32_t regs, static_shared_bytes, local_bytes;
    uint64_t duration_ns;
};
enum { FAKE_IMAGE_MAGIC = 0x66616b65 };
struct fake_image {
    uint32_t magic, kernel_count;
    const struct fake_kernel *kernels;
};

struct fake_context;
struct fake_stream;
struct fake_event;
struct fake_graph; /* also what cudaGraphExec_t points to */

/* One API call on the calling thread, from entry to exit. */
struct fake_call {
    uint32_t domain, cbid;
    const char *function, *symbol; /* symbol: kernel of a launch, else NULL */
    const struct fake_context *context;
    void *stream; /* first parameter of a call that waits for a stream, or captures it */
    uint32_t context_id, correlation_id;
    int result;
    uint64_t start_ns, end_ns;
    uint64_t scratch; /* CUPTI's correlationData */
    bool is_traced;
};

enum fake_work_kind { FAKE_WORK_KERNEL, FAKE_WORK_COPY, FAKE_WORK_PEER_COPY, FAKE_WORK_MEMSET };
/* One thing a GPU does; known in full when it is enqueued. */
struct fake_work {
    enum fake_work_kind kind;
    uint64_t queued_ns, start_ns, end_ns;
    uint32_t device_id, context_id, stream_id, correlation_id, graph_id;
    uint64_t graph_node_id, bytes;
    const struct fake_kernel *kernel;
    uint32_t grid[3], block[3], dynamic_shared_bytes;
    uint32_t peer_device_id, peer_context_id; /* source of a peer copy */
    uint32_t value;                           /* of a memset */
    uint8_t copy_kind, src_kind, dst_kind, is_async;
};
struct fake_sync {
    uint64_t start_ns, end_ns;
    uint32_t type /* 1 event, 2 stream waits for event, 3 stream, 4 context */, correlation_id, context_id;
    uint32_t stream_id, event_id; /* ~0: not applicable */
};
struct fake_memory {
    uint64_t time_ns, address, bytes;
    bool is_free;
    uint32_t device_id, context_id, correlation_id;
};
/* Called on the application's threads; must not block for long. */
struct fake_tracer {
    void (*call_enter)(struct fake_call *call);
    void (*call_exit)(struct fake_call *call);
    void (*work)(const struct fake_work *work);
    void (*sync)(const struct fake_sync *sync);
    void (*memory)(const struct fake_memory *memory);
    void (*resource)(uint32_t cbid, void *context, void *stream);
    /* An executable graph begins to be made, gets a node, is made, goes: in the order of the real CUPTI's callbacks. */
    void (*graph)(uint32_t cbid, void *executable, bool is_kernel);
};

/* Exported by the fake libcuda.so.1. NULL ends tracing. */
FAKE_API void fake_cuda_set_tracer(const struct fake_tracer *tracer);
FAKE_API uint64_t fake_now_ns(void);

/* Entry and exit of a traced call. enter returns an error when the call must not go on: fault
 * injected, driver not initialized, used in a forked child, or GPU lost. */
FAKE_API int fake_call_enter(struct fake_call *call, uint32_t domain, uint32_t cbid, const char *function,
                             const char *symbol);
/* The first parameter of the next call of this thread, for subscribers notified of its entry. */
FAKE_API void fake_call_takes(void *stream);
FAKE_API int fake_call_exit(struct fake_call *call, int result);

FAKE_API int fake_device_count(void);
FAKE_API struct fake_context *fake_primary_context(int device);
FAKE_API int fake_has_primary_context(int device);
FAKE_API struct fake_context *fake_current_context(void);
FAKE_API void fake_set_current_context(struct fake_context *context);

FAKE_API const struct fake_kernel *fake_image_find(const struct fake_image *image, const char *name);
FAKE_API struct fake_stream *fake_stream_create(struct fake_context *context, unsigned flags);
FAKE_API void fake_stream_destroy(struct fake_stream *stream);
/* NULL and the two special handles are the context's default stream. */
FAKE_API struct fake_stream *fake_stream_of(struct fake_context *context, void *handle);
/* Enqueues, or adds a graph node while the stream is capturing. Fills ids and times of *work. */
FAKE_API int fake_enqueue(struct fake_stream *stream, struct fake_work *work);
/* For blocking copies, which report no synchronization. */
FAKE_API void fake_work_wait(const struct fake_work *work);
FAKE_API int fake_stream_wait(struct fake_stream *stream);
FAKE_API int fake_context_wait(struct fake_context *context);
FAKE_API int fake_memory_alloc(uint64_t *address, size_t bytes);
FAKE_API int fake_memory_free(uint64_t address);

FAKE_API struct fake_event *fake_event_create(void);
FAKE_API void fake_event_destroy(struct fake_event *event);
FAKE_API void fake_event_record(struct fake_event *event, struct fake_stream *stream);
FAKE_API int fake_event_wait(struct fake_event *event);
FAKE_API bool fake_event_is_done(const struct fake_event *event);
FAKE_API uint64_t fake_event_time_ns(const struct fake_event *event);
FAKE_API void fake_stream_wait_event(struct fake_stream *stream, struct fake_event *event);

FAKE_API int fake_capture_begin(struct fake_stream *stream);
/* NULL: there was none, or what the context was asked meanwhile has invalidated it. */
FAKE_API struct fake_graph *fake_capture_end(struct fake_stream *stream, int *result);
/* What no context can do while one of its streams captures: answers so, and the capture is no longer valid. */
FAKE_API int fake_capture_forbids(struct fake_context *context);
FAKE_API struct fake_graph *fake_graph_instantiate(const struct fake_graph *graph);
FAKE_API int fake_graph_launch(struct fake_graph *graph, struct fake_stream *stream);
FAKE_API void fake_graph_destroy(struct fake_graph *graph);

#endif
