/* SPDX-License-Identifier: Apache-2.0 */
/* A CUDA program with its own profiler, which uses CUPTI as well-known ones
 * do, by --style:
 *   kineto  PyTorch's libkineto (CuptiActivityApi.cpp, CuptiCallbackApi.cpp): one subscription for the life of the
 *           process, with callbacks of contexts; each profile registers, sets its own clock (CuptiTimestamp.cpp) and leaves
 *           out records of other times, enables kinds, disables them, and flushes some
 *           time later, while the program goes on. Only of GPU work, so that CUPTI has asked for no buffer until then
 *   xla     JAX (cupti_tracer.cc): each profile subscribes, enables callbacks and kinds; disables, flushes, unsubscribes
 *   proton  Triton (CuptiProfiler.cpp): flushes before it disables; unsubscribes and finalizes
 * Built twice: linked to CUPTI, and with dlopen and dlsym (PROFILED_BY_DLSYM). */
#include "driver/cupti_abi.h"
#include "cudart_fake.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { AFTER_DISABLE = 5, BUFFER_BYTES = 65536, RESOURCE_CONTEXT_CREATED = 1, LAUNCH_KERNEL = 211 };

#define FUNCTIONS(X)                          \
    X(cuptiSubscribe)                         \
    X(cuptiUnsubscribe)                       \
    X(cuptiEnableCallback)                    \
    X(cuptiActivityRegisterCallbacks)         \
    X(cuptiActivityRegisterTimestampCallback) \
    X(cuptiActivityEnable)                    \
    X(cuptiActivityDisable)                   \
    X(cuptiActivityFlushAll)                  \
    X(cuptiActivityGetNextRecord)             \
    X(cuptiFinalize)

#define PROTOTYPE(member, symbol, parameters) extern int symbol parameters;
CUPTI_ABI_FUNCTIONS(PROTOTYPE)
extern int cuptiActivityRegisterTimestampCallback(cupti_abi_timestamp_fn *now);

static struct {
#define MEMBER(symbol) __typeof__(&symbol) symbol;
    FUNCTIONS(MEMBER)
} cupti;

static const uint32_t kinds[] = {CUPTI_ABI_KIND_MEMCPY, CUPTI_ABI_KIND_MEMSET, CUPTI_ABI_KIND_CONCURRENT_KERNEL,
                                 CUPTI_ABI_KIND_RUNTIME};
static int kind_count = sizeof kinds / sizeof kinds[0];

static atomic_uint kernels_seen, calls_seen, buffers_out, failures;
static void *subscriber;
static struct fake_kernel kernel = {"_Z4workPf", 32, 0, 0, 5000};
static struct fake_image image = {FAKE_IMAGE_MAGIC, 1, &kernel};

/* A separate clock, as Kineto uses the CPU's counter. */
static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
static atomic_ullong profile_start_ns, profile_end_ns; /* by it; 0: records of any time */

static void load_cupti(void)
{
#ifdef PROFILED_BY_DLSYM
    void *library = dlopen("libcupti.so.13", RTLD_LAZY);
#define LOAD(symbol) *(void **)&cupti.symbol = library ? dlsym(library, #symbol) : NULL;
#else
#define LOAD(symbol) cupti.symbol = symbol;
#endif
    FUNCTIONS(LOAD)
}

static void check(int result, const char *what)
{
    if (result == CUPTI_ABI_SUCCESS)
        return;
    fprintf(stderr, "profiled_app: %s: %d\n", what, result);
    atomic_fetch_add(&failures, 1);
}

static void request(uint8_t **buffer, size_t *size, size_t *max_records)
{
    *size = BUFFER_BYTES;
    *buffer = aligned_alloc(8, BUFFER_BYTES);
    *max_records = 0;
    atomic_fetch_add(&buffers_out, 1);
}

static bool is_in_profile(const void *record)
{
    struct cupti_abi_kernel kernel_record;
    memcpy(&kernel_record, record, offsetof(struct cupti_abi_kernel, end) + sizeof kernel_record.end);
    uint64_t start_ns = atomic_load(&profile_start_ns), end_ns = atomic_load(&profile_end_ns);
    return !start_ns || (kernel_record.start >= start_ns && (!end_ns || kernel_record.start <= end_ns));
}

static void complete(void *context, uint32_t stream_id, uint8_t *buffer, size_t size, size_t valid)
{
    void *record = NULL;
    (void)context, (void)stream_id, (void)size;
    while (cupti.cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_ABI_SUCCESS)
        if (*(uint32_t *)record == CUPTI_ABI_KIND_CONCURRENT_KERNEL && is_in_profile(record))
            atomic_fetch_add(&kernels_seen, 1);
    free(buffer);
    atomic_fetch_sub(&buffers_out, 1);
}

