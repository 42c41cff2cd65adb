/* SPDX-License-Identifier: Apache-2.0 */
#include "app_work.h"

#include "cuda_fake.h"
#include "cudart_fake.h"
#include "nvtx_client.h"

#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { COPY_BYTES = 65536, MEMSET_BYTES = 4096, SCOPE_BURST = 10, GENERAL_KERNELS = 3, STREAM_LIMIT = 64 };

static const char *const general_names[GENERAL_KERNELS] = {"_Z9vectorAddPKfS0_Pfi",
                                                           "_Z4gemmIfLi128ELi64EEvPKT_S2_PS0_iii",
                                                           "_ZN2at6native29vectorized_elementwise_kernelILi4EEEviPf"};

/* Of the whole program; built before the threads start, freed never: records name the kernels. */
static struct fake_kernel *kernels;
static struct fake_image image;
static struct fake_context *contexts[64];
static void (*scope_push)(const char *name, const void *meta);
static void (*scope_pop)(void);

struct worker {
    const struct app_options *options;
    int number, stream_count, error;
    pthread_t thread;
    struct app_counts counts;
    void *streams[STREAM_LIMIT];
    void *device_buffer, *host_buffer;
    void *graph; /* executable */
    const struct fake_kernel *thread_kernel, *range_kernel, *scope_kernels;
};

static void kernel_name(struct fake_kernel *kernel, const char *word, int number, uint64_t duration_ns)
{
    char plain[48], mangled[64];
    snprintf(plain, sizeof plain, "%s_%d", word, number);
    snprintf(mangled, sizeof mangled, "_Z%zu%sPf", strlen(plain), plain);
    *kernel = (struct fake_kernel){strdup(mangled), 32, 1024, 0, duration_ns};
}

/* Layout: general, then for each thread its thread kernel, range kernel and scope kernels. */
static bool kernels_build(const struct app_options *o)
{
    size_t per_thread = 2 + (size_t)o->scopes_per_thread;
    size_t count = GENERAL_KERNELS + (size_t)o->threads * per_thread;
    uint64_t duration_ns = (uint64_t)o->kernel_us * 1000;
    kernels = calloc(count, sizeof *kernels);
    if (kernels == NULL)
        return false;
    for (int i = 0; i < GENERAL_KERNELS; i++)
        kernels[i] =
            (struct fake_kernel){general_names[i], 16u + 40u * (unsigned)i, 4096u * (unsigned)i, 0, duration_ns};
    for (int t = 0; t < o->threads; t++) {
        struct fake_kernel *own = kernels + GENERAL_KERNELS + (size_t)t * per_thread;
        kernel_name(&own[0], "thread", t, duration_ns);
        kernel_name(&own[1], "range", t, duration_ns);
        for (int s = 0; s < o->scopes_per_thread; s++)
            kernel_name(&own[2 + s], "scope", t * o->scopes_per_thread + s, duration_ns);
    }
    image = (struct fake_image){FAKE_IMAGE_MAGIC, (uint32_t)count, kernels};
    void **handle = __cudaRegisterFatBinary(&image);
    for (size_t i = 0; i < count; i++) /* a kernel's host function is its table row */
        __cudaRegisterFunction(handle, (const char *)&kernels[i], NULL, kernels[i].name, -1, NULL, NULL, NULL, NULL,
                               NULL);
    __cudaUnregisterFatBinary(handle);
    return true;
}

static void check(struct worker *w, int result, uint64_t *count)
{
    if (result == FAKE_SUCCESS)
        (*count)++;
    else
        w->counts.errors++;
}

static void launch(struct worker *w, const struct fake_kernel *kernel, void *stream)
{
    int result = w->options->uses_driver ? cuLaunchKernel(kernel, 264, 1, 1, 256, 1, 1, 512, stream, NULL, NULL)
                                         : cudaLaunchKernel(kernel, (struct fake_dim3){264, 1, 1},
                                                            (struct fake_dim3){256, 1, 1}, NULL, 512, stream);
    check(w, result, &w->counts.kernels);
}

static void stream_wait(struct worker *w, void *stream)
{
    check(w, w->options->uses_driver ? cuStreamSynchronize(stream) : cudaStreamSynchronize(stream), &w->counts.syncs);
}

static void copies(struct worker *w, void *stream)
{
    struct app_counts *c = &w->counts;
    uint64_t address = (uint64_t)(uintptr_t)w->device_buffer;
    if (w->options->uses_driver) {
        check(w, cuMemcpyHtoD_v2(address, w->host_buffer, COPY_BYTES), &c->copies);
        check(w, cuMemsetD8Async(address, 7, MEMSET_BYTES, stream), &c->memsets);
        check(w, cuMemcpyDtoH_v2(w->host_buffer, address, COPY_BYTES), &c->copies);
        return;
    }
    check(w, cudaMemcpyAsync(w->device_buffer, w->host_buffer, COPY_BYTES, FAKE_COPY_TO_DEVICE, stream), &c->copies);
    check(w, cudaMemsetAsync(w->device_buffer, 7, MEMSET_BYTES, stream), &c->memsets);
    check(w,
          cudaMemcpyAsync((char *)w->device_buffer + COPY_BYTES / 2, w->device_buffer, COPY_BYTES / 2,
                          FAKE_COPY_ON_DEVICE, stream),
          &c->copies);
    check(w, cudaMemcpy(w->host_buffer, w->device_buffer, COPY_BYTES, FAKE_COPY_TO_HOST), &c->copies);
    if (w->options->gpus > 1)
        check(w,
              cudaMemcpyPeerAsync(w->device_buffer, w->number % w->options->gpus, w->device_buffer,
                                  (w->number + 1) % w->options->gpus, MEMSET_BYTES, stream),
              &c->copies);
}

