/* SPDX-License-Identifier: Apache-2.0 */
/* Look-alike libcuda.so.1: start-up with injection, tracing hooks, devices, contexts. */
#include "cuda_fake.h"

#include "faults.h"
#include "gpu_timeline.h"
#include "h200.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Atomic(const struct fake_tracer *) tracer_current;
static atomic_uint correlation_count;
static _Thread_local uint32_t correlation_current;
static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool is_initializing; /* the injected library may call back into cuInit */
static atomic_int initialized_pid;         /* a forked child must not use the parent's driver state */

void fake_cuda_set_tracer(const struct fake_tracer *tracer)
{
    atomic_store(&tracer_current, tracer);
    if (tracer == NULL)
        atomic_store(&correlation_count, 0); /* after cuptiFinalize ids begin at 1 again (H200, CUPTI 13.0) */
}

const struct fake_tracer *tracer_get(void)
{
    return atomic_load_explicit(&tracer_current, memory_order_acquire);
}

uint32_t correlation_id_current(void)
{
    return correlation_current;
}

static int driver_state(void)
{
    if (atomic_load_explicit(&initialized_pid, memory_order_acquire) != getpid())
        return FAKE_NOT_INITIALIZED;
    return fault_gpu_is_lost() ? FAKE_UNKNOWN : FAKE_SUCCESS;
}

static _Thread_local void *first_parameter;

void fake_call_takes(void *stream)
{
    first_parameter = stream;
}

int fake_call_enter(struct fake_call *call, uint32_t domain, uint32_t cbid, const char *function, const char *symbol)
{
    memset(call, 0, sizeof *call);
    call->stream = first_parameter;
    first_parameter = NULL;
    bool is_init = domain == FAKE_DOMAIN_DRIVER && cbid == FAKE_ID_cuInit; /* checks these itself */
    int result = is_init ? FAKE_SUCCESS : fault_result(function);
    if (result == FAKE_SUCCESS && !is_init)
        result = driver_state();
    if (result == FAKE_NOT_INITIALIZED)
        return result; /* the real driver does not report these either */
    call->domain = domain;
    call->cbid = cbid;
    call->function = function;
    call->symbol = symbol;
    call->context = fake_current_context();
    call->context_id = call->context != NULL ? call->context->id : 0;
    call->correlation_id = correlation_current = atomic_fetch_add(&correlation_count, 1) + 1;
    const struct fake_tracer *tracer = tracer_get();
    call->is_traced = tracer != NULL;
    if (call->is_traced)
        tracer->call_enter(call);
    call->start_ns = fake_now_ns();
    return result;
}

int fake_call_exit(struct fake_call *call, int result)
{
    call->result = result;
    if (call->is_traced) {
        call->end_ns = fake_now_ns();
        const struct fake_tracer *tracer = tracer_get();
        if (tracer != NULL)
            tracer->call_exit(call);
    }
    return result;
}

/* What the real driver does in cuInit when the variable is set. */
static void injection_load(void)
{
    const char *path = getenv("CUDA_INJECTION64_PATH");
    if (path == NULL || *path == '\0')
        return;
    void *library = dlopen(path, RTLD_LAZY);
    int (*initialize)(void);
    if (library == NULL)
        return;
    *(void **)&initialize = dlsym(library, "InitializeInjection");
    if (initialize != NULL)
        initialize();
}

