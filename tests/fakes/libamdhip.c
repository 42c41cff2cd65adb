/* SPDX-License-Identifier: Apache-2.0 */
/* Look-alike libamdhip64.so, with ROCTX in it. The first call starts it: as
 * with the real one, that registers its table with librocprofiler-register and
 * opens the compute driver (the file FAKE_KFD names). A launch takes 4 us, a
 * kernel 20. */
#include "hip_fake.h"
#include "rocprofiler_fake.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LAUNCH_NS = 4000, KERNEL_NS = 20000, COPY_NS = 5000, GPUS = 8 };

static struct {
    pthread_once_t once;
    pthread_mutex_t mutex;
    uint64_t busy_until[GPUS];   /* rocprofiler's clock */
    struct fake_hip_table table; /* all NULL: no tool */
} hip = {.once = PTHREAD_ONCE_INIT, .mutex = PTHREAD_MUTEX_INITIALIZER};
static _Thread_local int current_device;

static void start(void)
{
    void *tables[] = {&hip.table};
    uint64_t id = 0;
    (void)rocprofiler_register_library_api_table("hip", NULL, 60300, tables, 1, &id);
    const char *kfd = getenv("FAKE_KFD");
    if (kfd)
        (void)open(kfd, O_RDONLY);
}

struct call {
    const char *name;
    uint64_t correlation, start;
};

static struct call call_begin(const char *name)
{
    struct call call = {name, 0, 0};
    pthread_once(&hip.once, start);
    if (hip.table.fake_rocprofiler_call) {
        call.start = hip.table.fake_rocprofiler_now();
        call.correlation = hip.table.fake_rocprofiler_call(name);
    }
    return call;
}

static int call_end(const struct call *call)
{
    if (hip.table.fake_rocprofiler_call)
        hip.table.fake_rocprofiler_call_end(call->correlation, call->name, call->start);
    return 0;
}

/* The next stretch of time on the GPU. */
static uint64_t gpu_take(int gpu, uint64_t now, uint64_t duration)
{
    pthread_mutex_lock(&hip.mutex);
    uint64_t begin = hip.busy_until[gpu] > now ? hip.busy_until[gpu] : now;
    hip.busy_until[gpu] = begin + duration;
    pthread_mutex_unlock(&hip.mutex);
    return begin;
}

FAKE_API int hipInit(unsigned flags)
{
    (void)flags;
    pthread_once(&hip.once, start);
    return 0;
}

FAKE_API int hipGetDeviceCount(int *count)
{
    struct call call = call_begin("hipGetDeviceCount");
    const char *text = getenv("FAKE_AMD_GPU_COUNT");
    *count = text ? (int)strtol(text, NULL, 10) : 1;
    return call_end(&call);
}

FAKE_API int hipGetDevice(int *device)
{
    struct call call = call_begin("hipGetDevice");
    *device = current_device;
    return call_end(&call);
}

FAKE_API int hipSetDevice(int device)
{
    current_device = device < GPUS ? device : 0;
    return 0;
}

FAKE_API int hipMalloc(void **address, size_t bytes)
{
    struct call call = call_begin("hipMalloc");
    *address = calloc(1, bytes);
    if (hip.table.fake_rocprofiler_call)
        hip.table.fake_rocprofiler_memory(call.correlation, ROCPROFILER_ABI_MEMORY_ALLOCATE,
                                          FAKE_AMD_GPU + (uint64_t)current_device, (uint64_t)(uintptr_t)*address,
                                          bytes);
    return call_end(&call);
}

FAKE_API int hipFree(void *address)
{
    struct call call = call_begin("hipFree");
    if (hip.table.fake_rocprofiler_call)
        hip.table.fake_rocprofiler_memory(call.correlation, ROCPROFILER_ABI_MEMORY_FREE, 0,
                                          (uint64_t)(uintptr_t)address, 0);
    free(address);
    return call_end(&call);
}

