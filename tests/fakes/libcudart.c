/* SPDX-License-Identifier: Apache-2.0 */
/* Look-alike libcudart.so.13: a thin runtime on the fake driver's insides. As
 * with the real one, a runtime call is traced as one runtime call; the driver
 * work below it is not traced again and carries the runtime call's id. */
#include "cudart_fake.h"

#include "cuda_fake.h"
#include "cudart_call.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { FUNCTION_LIMIT = 4096 };
struct registered {
    const void *host_function;
    const struct fake_kernel *kernel;
};
static struct registered functions[FUNCTION_LIMIT];
static size_t function_count;
static pthread_rwlock_t functions_lock = PTHREAD_RWLOCK_INITIALIZER;
static _Thread_local int device_current;
static _Thread_local int error_last;

void **__cudaRegisterFatBinary(void *image)
{
    void **handle = malloc(sizeof *handle);
    if (handle != NULL)
        *handle = image;
    return handle;
}

void __cudaRegisterFunction(void **handle, const char *host_function, char *device_function, const char *name,
                            int thread_limit, void *tid, void *bid, void *block_dim, void *grid_dim, int *warp_size)
{
    (void)device_function, (void)thread_limit, (void)tid, (void)bid, (void)block_dim, (void)grid_dim, (void)warp_size;
    const struct fake_image *image = handle != NULL ? *handle : NULL;
    if (image == NULL || image->magic != FAKE_IMAGE_MAGIC)
        return;
    pthread_rwlock_wrlock(&functions_lock);
    const struct fake_kernel *kernel = fake_image_find(image, name);
    if (kernel != NULL && function_count < FUNCTION_LIMIT)
        functions[function_count++] = (struct registered){host_function, kernel};
    pthread_rwlock_unlock(&functions_lock);
}

void __cudaUnregisterFatBinary(void **handle)
{
    free(handle);
}

static const struct fake_kernel *kernel_of(const void *host_function)
{
    const struct fake_kernel *kernel = NULL;
    pthread_rwlock_rdlock(&functions_lock);
    for (size_t i = 0; i < function_count && kernel == NULL; i++)
        if (functions[i].host_function == host_function)
            kernel = functions[i].kernel;
    pthread_rwlock_unlock(&functions_lock);
    return kernel;
}

/* The runtime initializes the driver and the device's primary context by itself. */
static int context_ready(void)
{
    struct fake_context *context = fake_current_context();
    if (context != NULL)
        return FAKE_SUCCESS;
    int result = cuInit(0);
    if (result != FAKE_SUCCESS)
        return result;
    context = fake_primary_context(device_current);
    if (context == NULL)
        return FAKE_INVALID_DEVICE;
    fake_set_current_context(context);
    return FAKE_SUCCESS;
}

int runtime_call_begin(struct fake_call *call, uint32_t cbid, const char *function, const char *symbol, void *stream)
{
    memset(call, 0, sizeof *call);
    int result = context_ready();
    fake_call_takes(stream);
    return result != FAKE_SUCCESS ? result : fake_call_enter(call, FAKE_DOMAIN_RUNTIME, cbid, function, symbol);
}

int runtime_call_end(struct fake_call *call, int result)
{
    if (result != FAKE_SUCCESS)
        error_last = result;
    return fake_call_exit(call, result);
}

int cudaGetLastError(void)
{
    int error = error_last;
    error_last = FAKE_SUCCESS;
    return error;
}

const char *cudaGetErrorString(int error)
{
    const char *text;
    return cuGetErrorString(error, &text) == FAKE_SUCCESS ? text : "unrecognized error code";
}

int cudaGetDeviceCount(int *count)
{
    struct fake_call call;
    int result = BEGIN(&call, cudaGetDeviceCount, NULL);
    if (result == FAKE_SUCCESS)
        *count = fake_device_count();
    return runtime_call_end(&call, result);
}

int cudaSetDevice(int device)
{
    struct fake_call call;
    int result = BEGIN(&call, cudaSetDevice, NULL);
    struct fake_context *context = result == FAKE_SUCCESS ? fake_primary_context(device) : NULL;
    if (result == FAKE_SUCCESS && context == NULL)
        result = FAKE_INVALID_DEVICE;
    if (result == FAKE_SUCCESS) {
        device_current = device;
        fake_set_current_context(context);
    }
    return runtime_call_end(&call, result);
}

int cudaGetDevice(int *device)
{
    struct fake_call call;
    int result = BEGIN(&call, cudaGetDevice, NULL);
    if (result == FAKE_SUCCESS)
        *device = device_current;
    return runtime_call_end(&call, result);
}

int cudaMalloc(void **address, size_t bytes)
{
    struct fake_call call;
    uint64_t device_address = 0;
    int result = BEGIN(&call, cudaMalloc, NULL);
    if (result == FAKE_SUCCESS)
        result = fake_memory_alloc(&device_address, bytes);
    *address = (void *)(uintptr_t)device_address;
    return runtime_call_end(&call, result);
}