FAKE_API int cuInit(unsigned flags)
{
    struct fake_call call;
    if (flags != 0)
        return FAKE_INVALID_VALUE;
    if (is_initializing || atomic_load(&initialized_pid) == getpid())
        return FAKE_SUCCESS;
    if (atomic_load(&initialized_pid) != 0)
        return FAKE_NOT_INITIALIZED;
    if (fault_number("no_device", 0) != 0 || h200_count() == 0)
        return FAKE_NO_DEVICE;
    int result = fault_result("cuInit");
    if (result != FAKE_SUCCESS)
        return result;
    pthread_mutex_lock(&init_lock);
    if (atomic_load(&initialized_pid) == 0) {
        is_initializing = true;
        injection_load();
        is_initializing = false;
        fault_gpu_is_lost(); /* its delay counts from here */
        result = fake_call_enter(&call, FAKE_DOMAIN_DRIVER, FAKE_ID_cuInit, "cuInit", NULL);
        atomic_store(&initialized_pid, getpid());
        fake_call_exit(&call, result);
        const struct fake_tracer *tracer = tracer_get();
        if (tracer != NULL)
            tracer->resource(FAKE_RESOURCE_INIT_FINISHED, NULL, NULL);
    }
    pthread_mutex_unlock(&init_lock);
    return result;
}

FAKE_API int cuDriverGetVersion(int *version)
{
    *version = H200_CUDA_VERSION;
    return FAKE_SUCCESS;
}