static int copy(const char *name, void *destination, const void *source, size_t bytes, int kind)
{
    struct call call = call_begin(name);
    uint64_t gpu = FAKE_AMD_GPU + (uint64_t)current_device;
    memcpy(destination, source, bytes);
    if (hip.table.fake_rocprofiler_call) {
        uint64_t begin = gpu_take(current_device, hip.table.fake_rocprofiler_now(), COPY_NS);
        int operation = kind == FAKE_HIP_TO_DEVICE ? ROCPROFILER_ABI_COPY_HOST_TO_DEVICE
                        : kind == FAKE_HIP_TO_HOST ? ROCPROFILER_ABI_COPY_DEVICE_TO_HOST
                                                   : ROCPROFILER_ABI_COPY_DEVICE_TO_DEVICE;
        hip.table.fake_rocprofiler_copy(call.correlation, operation, kind == FAKE_HIP_TO_DEVICE ? FAKE_AMD_CPU : gpu,
                                        kind == FAKE_HIP_TO_HOST ? FAKE_AMD_CPU : gpu, bytes, begin, begin + COPY_NS);
    }
    return call_end(&call);
}

FAKE_API int hipMemcpy(void *destination, const void *source, size_t bytes, int kind)
{
    return copy("hipMemcpy", destination, source, bytes, kind);
}

FAKE_API int hipMemcpyAsync(void *destination, const void *source, size_t bytes, int kind, void *stream)
{
    (void)stream;
    return copy("hipMemcpyAsync", destination, source, bytes, kind);
}

FAKE_API int hipFakeLoad(struct fake_hip_kernel *kernel, const void *code, size_t code_bytes)
{
    pthread_once(&hip.once, start);
    if (hip.table.fake_rocprofiler_call)
        kernel->kernel_id = hip.table.fake_rocprofiler_load(kernel->name, code, code_bytes);
    return 0;
}

FAKE_API int hipLaunchKernel(const struct fake_hip_kernel *kernel, const unsigned grid[3], const unsigned block[3],
                             size_t shared_bytes, void *stream)
{
    struct call call = call_begin("hipLaunchKernel");
    if (hip.table.fake_rocprofiler_call) {
        uint64_t begin = gpu_take(current_device, hip.table.fake_rocprofiler_now(), KERNEL_NS);
        struct fake_hip_launch launch = {.correlation = call.correlation,
                                         .kernel_id = kernel->kernel_id,
                                         .queue = 1 + (uint64_t)(uintptr_t)stream,
                                         .gpu = (uint32_t)current_device,
                                         .shared_bytes = 1024 + (uint32_t)shared_bytes,
                                         .start = begin,
                                         .end = begin + KERNEL_NS};
        for (int axis = 0; axis < 3; axis++) {
            launch.block[axis] = block[axis];
            launch.grid[axis] = grid[axis] * block[axis];
        }
        hip.table.fake_rocprofiler_launch(&launch);
        while (hip.table.fake_rocprofiler_now() - call.start < LAUNCH_NS) {
        }
    }
    return call_end(&call);
}

FAKE_API int hipDeviceSynchronize(void)
{
    struct call call = call_begin("hipDeviceSynchronize");
    if (hip.table.fake_rocprofiler_call) {
        uint64_t now = hip.table.fake_rocprofiler_now(), end = gpu_take(current_device, 0, 0);
        struct timespec pause = {0, end > now ? (long)(end - now) % 1000000000 : 0};
        nanosleep(&pause, NULL);
    }
    return call_end(&call);
}

/* ---- ROCTX ---- */

static void marker(int operation, const char *text, uint64_t *range_id)
{
    pthread_once(&hip.once, start);
    if (hip.table.fake_rocprofiler_marker)
        hip.table.fake_rocprofiler_marker(operation, text, range_id);
}

FAKE_API void roctxMarkA(const char *text)
{
    marker(ROCPROFILER_ABI_MARK, text, NULL);
}

FAKE_API int roctxRangePushA(const char *text)
{
    marker(ROCPROFILER_ABI_RANGE_PUSH, text, NULL);
    return 0;
}

FAKE_API int roctxRangePop(void)
{
    marker(ROCPROFILER_ABI_RANGE_POP, NULL, NULL);
    return 0;
}

FAKE_API uint64_t roctxRangeStartA(const char *text)
{
    uint64_t id = 0;
    marker(ROCPROFILER_ABI_RANGE_START, text, &id);
    return id;
}

FAKE_API void roctxRangeStop(uint64_t id)
{
    marker(ROCPROFILER_ABI_RANGE_STOP, NULL, &id);
}
