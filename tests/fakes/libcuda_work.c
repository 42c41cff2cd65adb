/* SPDX-License-Identifier: Apache-2.0 */
/* Look-alike libcuda.so.1: modules, launches, copies, waits. */
#include "cuda_fake.h"

#include <stdio.h>
#include <string.h>

/* Every function here runs its body between the traced entry and exit. */
#define ENTER(call, function, symbol) fake_call_enter(call, FAKE_DOMAIN_DRIVER, FAKE_ID_##function, #function, symbol)

static int context_check(void)
{
    return fake_current_context() != NULL ? FAKE_SUCCESS : FAKE_INVALID_CONTEXT;
}

static struct fake_stream *stream_of(void *handle)
{
    return fake_stream_of(fake_current_context(), handle);
}

/* PTX, which the real one compiles (CUDA Driver API, cuModuleLoadData): here its first .entry is a kernel of 1 us. */
static const struct fake_image *ptx_load(const char *text)
{
    static char name[64];
    static struct fake_kernel kernel = {.name = name, .regs = 8, .duration_ns = 1000};
    static const struct fake_image image = {FAKE_IMAGE_MAGIC, 1, &kernel};
    const char *entry = strstr(text, ".entry ");
    if (entry == NULL || sscanf(entry, ".entry %63[A-Za-z0-9_]", name) != 1)
        return NULL;
    return &image;
}

FAKE_API int cuModuleLoadData(const struct fake_image **module, const void *image)
{
    const struct fake_image *loaded = image;
    if (image != NULL && strncmp(image, ".version", strlen(".version")) == 0)
        loaded = ptx_load(image);
    if (loaded == NULL || loaded->magic != FAKE_IMAGE_MAGIC)
        return FAKE_INVALID_VALUE;
    *module = loaded;
    return context_check();
}

FAKE_API int cuModuleUnload(const struct fake_image *module)
{
    return module != NULL ? context_check() : FAKE_INVALID_HANDLE;
}

const struct fake_kernel *fake_image_find(const struct fake_image *image, const char *name)
{
    for (uint32_t i = 0; i < image->kernel_count; i++)
        if (strcmp(image->kernels[i].name, name) == 0)
            return &image->kernels[i];
    return NULL;
}

FAKE_API int cuModuleGetFunction(const struct fake_kernel **function, const struct fake_image *module, const char *name)
{
    *function = fake_image_find(module, name);
    return *function != NULL ? context_check() : FAKE_NOT_FOUND;
}

FAKE_API int cuLaunchKernel(const struct fake_kernel *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                            unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream,
                            void **params, void **extra)
{
    struct fake_call call;
    (void)params;
    (void)extra;
    if (function == NULL)
        return FAKE_INVALID_HANDLE;
    int result = ENTER(&call, cuLaunchKernel, function->name);
    if (result == FAKE_SUCCESS)
        result = context_check();
    if (result == FAKE_SUCCESS) {
        struct fake_work work = {.kind = FAKE_WORK_KERNEL,
                                 .kernel = function,
                                 .grid = {grid_x, grid_y, grid_z},
                                 .block = {block_x, block_y, block_z},
                                 .dynamic_shared_bytes = shared_bytes,
                                 .is_async = 1};
        result = fake_enqueue(stream_of(stream), &work);
    }
    return fake_call_exit(&call, result);
}

FAKE_API int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
    struct fake_call call;
    int result = ENTER(&call, cuMemAlloc_v2, NULL);
    if (result == FAKE_SUCCESS)
        result = fake_memory_alloc(address, bytes);
    return fake_call_exit(&call, result);
}

FAKE_API int cuMemFree_v2(uint64_t address)
{
    struct fake_call call;
    int result = ENTER(&call, cuMemFree_v2, NULL);
    if (result == FAKE_SUCCESS)
        result = fake_memory_free(address);
    return fake_call_exit(&call, result);
}

/* A synchronous copy on the default stream; returns when it is done. */
static int copy_now(void *destination, const void *source, size_t bytes, uint8_t copy_kind)
{
    int result = context_check();
    if (result != FAKE_SUCCESS)
        return result;
    struct fake_work work = {.kind = FAKE_WORK_COPY,
                             .bytes = bytes,
                             .copy_kind = copy_kind,
                             .src_kind = copy_kind == 1 ? 1 : 3,
                             .dst_kind = copy_kind == 1 ? 3 : 1};
    result = fake_enqueue(stream_of(NULL), &work);
    memcpy(destination, source, bytes);
    fake_work_wait(&work);
    return result;
}