static void on_callback(void *user, uint32_t domain, uint32_t cbid, const void *data)
{
    const struct cupti_abi_callback_data *call = data;
    (void)user;
    if (domain == CUPTI_ABI_DOMAIN_RUNTIME && cbid == LAUNCH_KERNEL && call->site == CUPTI_ABI_API_ENTER)
        atomic_fetch_add(&calls_seen, 1);
}

static void launch(int count)
{
    struct fake_dim3 grid = {1, 1, 1}, block = {32, 1, 1};
    for (int i = 0; i < count; i++)
        if (cudaLaunchKernel(&kernel, grid, block, NULL, 0, NULL) != 0)
            atomic_fetch_add(&failures, 1);
    if (cudaDeviceSynchronize() != 0)
        atomic_fetch_add(&failures, 1);
}

static void subscribe(bool with_calls)
{
    check(cupti.cuptiSubscribe(&subscriber, on_callback, NULL), "cuptiSubscribe");
    check(cupti.cuptiEnableCallback(1, subscriber, CUPTI_ABI_DOMAIN_RESOURCE, RESOURCE_CONTEXT_CREATED),
          "cuptiEnableCallback");
    if (with_calls)
        check(cupti.cuptiEnableCallback(1, subscriber, CUPTI_ABI_DOMAIN_RUNTIME, LAUNCH_KERNEL), "cuptiEnableCallback");
}

static void disable(void)
{
    for (int i = 0; i < kind_count; i++)
        check(cupti.cuptiActivityDisable(kinds[i]), "cuptiActivityDisable");
}

static void flush(void)
{
    check(cupti.cuptiActivityFlushAll(CUPTI_ABI_FLUSH_FORCED), "cuptiActivityFlushAll");
}

static void profile(const char *style, int launches)
{
    bool is_kineto = !strcmp(style, "kineto"), is_proton = !strcmp(style, "proton");
    if (!is_kineto)
        subscribe(true);
    if (is_kineto) {
        check(cupti.cuptiActivityRegisterTimestampCallback(now_ns), "cuptiActivityRegisterTimestampCallback");
        atomic_store(&profile_end_ns, 0);
        atomic_store(&profile_start_ns, now_ns());
    }
    check(cupti.cuptiActivityRegisterCallbacks(request, complete), "cuptiActivityRegisterCallbacks");
    for (int i = 0; i < kind_count; i++)
        check(cupti.cuptiActivityEnable(kinds[i]), "cuptiActivityEnable");
    launch(launches);
    if (is_proton)
        flush();
    disable();
    if (is_kineto) {
        atomic_store(&profile_end_ns, now_ns());
        launch(AFTER_DISABLE);
    }
    if (!is_proton)
        flush();
    if (!is_kineto)
        check(cupti.cuptiUnsubscribe(subscriber), "cuptiUnsubscribe");
    if (is_proton)
        check(cupti.cuptiFinalize(), "cuptiFinalize");
}

static atomic_bool is_over;

static void *launch_beside(void *argument)
{
    atomic_ullong *launched = argument;
    struct fake_dim3 grid = {1, 1, 1}, block = {32, 1, 1};
    while (!atomic_load(&is_over))
        if (cudaLaunchKernel(&kernel, grid, block, NULL, 0, NULL) == 0)
            atomic_fetch_add(launched, 1);
    return NULL;
}

static int number(const char *text)
{
    return (int)strtol(text, NULL, 10);
}

/* usage: profiled_app STYLE CYCLES BEFORE PROFILED AFTER [beside]: each cycle makes BEFORE launches, PROFILED in a profile,
 * and AFTER; beside: a second thread launches all the time */
int main(int argc, char **argv)
{
    if (argc < 6)
        return 2;
    const char *style = argv[1];
    int cycles = number(argv[2]), before = number(argv[3]), profiled = number(argv[4]), after = number(argv[5]);
    load_cupti();
    void **handle = __cudaRegisterFatBinary(&image);
    __cudaRegisterFunction(handle, (const char *)&kernel, NULL, kernel.name, -1, NULL, NULL, NULL, NULL, NULL);
    if (!strcmp(style, "kineto")) {
        kind_count--; /* without calls */
        subscribe(false);
    }
    atomic_ullong beside = 0;
    pthread_t thread;
    bool has_thread = argc > 6 && pthread_create(&thread, NULL, launch_beside, &beside) == 0;
    for (int i = 0; i < cycles; i++) {
        if (before)
            launch(before);
        profile(style, profiled);
        if (after)
            launch(after);
    }
    atomic_store(&is_over, true);
    if (has_thread)
        pthread_join(thread, NULL);
    if (cudaDeviceSynchronize() != 0)
        atomic_fetch_add(&failures, 1);
    printf("seen=%u calls=%u failures=%u left=%u beside=%llu\n", kernels_seen, calls_seen, failures, buffers_out,
           (unsigned long long)beside);
    return failures != 0;
}
