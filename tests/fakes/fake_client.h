/* SPDX-License-Identifier: Apache-2.0 */
/* A client of the look-alike libraries for a test program: loads them in a child
 * process, keeps the records that CUPTI delivers, launches kernels. Faults are
 * read once per process, hence the child. Include after cmocka.h. */
#ifndef FAKES_FAKE_CLIENT_H
#define FAKES_FAKE_CLIENT_H

#include "cuda_fake.h"
#include "cudart_fake.h"
#include "cupti_fake.h"
#include "nvml_fake.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUNTIME_USED(X)          \
    X(__cudaRegisterFatBinary)   \
    X(__cudaRegisterFunction)    \
    X(__cudaUnregisterFatBinary) \
    X(cudaLaunchKernel)          \
    X(cudaSetDevice)             \
    X(cudaStreamCreate)          \
    X(cudaStreamSynchronize)     \
    X(cudaDeviceSynchronize)     \
    X(cudaMalloc)                \
    X(cudaFree)                  \
    X(cudaMemcpy)                \
    X(cudaMemset)                \
    X(cudaStreamBeginCapture)    \
    X(cudaStreamEndCapture)      \
    X(cudaGraphInstantiate)      \
    X(cudaGraphLaunch)
#define CUPTI_EXTRA(X)                        \
    X(cuptiActivityPushExternalCorrelationId) \
    X(cuptiActivityPopExternalCorrelationId)  \
    X(cuptiGetCallbackName)                   \
    X(cuptiActivitySetAttribute)              \
    X(cuptiActivityGetAttribute)
#define MEMBER(symbol) __typeof__(&symbol) symbol;
#define ABI_MEMBER(member, symbol, params) int(*member) params;

static struct {
    RUNTIME_USED(MEMBER)
} rt;
static struct {
    CUDA_ABI_FUNCTIONS(ABI_MEMBER)
} cu;
static struct {
    CUPTI_ABI_FUNCTIONS(ABI_MEMBER) CUPTI_EXTRA(MEMBER)
} cupti;
static struct {
    NVML_ABI_FUNCTIONS(ABI_MEMBER)
} nvml;

/* In a child, where cmocka's assertions do not reach. */
#define CHECK(claim)                                                            \
    do {                                                                        \
        if (!(claim)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #claim); \
            _exit(1);                                                           \
        }                                                                       \
    } while (0)

/* What the client of CUPTI saw. */
enum { SEEN_LIMIT = 65536, RECORD_ROOM_BYTES = 256 };
static pthread_mutex_t seen_lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t seen[SEEN_LIMIT][RECORD_ROOM_BYTES];
static size_t seen_count, seen_buffers, seen_empty, seen_unreadable, buffer_bytes = 1 << 16;
static bool gives_no_buffers;

static inline void buffer_request(uint8_t **buffer, size_t *size, size_t *max_records)
{
    *size = buffer_bytes;
    *buffer = gives_no_buffers ? NULL : aligned_alloc(8, buffer_bytes);
    *max_records = 0;
}

static inline size_t stride(uint8_t *buffer, size_t valid, uint8_t *record)
{
    void *next = record;
    return cupti.get_next_record(buffer, valid, &next) == CUPTI_ABI_SUCCESS ? (size_t)((uint8_t *)next - record)
                                                                            : (size_t)(buffer + valid - record);
}

static inline void buffer_complete(void *context, uint32_t stream_id, uint8_t *buffer, size_t size, size_t valid)
{
    void *record = NULL;
    int result;
    (void)context, (void)stream_id, (void)size;
    pthread_mutex_lock(&seen_lock);
    seen_buffers++;
    seen_empty += valid == 0;
    while ((result = cupti.get_next_record(buffer, valid, &record)) == CUPTI_ABI_SUCCESS) {
        CHECK(seen_count < SEEN_LIMIT);
        size_t bytes = stride(buffer, valid, record);
        memcpy(seen[seen_count++], record, bytes < RECORD_ROOM_BYTES ? bytes : RECORD_ROOM_BYTES);
    }
    seen_unreadable += result == CUPTI_ABI_INVALID_KIND;
    pthread_mutex_unlock(&seen_lock);
    free(buffer);
}

static inline uint32_t kind_of(const void *record)
{
    uint32_t kind;
    memcpy(&kind, record, sizeof kind);
    return kind;
}

static inline size_t seen_of_kind(uint32_t kind)
{
    size_t count = 0;
    pthread_mutex_lock(&seen_lock);
    for (size_t i = 0; i < seen_count; i++)
        count += kind_of(seen[i]) == kind;
    pthread_mutex_unlock(&seen_lock);
    return count;
}