FAKE_API int cuMemcpyHtoD_v2(uint64_t destination, const void *source, size_t bytes)
{
    struct fake_call call;
    int result = ENTER(&call, cuMemcpyHtoD_v2, NULL);
    if (result == FAKE_SUCCESS)
        result = copy_now((void *)(uintptr_t)destination, source, bytes, 1);
    return fake_call_exit(&call, result);
}

FAKE_API int cuMemcpyDtoH_v2(void *destination, uint64_t source, size_t bytes)
{
    struct fake_call call;
    int result = ENTER(&call, cuMemcpyDtoH_v2, NULL);
    if (result == FAKE_SUCCESS)
        result = copy_now(destination, (const void *)(uintptr_t)source, bytes, 2);
    return fake_call_exit(&call, result);
}

FAKE_API int cuMemsetD8Async(uint64_t destination, unsigned char value, size_t bytes, void *stream)
{
    struct fake_call call;
    int result = ENTER(&call, cuMemsetD8Async, NULL);
    if (result == FAKE_SUCCESS)
        result = context_check();
    if (result == FAKE_SUCCESS) {
        struct fake_work work = {.kind = FAKE_WORK_MEMSET, .bytes = bytes, .value = value, .is_async = 1};
        result = fake_enqueue(stream_of(stream), &work);
        memset((void *)(uintptr_t)destination, value, bytes);
    }
    return fake_call_exit(&call, result);
}

FAKE_API int cuStreamCreate(struct fake_stream **stream, unsigned flags)
{
    struct fake_call call;
    int result = ENTER(&call, cuStreamCreate, NULL);
    if (result == FAKE_SUCCESS)
        result = context_check();
    if (result == FAKE_SUCCESS) {
        *stream = fake_stream_create(fake_current_context(), flags);
        result = *stream != NULL ? FAKE_SUCCESS : FAKE_OUT_OF_MEMORY;
    }
    return fake_call_exit(&call, result);
}

FAKE_API int cuStreamDestroy_v2(struct fake_stream *stream)
{
    fake_stream_destroy(stream);
    return context_check();
}

FAKE_API int cuStreamSynchronize(void *stream)
{
    struct fake_call call;
    int result = ENTER(&call, cuStreamSynchronize, NULL);
    call.stream = stream;
    if (result == FAKE_SUCCESS)
        result = context_check();
    if (result == FAKE_SUCCESS)
        result = fake_stream_wait(stream_of(stream));
    return fake_call_exit(&call, result);
}

FAKE_API int cuCtxSynchronize(void)
{
    struct fake_call call;
    int result = ENTER(&call, cuCtxSynchronize, NULL);
    if (result == FAKE_SUCCESS)
        result = context_check();
    if (result == FAKE_SUCCESS)
        result = fake_capture_forbids(fake_current_context());
    if (result == FAKE_SUCCESS)
        result = fake_context_wait(fake_current_context());
    return fake_call_exit(&call, result);
}

FAKE_API int cuEventCreate(struct fake_event **event, unsigned flags)
{
    (void)flags;
    *event = fake_event_create();
    return *event != NULL ? context_check() : FAKE_OUT_OF_MEMORY;
}

FAKE_API int cuEventDestroy_v2(struct fake_event *event)
{
    fake_event_destroy(event);
    return context_check();
}

FAKE_API int cuEventRecord(struct fake_event *event, void *stream)
{
    struct fake_call call;
    int result = ENTER(&call, cuEventRecord, NULL);
    if (result == FAKE_SUCCESS)
        result = context_check();
    if (result == FAKE_SUCCESS)
        fake_event_record(event, stream_of(stream));
    return fake_call_exit(&call, result);
}

FAKE_API int cuEventSynchronize(struct fake_event *event)
{
    struct fake_call call;
    int result = ENTER(&call, cuEventSynchronize, NULL);
    if (result == FAKE_SUCCESS)
        result = fake_event_wait(event);
    return fake_call_exit(&call, result);
}

FAKE_API int cuStreamWaitEvent(void *stream, struct fake_event *event, unsigned flags)
{
    struct fake_call call;
    (void)flags;
    int result = ENTER(&call, cuStreamWaitEvent, NULL);
    call.stream = stream;
    if (result == FAKE_SUCCESS)
        result = context_check();
    if (result == FAKE_SUCCESS)
        fake_stream_wait_event(stream_of(stream), event);
    return fake_call_exit(&call, result);
}

FAKE_API int cuGraphLaunch(struct fake_graph *graph, void *stream)
{
    struct fake_call call;
    int result = ENTER(&call, cuGraphLaunch, NULL);
    if (result == FAKE_SUCCESS)
        result = context_check();
    if (result == FAKE_SUCCESS)
        result = fake_graph_launch(graph, stream_of(stream));
    return fake_call_exit(&call, result);
}