int cudaFree(void *address)
{
    struct fake_call call;
    int result = BEGIN(&call, cudaFree, NULL);
    if (result == FAKE_SUCCESS)
        result = fake_memory_free((uint64_t)(uintptr_t)address);
    return runtime_call_end(&call, result);
}

static int copy_enqueue(void *destination, const void *source, size_t bytes, int kind, void *stream, bool is_async)
{
    static const uint8_t copy_kinds[] = {9, 1, 2, 8}; /* CUPTI's numbers: HtoH, HtoD, DtoH, DtoD */
    if (kind < 0 || kind > 3)
        return FAKE_INVALID_VALUE;
    struct fake_work work = {.kind = FAKE_WORK_COPY,
                             .bytes = bytes,
                             .copy_kind = copy_kinds[kind],
                             .src_kind = kind == FAKE_COPY_TO_HOST || kind == FAKE_COPY_ON_DEVICE ? 3 : 1,
                             .dst_kind = kind == FAKE_COPY_TO_DEVICE || kind == FAKE_COPY_ON_DEVICE ? 3 : 1,
                             .is_async = is_async};
    int result = fake_enqueue(stream_of(stream), &work);
    memmove(destination, source, bytes);
    if (!is_async)
        fake_work_wait(&work);
    return result;
}

int cudaMemcpy(void *destination, const void *source, size_t bytes, int kind)
{
    struct fake_call call;
    int result = BEGIN(&call, cudaMemcpy, NULL);
    if (result == FAKE_SUCCESS)
        result = copy_enqueue(destination, source, bytes, kind, NULL, false);
    return runtime_call_end(&call, result);
}

int cudaMemcpyAsync(void *destination, const void *source, size_t bytes, int kind, void *stream)
{
    struct fake_call call;
    int result = BEGIN(&call, cudaMemcpyAsync, NULL);
    if (result == FAKE_SUCCESS)
        result = copy_enqueue(destination, source, bytes, kind, stream, true);
    return runtime_call_end(&call, result);
}

int cudaMemcpyPeerAsync(void *destination, int destination_device, const void *source, int source_device, size_t bytes,
                        void *stream)
{
    struct fake_call call;
    int result = BEGIN(&call, cudaMemcpyPeerAsync, NULL);
    if (result == FAKE_SUCCESS &&
        (fake_primary_context(destination_device) == NULL || fake_primary_context(source_device) == NULL))
        result = FAKE_INVALID_DEVICE;
    if (result == FAKE_SUCCESS) {
        struct fake_work work = {.kind = FAKE_WORK_PEER_COPY,
                                 .bytes = bytes,
                                 .copy_kind = 10,
                                 .src_kind = 3,
                                 .dst_kind = 3,
                                 .peer_device_id = (uint32_t)source_device,
                                 .is_async = 1};
        result = fake_enqueue(stream_of(stream), &work);
        memmove(destination, source, bytes);
    }
    return runtime_call_end(&call, result);
}

static int memset_enqueue(void *destination, int value, size_t bytes, void *stream, bool is_async)
{
    struct fake_work work = {.kind = FAKE_WORK_MEMSET, .bytes = bytes, .value = (uint8_t)value, .is_async = is_async};
    int result = fake_enqueue(stream_of(stream), &work);
    memset(destination, value, bytes);
    return result;
}

int cudaMemset(void *destination, int value, size_t bytes)
{
    struct fake_call call;
    int result = BEGIN(&call, cudaMemset, NULL);
    if (result == FAKE_SUCCESS)
        result = memset_enqueue(destination, value, bytes, NULL, false);
    return runtime_call_end(&call, result);
}

int cudaMemsetAsync(void *destination, int value, size_t bytes, void *stream)
{
    struct fake_call call;
    int result = BEGIN(&call, cudaMemsetAsync, NULL);
    if (result == FAKE_SUCCESS)
        result = memset_enqueue(destination, value, bytes, stream, true);
    return runtime_call_end(&call, result);
}

int cudaLaunchKernel(const void *function, struct fake_dim3 grid, struct fake_dim3 block, void **args,
                     size_t shared_bytes, void *stream)
{
    struct fake_call call;
    (void)args;
    const struct fake_kernel *kernel = kernel_of(function);
    if (kernel == NULL)
        return error_last = 98; /* cudaErrorInvalidDeviceFunction */
    int result = BEGIN(&call, cudaLaunchKernel, kernel->name);
    if (result == FAKE_SUCCESS) {
        struct fake_work work = {.kind = FAKE_WORK_KERNEL,
                                 .kernel = kernel,
                                 .grid = {grid.x, grid.y, grid.z},
                                 .block = {block.x, block.y, block.z},
                                 .dynamic_shared_bytes = (uint32_t)shared_bytes,
                                 .is_async = 1};
        result = fake_enqueue(stream_of(stream), &work);
    }
    return runtime_call_end(&call, result);
}
