/* SPDX-License-Identifier: Apache-2.0 */
/* A program that uses gpufl.h: session_app DIRECTORY REPORT [graphs] ENGINE... records a session with each engine in turn,
 * with scopes, stacks, copies and, if asked, graphs, and writes a report of the last one. What it did for itself goes to the standard
 * output; the answers of gpufl go to the standard error. */
#include "cudart_fake.h"

#include <gpufl/gpufl.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 6, GRAPH_NODES = 2 };

static const struct fake_kernel kernels[] = {{"first(float*)", 32, 0, 0, 20000}, {"second(float*)", 40, 512, 0, 30000}};
static const struct fake_image image = {FAKE_IMAGE_MAGIC, sizeof kernels / sizeof *kernels, kernels};
static unsigned long kernel_count, error_count;
static bool has_graphs;

static void check(int error)
{
    error_count += error != 0;
}

static void launch(int which, void *stream)
{
    const struct fake_dim3 grid = {64, 1, 1}, block = {128, 1, 1};
    int error = cudaLaunchKernel(&kernels[which], grid, block, NULL, 0, stream);
    check(error);
    kernel_count += !error;
}

static void *graph_make(void)
{
    void *stream = NULL, *graph = NULL, *executable = NULL;
    check(cudaStreamCreate(&stream));
    check(cudaStreamBeginCapture(stream, 0));
    for (int i = 0; i < GRAPH_NODES; i++)
        launch(i, stream);
    kernel_count -= GRAPH_NODES; /* they ran not yet */
    check(cudaStreamEndCapture(stream, &graph));
    check(cudaGraphInstantiate(&executable, graph, 0));
    check(cudaGraphDestroy(graph));
    check(cudaStreamDestroy(stream));
    return executable;
}

static void work(void)
{
    enum { BYTES = 4096 };
    static char host[BYTES];
    void *device = NULL, *graph = has_graphs ? graph_make() : NULL;
    check(cudaMalloc(&device, BYTES));
    gpufl_scope_push("work", NULL);
    for (int i = 0; i < STEPS; i++) {
        gpufl_scope_meta meta = {sizeof meta, 2, 1, "tagged"};
        gpufl_scope_push(i % 2 ? "odd" : "even", &meta);
        launch(i % 2, NULL);
        check(cudaMemcpy(device, host, BYTES, FAKE_COPY_TO_DEVICE));
        check(cudaMemset(device, 0, BYTES));
        if (graph) {
            check(cudaGraphLaunch(graph, NULL));
            kernel_count += GRAPH_NODES;
        }
        check(cudaDeviceSynchronize());
        gpufl_scope_pop();
    }
    gpufl_scope_pop();
    check(cudaFree(device));
    if (graph)
        check(cudaGraphExecDestroy(graph));
}

static gpufl_engine engine_named(const char *name)
{
    static const char *const names[] = {"", "Monitor", "Trace", "PcSampling", "SassMetrics", "RangeProfiler", "Deep"};
    for (int i = 1; i <= GPUFL_ENGINE_DEEP; i++)
        if (!strcmp(name, names[i]))
            return (gpufl_engine)i;
    return GPUFL_ENGINE_DEFAULT;
}

static void log_print(void *user, gpufl_log_level level, const char *message)
{
    (void)user;
    fprintf(stderr, "log %d: %s\n", (int)level, message);
}

static void session_run(const char *directory, const char *engine)
{
    gpufl_options options = GPUFL_OPTIONS_INIT;
    options.profiling_engine = engine_named(engine);
    options.app_name = "session_app";
    options.log_path = directory;
    options.enable_stack_trace = GPUFL_ON;
    options.enable_memory_tracking = GPUFL_ON;
    options.enable_cuda_graphs_tracking = GPUFL_ON;
    options.continuous_system_sampling = GPUFL_ON;
    options.system_sample_rate_ms = 10;
    options.log_fn = log_print;
    gpufl_status status = gpufl_init(&options);
    fprintf(stderr, "init %s: %s; %s\n", engine, gpufl_status_string(status), status ? gpufl_last_error() : "");
    const char *session = gpufl_session_dir();
    if (!status && session)
        fprintf(stderr, "session %s\n", session);
    gpufl_system_start("system");
    unsigned long before = kernel_count;
    work();
    printf("%s: %lu kernels, %lu errors\n", engine, kernel_count - before, error_count);
    gpufl_system_stop("system");
    gpufl_shutdown();
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    void **handle = __cudaRegisterFatBinary((void *)(uintptr_t)&image);
    for (uint32_t i = 0; i < image.kernel_count; i++)
        __cudaRegisterFunction(handle, (const char *)&kernels[i], NULL, kernels[i].name, -1, NULL, NULL, NULL, NULL,
                               NULL);
    has_graphs = !strcmp(argv[3], "graphs");
    for (int i = 3 + has_graphs; i < argc; i++)
        session_run(argv[1], argv[i]);
    gpufl_status status = gpufl_generate_report(argv[2]);
    fprintf(stderr, "report: %s; %s\n", gpufl_status_string(status), status ? gpufl_last_error() : "");
    __cudaUnregisterFatBinary(handle);
    puts("done");
    return 5;
}
