/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/cuda.h"

#include "driver/cuda_abi.h"
#include "driver/library.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct cuda {
#define CUDA_MEMBER(member, symbol, parameters) int(*member) parameters;
    CUDA_ABI_FUNCTIONS(CUDA_MEMBER)
#undef CUDA_MEMBER
    struct library library;
};

static struct cuda the_cuda;
static atomic_bool is_loaded; /* and bound: from then on the lock is not needed */
static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool is_initialized;  /* by this process, as far as known */
static atomic_bool was_initialized; /* by a process that this one was forked from */

static void bind_functions(struct cuda *cuda)
{
#define CUDA_BIND(member, symbol, parameters) \
    cuda->member = __extension__(int(*) parameters) library_symbol(&cuda->library, #symbol);
    CUDA_ABI_FUNCTIONS(CUDA_BIND)
#undef CUDA_BIND
}

static gpufl_status load_once(bool may_load, struct problem *problem)
{
    static const char *const names[] = {"libcuda.so.1", NULL};
    struct library_search search = {"libcuda.so", NULL, NULL, NULL};
    if (may_load) {
        search.path_variable = "GPUFL_CUDA_PATH";
        search.names = names;
    }
    struct problem cause = {""};
    if (!the_cuda.library.handle && library_open(&the_cuda.library, &search, &cause) != GPUFL_OK)
        return problem_set(problem, GPUFL_E_NO_DRIVER, "no NVIDIA driver: %s", cause.text);
    bind_functions(&the_cuda);
    atomic_store_explicit(&is_loaded, true, memory_order_release);
    return GPUFL_OK;
}

gpufl_status cuda_load(struct cuda **out, bool may_load, struct problem *problem)
{
    gpufl_status status = GPUFL_OK;
    if (!atomic_load_explicit(&is_loaded, memory_order_acquire)) {
        pthread_mutex_lock(&load_lock);
        if (!atomic_load_explicit(&is_loaded, memory_order_relaxed))
            status = load_once(may_load, problem);
        pthread_mutex_unlock(&load_lock);
    }
    if (status == GPUFL_OK)
        *out = &the_cuda;
    return status;
}

void cuda_abandon(void)
{
    pthread_mutex_init(&load_lock, NULL); /* a thread of the parent may have held it */
    if (atomic_exchange(&is_initialized, false))
        atomic_store(&was_initialized, true);
}

void cuda_note_use(void)
{
    if (!atomic_load_explicit(&is_initialized, memory_order_relaxed)) /* usually true: then no cache line is written */
        atomic_store(&is_initialized, true);
}

bool cuda_is_of_parent(void)
{
    return atomic_load(&was_initialized);
}

static const char *result_text(const struct cuda *cuda, int result)
{
    const char *text = NULL;
    if (!cuda->error_string || cuda->error_string(result, &text) != CUDA_ABI_SUCCESS || !text)
        return "unknown error";
    return text;
}

gpufl_status cuda_initialize(struct cuda *cuda, struct problem *problem)
{
    if (!cuda->init)
        return problem_set(problem, GPUFL_E_NO_DRIVER, "%s has no cuInit: not a CUDA driver", cuda->library.path);
    int result = cuda->init(0);
    if (result != CUDA_ABI_SUCCESS)
        return problem_set(problem, GPUFL_E_NO_DRIVER, "cuInit failed: %s (%d); check the driver with nvidia-smi",
                           result_text(cuda, result), result);
    return GPUFL_OK;
}

int cuda_driver_version(const struct cuda *cuda)
{
    int version = 0;
    if (!cuda->driver_version || cuda->driver_version(&version) != CUDA_ABI_SUCCESS || version < 0)
        return 0;
    return version;
}

int cuda_device_count(const struct cuda *cuda)
{
    int count = 0;
    if (!cuda->device_count || cuda->device_count(&count) != CUDA_ABI_SUCCESS || count < 0)
        return 0;
    cuda_note_use(); /* the count is only known when CUDA is initialized */
    return count;
}

/* 0 when the driver does not report it. */
static uint32_t attribute(const struct cuda *cuda, int device, int id)
{
    int value = 0;
    if (cuda->device_attribute(&value, id, device) != CUDA_ABI_SUCCESS || value < 0)
        return 0;
    return (uint32_t)value;
}

static void read_uuid(const struct cuda *cuda, int device, char *text, size_t size)
{
    struct cuda_abi_uuid uuid;
    int result = cuda->device_uuid_v2 ? cuda->device_uuid_v2(&uuid, device)
                 : cuda->device_uuid  ? cuda->device_uuid(&uuid, device)
                                      : CUDA_ABI_NOT_INITIALIZED;
    if (result != CUDA_ABI_SUCCESS)
        return;
    const unsigned char *b = uuid.bytes;
    snprintf(text, size, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2],
             b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

static void read_limits(const struct cuda *cuda, int device, struct device_limits *limits)
{
    limits->compute_major = attribute(cuda, device, CUDA_ABI_COMPUTE_MAJOR);
    limits->compute_minor = attribute(cuda, device, CUDA_ABI_COMPUTE_MINOR);
    limits->multiprocessors = attribute(cuda, device, CUDA_ABI_MULTIPROCESSORS);
    limits->warp_size = attribute(cuda, device, CUDA_ABI_WARP_SIZE);
    if (limits->warp_size)
        limits->warps_per_sm_max = attribute(cuda, device, CUDA_ABI_THREADS_PER_SM) / limits->warp_size;
    limits->blocks_per_sm_max = attribute(cuda, device, CUDA_ABI_BLOCKS_PER_SM);
    limits->regs_per_sm = attribute(cuda, device, CUDA_ABI_REGS_PER_SM);
    limits->regs_per_block_max = attribute(cuda, device, CUDA_ABI_REGS_PER_BLOCK);
    limits->shared_per_sm = attribute(cuda, device, CUDA_ABI_SHARED_PER_SM);
    limits->shared_per_block_max = attribute(cuda, device, CUDA_ABI_SHARED_PER_BLOCK_OPTIN);
    limits->shared_reserved_per_block = attribute(cuda, device, CUDA_ABI_SHARED_RESERVED_PER_BLOCK);
    limits->core_clock_khz = attribute(cuda, device, CUDA_ABI_CLOCK_KHZ);
    limits->l2_bytes = attribute(cuda, device, CUDA_ABI_L2_BYTES);
    /* Two transfers per clock, bits to bytes. */
    limits->memory_bandwidth_bps = 2ull * attribute(cuda, device, CUDA_ABI_MEMORY_CLOCK_KHZ) * 1000 *
                                   attribute(cuda, device, CUDA_ABI_MEMORY_BUS_BITS) / 8;
    size_t bytes = 0;
    if (cuda->device_memory && cuda->device_memory(&bytes, device) == CUDA_ABI_SUCCESS)
        limits->memory_bytes = bytes;
    if (!cuda->device_name || cuda->device_name(limits->name, (int)sizeof limits->name, device) != CUDA_ABI_SUCCESS)
        limits->name[0] = '\0';
    limits->name[sizeof limits->name - 1] = '\0';
    read_uuid(cuda, device, limits->uuid, sizeof limits->uuid);
}

gpufl_status cuda_device_limits(const struct cuda *cuda, uint32_t device_id, struct device_limits *limits)
{
    if (!cuda->device_get || !cuda->device_attribute)
        return GPUFL_E_NO_DRIVER;
    if (device_id > INT32_MAX)
        return GPUFL_E_NOT_FOUND;
    int device;
    int result = cuda->device_get(&device, (int)device_id);
    if (result != CUDA_ABI_SUCCESS)
        return result == CUDA_ABI_NOT_INITIALIZED ? GPUFL_E_NO_DRIVER : GPUFL_E_NOT_FOUND;
    struct device_limits read = {.device_id = device_id};
    read_limits(cuda, device, &read);
    read.is_known = read.multiprocessors != 0;
    *limits = read;
    return GPUFL_OK;
}

void *cuda_primary_context(const struct cuda *cuda, int device_id)
{
    int device, is_active = 0;
    unsigned flags = 0;
    void *context = NULL;
    if (!cuda->primary_state || !cuda->primary_retain || !cuda->device_get ||
        cuda->device_get(&device, device_id) != CUDA_ABI_SUCCESS ||
        cuda->primary_state(device, &flags, &is_active) != CUDA_ABI_SUCCESS || !is_active ||
        cuda->primary_retain(&context, device) != CUDA_ABI_SUCCESS)
        return NULL;
    return context;
}

void *cuda_current_context(const struct cuda *cuda)
{
    void *context = NULL;
    return cuda->current && cuda->current(&context) == CUDA_ABI_SUCCESS ? context : NULL;
}

bool cuda_context_push(const struct cuda *cuda, void *context)
{
    return cuda->push_current && cuda->pop_current && cuda->push_current(context) == CUDA_ABI_SUCCESS;
}

void cuda_context_pop(const struct cuda *cuda)
{
    void *popped;
    (void)cuda->pop_current(&popped);
}

bool cuda_synchronize(const struct cuda *cuda, void *context)
{
    void *popped;
    if (!cuda->push_current || !cuda->pop_current || !cuda->synchronize ||
        cuda->push_current(context) != CUDA_ABI_SUCCESS)
        return false;
    bool is_done = cuda->synchronize() == CUDA_ABI_SUCCESS;
    return cuda->pop_current(&popped) == CUDA_ABI_SUCCESS && is_done;
}
