/* SPDX-License-Identifier: Apache-2.0 */
/* The floor: an injected library that enables exactly the CUPTI records that
 * the Trace engine enables (by the same code), counts them and throws them
 * away. What gpufl costs above this is gpufl's own. Linked with gpufl's driver
 * layer only. FLOOR_OUT names a file for the counts. */
#include "driver/cupti.h"
#include "driver/cupti_table.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static struct cupti *cupti;
static atomic_ulong kernels, copies, memsets, syncs, others;

static uint8_t *request(size_t *size)
{
    *size = 8u << 20;
    return aligned_alloc(64, *size);
}

static void complete(uint8_t *buffer, size_t size, size_t valid)
{
    (void)size;
    void *record = NULL;
    while (valid && cupti->call.get_next_record(buffer, valid, &record) == 0)
        switch (*(uint32_t *)record) {
        case CUPTI_ABI_KIND_KERNEL:
        case CUPTI_ABI_KIND_CONCURRENT_KERNEL:
            kernels++;
            break;
        case CUPTI_ABI_KIND_MEMCPY:
        case CUPTI_ABI_KIND_MEMCPY2:
            copies++;
            break;
        case CUPTI_ABI_KIND_MEMSET:
            memsets++;
            break;
        case CUPTI_ABI_KIND_SYNCHRONIZATION:
            syncs++;
            break;
        default:
            others++;
        }
    free(buffer);
}

/* As gpufl is told of calls; it notes them, this forgets them. */
static void forget_call(const struct user_call *call, bool is_enter)
{
    (void)call, (void)is_enter;
}

static void finish(void)
{
    cupti_trace_stop(cupti);
    const char *path = getenv("FLOOR_OUT");
    FILE *out = path ? fopen(path, "w") : NULL;
    if (!out)
        return;
    fprintf(out, "{\"kernels\":%lu,\"copies\":%lu,\"memsets\":%lu,\"syncs\":%lu,\"others\":%lu}\n", kernels, copies,
            memsets, syncs, others);
    fclose(out);
}

#define EXPORT __attribute__((visibility("default")))
EXPORT int floor_start(int is_before_cuda);
EXPORT void floor_stop(void);
EXPORT int InitializeInjection(void);

/* For a program that measures itself with and without; 0 when CUPTI runs. */
int floor_start(int is_before_cuda)
{
    const struct cupti_trace_options options = {.features = CUPTI_TRACE_SYNC | CUPTI_TRACE_EXTERNAL |
                                                            CUPTI_TRACE_OVERHEAD | CUPTI_TRACE_GRAPHS,
                                                .is_before_cuda = is_before_cuda,
                                                .buffer_request = request,
                                                .buffer_complete = complete,
                                                .on_call = forget_call};
    struct cupti_trace_result result;
    struct problem problem = {""};
    if (cupti_load(&cupti, &problem) == GPUFL_OK && cupti_trace_start(cupti, &options, &result, &problem) == GPUFL_OK)
        return 0;
    fprintf(stderr, "floor: %s\n", problem.text);
    return 1;
}

void floor_stop(void)
{
    cupti_trace_stop(cupti);
}

int InitializeInjection(void)
{
    if (floor_start(1) == 0)
        atexit(finish);
    return 1;
}
