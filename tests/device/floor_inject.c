/* SPDX-License-Identifier: Apache-2.0 */
/* The floor: an injected library that enables exactly the CUPTI records that
 * the Trace engine enables (by the same code), counts them and throws them
 * away. What gpufl costs above this is gpufl's own. Linked with gpufl's driver
 * layer only. FLOOR_OUT names a file for the counts. FLOOR_PC_MS: the floor of
 * PcSampling, PC samples beside them, read so often and thrown away. */
#include "driver/cupti.h"
#include "driver/cupti_table.h"
#include "driver/pc_sampling.h"
#include "driver/profiler_target.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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

/* Called for each reported call in place of the function that records it. */
static void forget_call(const struct user_call *call, bool is_enter)
{
    (void)call, (void)is_enter;
}

static void forget_samples(void *user, const struct pc_sample *samples, size_t count)
{
    (void)user, (void)samples, (void)count;
}

static uint32_t pc_drain_ms;

static void *drain_samples(void *sampling)
{
    struct pc_drain drain;
    while (pc_sampling_drain(sampling, forget_samples, NULL, &drain, NULL) == GPUFL_OK)
        usleep(pc_drain_ms * 1000);
    return NULL;
}

/* As gpufl samples on an H200. */
static void sample_context(void *user, const struct gpu_context *context, bool is_created)
{
    const struct pc_sampling_options options = {.period_exponent = 18,
                                                .hardware_buffer_bytes = 32 << 20,
                                                .scratch_bytes = 4 << 20,
                                                .worker_sleep_ms = pc_drain_ms};
    struct pc_sampling *sampling;
    struct problem problem = {""};
    pthread_t thread;
    (void)user;
    if (is_created && (profiler_target_acquire(cupti, &problem) != GPUFL_OK ||
                       pc_sampling_open(&sampling, cupti, context->handle, &options, &problem) != GPUFL_OK ||
                       pthread_create(&thread, NULL, drain_samples, sampling) != 0))
        fprintf(stderr, "floor: no PC samples: %s\n", problem.text);
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
    static const struct cupti_listener listener = {.on_context = sample_context};
    struct cupti_trace_result result;
    struct problem problem = {""};
    const char *pc_ms = getenv("FLOOR_PC_MS");
    pc_drain_ms = pc_ms ? (uint32_t)strtoul(pc_ms, NULL, 10) : 0;
    if (cupti_load(&cupti, &problem) == GPUFL_OK && cupti_trace_start(cupti, &options, &result, &problem) == GPUFL_OK &&
        (!pc_drain_ms || cupti_listen(cupti, &listener, &problem) == GPUFL_OK))
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
