/* SPDX-License-Identifier: Apache-2.0 */
/* A libcupti that forwards to the real one (TAP_CUPTI) and, on the way, writes
 * every kernel record it hands out to a file (TAP_OUT: lines of correlation id,
 * start, end). Named by GPUFL_CUPTI_PATH, it lets a test compare gpufl's log
 * with CUPTI's own records of the very same run. */
#include "driver/cupti_abi.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *real;
static FILE *out;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void open_real(void)
{
    const char *library = getenv("TAP_CUPTI"), *path = getenv("TAP_OUT");
    real = library ? dlopen(library, RTLD_NOW | RTLD_LOCAL) : NULL;
    out = path ? fopen(path, "w") : NULL;
    if (!real || !out) {
        fprintf(stderr, "cupti_tap: TAP_CUPTI and TAP_OUT must name a library and a file: %s\n", dlerror());
        exit(3);
    }
}

static void *real_function(const char *name)
{
    pthread_once(&once, open_real);
    return dlsym(real, name);
}

static cupti_abi_buffer_complete_fn *client_complete;

static void tap_complete(void *context, uint32_t stream_id, uint8_t *buffer, size_t size, size_t valid)
{
    int (*next)(uint8_t *, size_t, void **);
    void *symbol = real_function("cuptiActivityGetNextRecord");
    memcpy(&next, &symbol, sizeof next);
    void *record = NULL;
    pthread_mutex_lock(&mutex);
    while (valid && next(buffer, valid, &record) == 0) {
        const struct cupti_abi_kernel *kernel = record;
        if (kernel->kind == CUPTI_ABI_KIND_CONCURRENT_KERNEL || kernel->kind == CUPTI_ABI_KIND_KERNEL)
            fprintf(out, "%u %llu %llu\n", kernel->correlation_id, (unsigned long long)kernel->start,
                    (unsigned long long)kernel->end);
    }
    fflush(out);
    pthread_mutex_unlock(&mutex);
    client_complete(context, stream_id, buffer, size, valid);
}

#define EXPORT __attribute__((visibility("default")))

EXPORT int cuptiActivityRegisterCallbacks(cupti_abi_buffer_request_fn *request, cupti_abi_buffer_complete_fn *complete);
int cuptiActivityRegisterCallbacks(cupti_abi_buffer_request_fn *request, cupti_abi_buffer_complete_fn *complete)
{
    int (*function)(cupti_abi_buffer_request_fn *, cupti_abi_buffer_complete_fn *);
    void *symbol = real_function("cuptiActivityRegisterCallbacks");
    memcpy(&function, &symbol, sizeof function);
    client_complete = complete;
    return function(request, tap_complete);
}

/* Everything else goes straight through: all arguments fit in registers. */
#define FORWARD(name)                                                 \
    EXPORT long name(long a, long b, long c, long d, long e, long f); \
    long name(long a, long b, long c, long d, long e, long f)         \
    {                                                                 \
        long (*function)(long, long, long, long, long, long);         \
        void *symbol = real_function(#name);                          \
        memcpy(&function, &symbol, sizeof function);                  \
        return function(a, b, c, d, e, f);                            \
    }
FORWARD(cuptiGetVersion)
FORWARD(cuptiGetTimestamp)
FORWARD(cuptiGetResultString)
FORWARD(cuptiSubscribe)
FORWARD(cuptiSubscribe_v2)
FORWARD(cuptiUnsubscribe)
FORWARD(cuptiEnableCallback)
FORWARD(cuptiSetThreadIdType)
FORWARD(cuptiActivityEnable)
FORWARD(cuptiActivityDisable)
FORWARD(cuptiActivityEnableRuntimeApi)
FORWARD(cuptiActivityEnableDriverApi)
FORWARD(cuptiActivityFlushAll)
FORWARD(cuptiActivityGetNextRecord)
FORWARD(cuptiActivityGetNumDroppedRecords)