static const struct {
    int result;
    const char *name, *text;
} result_names[] = {
    {FAKE_SUCCESS, "CUDA_SUCCESS", "no error"},
    {FAKE_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {FAKE_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {FAKE_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {FAKE_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {FAKE_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {FAKE_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {FAKE_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {FAKE_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {FAKE_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {FAKE_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static int result_find(int result, const char **name, const char **text)
{
    for (size_t i = 0; i < sizeof result_names / sizeof result_names[0]; i++)
        if (result_names[i].result == result) {
            *name = result_names[i].name;
            *text = result_names[i].text;
            return FAKE_SUCCESS;
        }
    *name = *text = NULL;
    return FAKE_INVALID_VALUE;
}

FAKE_API int cuGetErrorString(int result, const char **text)
{
    const char *name;
    return result_find(result, &name, text);
}

FAKE_API int cuGetErrorName(int result, const char **name)
{
    const char *text;
    return result_find(result, name, &text);
}

int fake_device_count(void)
{
    return h200_count();
}

FAKE_API int cuDeviceGetCount(int *count)
{
    int result = driver_state();
    if (result == FAKE_SUCCESS)
        *count = fake_device_count();
    return result;
}

static int device_check(int device)
{
    int result = driver_state();
    if (result != FAKE_SUCCESS)
        return result;
    return device >= 0 && device < fake_device_count() ? FAKE_SUCCESS : FAKE_INVALID_DEVICE;
}

FAKE_API int cuDeviceGet(int *device, int ordinal)
{
    int result = device_check(ordinal);
    if (result == FAKE_SUCCESS)
        *device = ordinal;
    return result;
}

FAKE_API int cuDeviceGetName(char *name, int size, int device)
{
    int result = device_check(device);
    if (result == FAKE_SUCCESS && size > 0)
        snprintf(name, (size_t)size, "%s", H200_NAME);
    return result;
}

FAKE_API int cuDeviceGetUuid_v2(struct cuda_abi_uuid *uuid, int device)
{
    int result = device_check(device);
    if (result == FAKE_SUCCESS)
        h200_uuid(device, uuid->bytes);
    return result;
}

FAKE_API int cuDeviceGetUuid(struct cuda_abi_uuid *uuid, int device)
{
    return cuDeviceGetUuid_v2(uuid, device);
}

FAKE_API int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    int result = device_check(device);
    if (result == FAKE_SUCCESS)
        *bytes = H200_MEMORY_BYTES;
    return result;
}

FAKE_API int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    static const struct {
        int attribute, value;
    } known[] = {
        {1, 1024},
        {2, 1024},
        {3, 1024},
        {4, 64},
        {5, 2147483647},
        {6, 65535},
        {7, 65535},
        {8, 49152},
        {9, 65536},
        {CUDA_ABI_WARP_SIZE, 32},
        {CUDA_ABI_REGS_PER_BLOCK, 65536},
        {CUDA_ABI_CLOCK_KHZ, 1980000},
        {CUDA_ABI_MULTIPROCESSORS, 132},
        {31, 1},
        {32, 1},
        {CUDA_ABI_MEMORY_CLOCK_KHZ, 3201000},
        {CUDA_ABI_MEMORY_BUS_BITS, 6144},
        {CUDA_ABI_L2_BYTES, 62914560},
        {CUDA_ABI_THREADS_PER_SM, 2048},
        {40, 3},
        {41, 1},
        {CUDA_ABI_COMPUTE_MAJOR, 9},
        {CUDA_ABI_COMPUTE_MINOR, 0},
        {CUDA_ABI_SHARED_PER_SM, 233472},
        {CUDA_ABI_REGS_PER_SM, 65536},
        {CUDA_ABI_SHARED_PER_BLOCK_OPTIN, 232448},
        {CUDA_ABI_BLOCKS_PER_SM, 32},
        {CUDA_ABI_SHARED_RESERVED_PER_BLOCK, 1024},
    };
    int result = fault_result("cuDeviceGetAttribute");
    if (result == FAKE_SUCCESS)
        result = device_check(device);
    if (result != FAKE_SUCCESS)
        return result;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].attribute == attribute) {
            *value = known[i].value;
            return FAKE_SUCCESS;
        }
    return FAKE_INVALID_VALUE;
}

FAKE_API int cuDevicePrimaryCtxRetain(void **context, int device)
{
    int result = device_check(device);
    if (result == FAKE_SUCCESS) {
        *context = fake_primary_context(device);
        result = *context != NULL ? FAKE_SUCCESS : FAKE_OUT_OF_MEMORY;
    }
    return result;
}

FAKE_API int cuCtxCreate_v2(struct fake_context **context, unsigned flags, int device)
{
    struct fake_call call;
    (void)flags;
    int result = fake_call_enter(&call, FAKE_DOMAIN_DRIVER, FAKE_ID_cuCtxCreate_v2, "cuCtxCreate_v2", NULL);
    if (result == FAKE_SUCCESS)
        result = device_check(device);
    if (result == FAKE_SUCCESS) {
        *context = context_create(device);
        result = *context != NULL ? FAKE_SUCCESS : FAKE_OUT_OF_MEMORY;
    }
    if (result == FAKE_SUCCESS)
        fake_set_current_context(*context);
    return fake_call_exit(&call, result);
}

FAKE_API int cuCtxSetCurrent(struct fake_context *context)
{
    fake_set_current_context(context);
    return driver_state();
}

FAKE_API int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *is_active)
{
    int result = device_check(device);
    *flags = 0;
    *is_active = result == FAKE_SUCCESS && fake_has_primary_context(device);
    return result;
}

FAKE_API int cuCtxGetCurrent(void **context)
{
    *context = fake_current_context();
    return driver_state();
}

/* One level is enough: whoever pushes pops before it pushes again. */
static _Thread_local struct fake_context *pushed_over;

FAKE_API int cuCtxPushCurrent_v2(void *context)
{
    pushed_over = fake_current_context();
    fake_set_current_context(context);
    return driver_state();
}

FAKE_API int cuCtxPopCurrent_v2(void **context)
{
    *context = fake_current_context();
    fake_set_current_context(pushed_over);
    return driver_state();
}

FAKE_API int cuCtxGetDevice(int *device)
{
    struct fake_context *context = fake_current_context();
    if (context == NULL)
        return FAKE_INVALID_CONTEXT;
    *device = context->device;
    return driver_state();
}

FAKE_API int cuCtxDestroy_v2(struct fake_context *context)
{
    const struct fake_tracer *tracer = tracer_get();
    if (tracer != NULL)
        tracer->resource(FAKE_RESOURCE_CONTEXT_DESTROYING, context, NULL);
    if (fake_current_context() == context)
        fake_set_current_context(NULL); /* the memory stays: late records may name it */
    return driver_state();
}