static int graph_capture(struct worker *w)
{
    void *graph = NULL, *stream = NULL; /* the default stream cannot be captured */
    int result = cudaStreamCreate(&stream);
    if (result == FAKE_SUCCESS)
        result = cudaStreamBeginCapture(stream, 0);
    for (int i = 0; result == FAKE_SUCCESS && i < w->options->graph_nodes; i++)
        result = cudaLaunchKernel(&kernels[i % GENERAL_KERNELS], (struct fake_dim3){8, 1, 1},
                                  (struct fake_dim3){128, 1, 1}, NULL, 0, stream);
    usleep((useconds_t)w->options->capture_ms * 1000);
    if (result == FAKE_SUCCESS)
        result = cudaStreamEndCapture(stream, &graph);
    if (result == FAKE_SUCCESS)
        result = cudaGraphInstantiate(&w->graph, graph, 0);
    if (graph != NULL)
        cudaGraphDestroy(graph);
    if (stream != NULL)
        cudaStreamDestroy(stream);
    return result;
}

/* One launch in a context that comes and goes. */
static void churn(struct worker *w)
{
    struct fake_context *passing = NULL;
    int result = cuCtxCreate_v2(&passing, 0, 0);
    if (result == FAKE_SUCCESS) {
        launch(w, &kernels[0], NULL);
        check(w, cuCtxSynchronize(), &w->counts.syncs);
        result = cuCtxDestroy_v2(passing);
    }
    if (result == FAKE_SUCCESS)
        result = cuCtxSetCurrent(contexts[w->number % w->options->contexts]);
    w->counts.errors += result != FAKE_SUCCESS;
}

/* Launch number i: which kernel says in which scope it must be found. */
static void step(struct worker *w, int i)
{
    const struct app_options *o = w->options;
    void *stream = w->streams[i % w->stream_count];
    int scope = i / (SCOPE_BURST + 1) % o->scopes_per_thread, place = i % (SCOPE_BURST + 1);
    const struct fake_kernel *kernel = &kernels[i % GENERAL_KERNELS];
    if (o->has_scopes) {
        bool is_inside = place < SCOPE_BURST;
        char name[32];
        snprintf(name, sizeof name, "scope_%d", w->number * o->scopes_per_thread + scope);
        if (place == 0 && scope_push != NULL)
            scope_push(name, NULL);
        kernel = is_inside ? &w->scope_kernels[scope] : w->thread_kernel;
    }
    if (o->has_nvtx && i % 7 == 3) {
        char name[32];
        snprintf(name, sizeof name, "range_%d", w->number);
        bool uses_domain = w->number % 2 == 1;
        (uses_domain ? nvtx_domain_push : nvtx_push)(name);
        launch(w, w->range_kernel, stream);
        (uses_domain ? nvtx_domain_pop : nvtx_pop)();
    } else {
        launch(w, kernel, stream);
    }
    if (o->has_scopes && place == SCOPE_BURST - 1 && scope_pop != NULL)
        scope_pop();
    if (o->has_copies && i % 50 == 49)
        copies(w, stream);
    if (o->has_graphs && i % 100 == 99) {
        uint64_t launched = w->counts.graph_launches;
        check(w, cudaGraphLaunch(w->graph, stream), &w->counts.graph_launches);
        w->counts.kernels += (w->counts.graph_launches - launched) * (uint64_t)o->graph_nodes;
    }
    if (o->sync_every > 0 && i % o->sync_every == o->sync_every - 1)
        stream_wait(w, stream);
    if (o->churn > 0 && i % o->churn == o->churn - 1)
        churn(w);
    if (o->pause_us > 0)
        usleep((useconds_t)o->pause_us);
}

