/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest tool that can be injected: counts what CUPTI and NVTX give it and
 * appends one line to the file FAKE_PROBE_OUT at exit. What a tracer must find. */
#include "driver/cupti_abi.h"
#include "fake_gpu.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

FAKE_API int InitializeInjection(void);
FAKE_API int InitializeInjectionNvtx2(const void *(*get_table)(uint32_t id));

static struct {
#define PROBE_MEMBER(member, symbol, params) int(*member) params;
    CUPTI_ABI_FUNCTIONS(PROBE_MEMBER)
} cupti;
static atomic_ulong injections, kinds[64], pushes, pops;
static pid_t owner;

static void buffer_request(uint8_t **buffer, size_t *size, size_t *max_records)
{
    *size = 1 << 20;
    *buffer = malloc(*size);
    *max_records = 0;
}

static void buffer_complete(void *context, uint32_t stream_id, uint8_t *buffer, size_t size, size_t valid)
{
    void *record = NULL;
    (void)context, (void)stream_id, (void)size;
    while (cupti.get_next_record(buffer, valid, &record) == CUPTI_ABI_SUCCESS)
        atomic_fetch_add(&kinds[*(uint32_t *)record % 64], 1);
    free(buffer);
}

static void report(void)
{
    const char *path = getenv("FAKE_PROBE_OUT");
    if (getpid() != owner)
        return;
    size_t dropped = 0;
    if (cupti.flush_all != NULL && cupti.flush_all(CUPTI_ABI_FLUSH_FORCED) == CUPTI_ABI_SUCCESS)
        (void)cupti.get_dropped(NULL, 0, &dropped);
    FILE *file = path != NULL ? fopen(path, "a") : NULL;
    if (file == NULL)
        return;
    fprintf(file,
            "injections=%lu kernels=%lu copies=%lu memsets=%lu syncs=%lu runtime=%lu driver=%lu dropped=%zu "
            "pushes=%lu pops=%lu\n",
            injections, kinds[CUPTI_ABI_KIND_CONCURRENT_KERNEL],
            kinds[CUPTI_ABI_KIND_MEMCPY] + kinds[CUPTI_ABI_KIND_MEMCPY2], kinds[CUPTI_ABI_KIND_MEMSET],
            kinds[CUPTI_ABI_KIND_SYNCHRONIZATION], kinds[CUPTI_ABI_KIND_RUNTIME], kinds[CUPTI_ABI_KIND_DRIVER], dropped,
            pushes, pops);
    fclose(file);
}

int InitializeInjection(void)
{
    static const uint32_t wanted[] = {
        CUPTI_ABI_KIND_CONCURRENT_KERNEL, CUPTI_ABI_KIND_MEMCPY,  CUPTI_ABI_KIND_MEMCPY2, CUPTI_ABI_KIND_MEMSET,
        CUPTI_ABI_KIND_SYNCHRONIZATION,   CUPTI_ABI_KIND_RUNTIME, CUPTI_ABI_KIND_DRIVER};
    atomic_fetch_add(&injections, 1);
    owner = getpid();
    atexit(report);
    const char *path = getenv("FAKE_PROBE_CUPTI");
    void *library = dlopen(path != NULL ? path : "libcupti.so.13", RTLD_NOW);
    if (library == NULL)
        return 0;
#define PROBE_LOAD(member, symbol, params) *(void **)&cupti.member = dlsym(library, #symbol);
    CUPTI_ABI_FUNCTIONS(PROBE_LOAD)
    if (cupti.register_callbacks(buffer_request, buffer_complete) != CUPTI_ABI_SUCCESS)
        return 0;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        (void)cupti.enable(wanted[i]);
    return 1;
}

typedef void function(void);
struct callbacks_table {
    size_t struct_size;
    int (*get_module)(uint32_t module, function ****table, unsigned *count);
};

static int range_push(const char *name)
{
    atomic_fetch_add(&pushes, name != NULL);
    return 0;
}

static int domain_range_push(void *domain, const void *event)
{
    atomic_fetch_add(&pushes, domain != NULL && event != NULL);
    return 0;
}

static int range_pop(void)
{
    atomic_fetch_add(&pops, 1);
    return 0;
}

static int domain_range_pop(void *domain)
{
    atomic_fetch_add(&pops, domain != NULL);
    return 0;
}

static void *domain_create(const char *name)
{
    static int handle;
    return name != NULL ? &handle : NULL;
}

int InitializeInjectionNvtx2(const void *(*get_table)(uint32_t id))
{
    const struct callbacks_table *callbacks = get_table(1);
    function ***table;
    unsigned count;
    if (callbacks == NULL || !callbacks->get_module(1, &table, &count) || count < 12)
        return 0;
    *table[9] = (function *)range_push;
    *table[11] = (function *)range_pop;
    if (!callbacks->get_module(5, &table, &count) || count < 13)
        return 0;
    *table[4] = (function *)domain_range_push;
    *table[5] = (function *)domain_range_pop;
    *table[12] = (function *)domain_create;
    return 1;
}