/* The nth record of a kind, or NULL. */
static inline const void *seen_at(uint32_t kind, size_t n)
{
    for (size_t i = 0; i < seen_count; i++)
        if (kind_of(seen[i]) == kind && n-- == 0)
            return seen[i];
    return NULL;
}

static const struct fake_kernel test_kernels[] = {{"_Z5shortPf", 32, 0, 0, 1000},
                                                  {"_Z4longPf", 32, 0, 0, 3600000000000},
                                                  {"_Z4halfPf", 32, 0, 0, 400000000},
                                                  {"_Z7secondsPf", 32, 0, 0, 3000000000}};
static const struct fake_image test_image = {FAKE_IMAGE_MAGIC, 4, test_kernels};
#define SHORT_KERNEL (&test_kernels[0])
#define LONG_KERNEL (&test_kernels[1]) /* an hour: never ends */
#define HALF_KERNEL (&test_kernels[2])
#define SECONDS_KERNEL (&test_kernels[3]) /* longer than a busy machine keeps a thread waiting */

static inline void *library_load(const char *file)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", FAKES_DIR, file);
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (library == NULL)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(library != NULL);
    return library;
}

static inline void libraries_load(const char *cupti_file)
{
    void *driver = library_load("libcuda.so.1"), *runtime = library_load("libcudart.so.13");
    void *tracing = library_load(cupti_file), *management = library_load("libnvidia-ml.so.1");
#define LOAD(symbol) *(void **)&rt.symbol = dlsym(runtime, #symbol);
#define EXTRA_LOAD(symbol) *(void **)&cupti.symbol = dlsym(tracing, #symbol);
#define CU_LOAD(member, symbol, params) *(void **)&cu.member = dlsym(driver, #symbol);
#define CUPTI_LOAD(member, symbol, params) *(void **)&cupti.member = dlsym(tracing, #symbol);
#define NVML_LOAD(member, symbol, params) *(void **)&nvml.member = dlsym(management, #symbol);
    RUNTIME_USED(LOAD)
    CUPTI_EXTRA(EXTRA_LOAD)
    CUDA_ABI_FUNCTIONS(CU_LOAD)
    CUPTI_ABI_FUNCTIONS(CUPTI_LOAD)
    NVML_ABI_FUNCTIONS(NVML_LOAD)
    void **handle = rt.__cudaRegisterFatBinary((void *)(uintptr_t)&test_image);
    for (uint32_t i = 0; i < test_image.kernel_count; i++)
        rt.__cudaRegisterFunction(handle, (const char *)&test_kernels[i], NULL, test_kernels[i].name, -1, NULL, NULL,
                                  NULL, NULL, NULL);
    rt.__cudaUnregisterFatBinary(handle);
}

/* What the caller's environment must not change. */
static inline void environment_clear(void)
{
    static const char *const inherited[] = {"CUDA_INJECTION64_PATH", "FAKE_FAULTS", "FAKE_REPLAY", "FAKE_REPLAY_TIMES",
                                            "FAKE_GPU_COUNT"};
    for (size_t i = 0; i < sizeof inherited / sizeof inherited[0]; i++)
        unsetenv(inherited[i]);
}

/* Runs body in a child that has the libraries, with FAKE_FAULTS set. */
static inline void in_child(const char *cupti_file, const char *faults, void (*body)(void))
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("FAKE_FAULTS", faults, 1);
        alarm(600); /* against hangs alone: a busy machine may be slow */
        libraries_load(cupti_file);
        body();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static inline void trace_start(void)
{
    static const uint32_t kinds[] = {1, 2, 4, 5, 10, 22, 38, 39, 49};
    CHECK(cupti.register_callbacks(buffer_request, buffer_complete) == CUPTI_ABI_SUCCESS);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        CHECK(cupti.enable(kinds[i]) == CUPTI_ABI_SUCCESS);
}

static inline int launch(const struct fake_kernel *kernel, void *stream)
{
    return rt.cudaLaunchKernel(kernel, (struct fake_dim3){4, 1, 1}, (struct fake_dim3){128, 1, 1}, NULL, 64, stream);
}

static inline void launches(int count)
{
    for (int i = 0; i < count; i++)
        CHECK(launch(SHORT_KERNEL, NULL) == FAKE_SUCCESS);
    CHECK(rt.cudaDeviceSynchronize() == FAKE_SUCCESS);
}

#endif