static int worker_setup(struct worker *w)
{
    const struct app_options *o = w->options;
    const struct fake_kernel *own = kernels + GENERAL_KERNELS + (size_t)w->number * (2 + (size_t)o->scopes_per_thread);
    w->thread_kernel = &own[0];
    w->range_kernel = &own[1];
    w->scope_kernels = &own[2];
    int result =
        o->uses_driver ? cuCtxSetCurrent(contexts[w->number % o->contexts]) : cudaSetDevice(w->number % o->gpus);
    w->stream_count = o->streams == 0 ? 1 : (o->streams + o->threads - 1) / o->threads;
    if (w->stream_count > STREAM_LIMIT)
        w->stream_count = STREAM_LIMIT;
    for (int i = 0; o->streams > 0 && result == FAKE_SUCCESS && i < w->stream_count; i++)
        result = o->uses_driver ? cuStreamCreate((struct fake_stream **)&w->streams[i], 1)
                                : cudaStreamCreate(&w->streams[i]);
    if (result == FAKE_SUCCESS && o->has_copies) {
        w->host_buffer = calloc(1, COPY_BYTES);
        result = o->uses_driver ? cuMemAlloc_v2((uint64_t *)&w->device_buffer, COPY_BYTES)
                                : cudaMalloc(&w->device_buffer, COPY_BYTES);
    }
    if (result == FAKE_SUCCESS && o->has_graphs)
        result = graph_capture(w);
    return result;
}

static void worker_end(struct worker *w)
{
    const struct app_options *o = w->options;
    if (!o->has_no_sync)
        check(w, o->uses_driver ? cuCtxSynchronize() : cudaDeviceSynchronize(), &w->counts.syncs);
    if (w->device_buffer != NULL)
        (void)(o->uses_driver ? cuMemFree_v2((uint64_t)(uintptr_t)w->device_buffer) : cudaFree(w->device_buffer));
    if (w->graph != NULL)
        cudaGraphExecDestroy(w->graph);
    for (int i = 0; o->streams > 0 && i < w->stream_count; i++)
        (void)(o->uses_driver ? cuStreamDestroy_v2(w->streams[i]) : cudaStreamDestroy(w->streams[i]));
    free(w->host_buffer);
}

static int64_t mono_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool is_over(const struct app_options *o, int launches, int64_t until_ms)
{
    struct pollfd input = {.fd = STDIN_FILENO};
    if (o->until_input_ends)
        return poll(&input, 1, 0) > 0;
    return o->run_ms > 0 ? mono_ms() >= until_ms : launches >= o->launches;
}

static void *worker_run(void *argument)
{
    struct worker *w = argument;
    const struct app_options *o = w->options;
    char name[32];
    snprintf(name, sizeof name, "thread_%d", w->number);
    w->error = worker_setup(w);
    bool has_scope = o->has_scopes && scope_push != NULL && scope_pop != NULL;
    if (has_scope)
        scope_push(name, NULL);
    int64_t until_ms = mono_ms() + o->run_ms;
    int i = 0;
    if (w->error == FAKE_SUCCESS)
        for (; !is_over(o, i, until_ms); i++)
            step(w, i);
    if (has_scope && i % (SCOPE_BURST + 1) != 0 && i % (SCOPE_BURST + 1) != SCOPE_BURST)
        scope_pop(); /* the last burst was cut short */
    if (has_scope)
        scope_pop();
    worker_end(w);
    return NULL;
}

static void *gpufl_symbol(const char *name)
{
    void *symbol = dlsym(RTLD_DEFAULT, name);
    if (symbol != NULL)
        return symbol;
    void *library = dlopen("libgpufl.so.1", RTLD_LAZY | RTLD_NOLOAD);
    return library != NULL ? dlsym(library, name) : NULL;
}

static int cuda_start(const struct app_options *o)
{
    int count = 0, result = cuInit(0);
    if (result == FAKE_SUCCESS)
        result = cudaGetDeviceCount(&count);
    if (result == FAKE_SUCCESS && count < o->gpus)
        result = FAKE_INVALID_DEVICE;
    for (int i = 0; result == FAKE_SUCCESS && o->uses_driver && i < o->contexts; i++)
        result = o->contexts > 1 ? cuCtxCreate_v2(&contexts[i], 0, i % o->gpus)
                                 : cuDevicePrimaryCtxRetain((void **)&contexts[i], 0);
    return result;
}

bool app_work_run(const struct app_options *options, struct app_counts *counts, int *error)
{
    struct worker *workers = calloc((size_t)options->threads, sizeof *workers);
    *counts = (struct app_counts){0};
    *error = workers != NULL && kernels_build(options) ? cuda_start(options) : FAKE_OUT_OF_MEMORY;
    if (*error != FAKE_SUCCESS) {
        free(workers);
        return false;
    }
    *(void **)&scope_push = gpufl_symbol("gpufl_scope_push");
    *(void **)&scope_pop = gpufl_symbol("gpufl_scope_pop");
    for (int t = 0; t < options->threads; t++) {
        workers[t].options = options;
        workers[t].number = t;
        pthread_create(&workers[t].thread, NULL, worker_run, &workers[t]);
    }
    for (int t = 0; t < options->threads; t++) {
        struct app_counts *own = &workers[t].counts;
        pthread_join(workers[t].thread, NULL);
        counts->kernels += own->kernels;
        counts->copies += own->copies;
        counts->memsets += own->memsets;
        counts->syncs += own->syncs;
        counts->graph_launches += own->graph_launches;
        counts->errors += own->errors + (workers[t].error != FAKE_SUCCESS);
    }
    free(workers);
    return true;
}
