// SPDX-License-Identifier: Apache-2.0
// What CUPTI's counter engines do to a program that captures and launches CUDA graphs, without gpufl's recorder: each
// case is a separate process that takes the steps its letters name and is killed when it does not end in time. Prints a
// table: the steps with their results (0 is success, CUDA's or CUPTI's number, or gpufl's status with its text), and at
// which step a case hung. usage: graph_probe [traced | ENGINE STEPS]
//
//   O open the engine on the context   S start   T stop   D read and close       P PC sampling (what SASS counting needs)
//   w warm up: launch one kernel       l launch it again and wait for it         c the same, cooperatively
//   n in a green context's stream      v a kernel that launches one (built with -DPROBE_CDP -rdc=true)
//   b B r begin a capture, thread-local, global or relaxed     K launch 20 times   k 20 times, half of them a cold kernel
//   e end the capture   i instantiate   u upload   g launch the graph   G 200 times   s wait for the stream
//   A trace kernels, copies and calls   Z pause kernel records   F flush   x copy and set memory
//   y cuCtxSynchronize  q launch into another stream and wait for it   m allocate and free from a pool
//   @ the next step is taken by another thread
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>
#include <cuda.h>
#include <cuda_runtime.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define _Static_assert static_assert // C17 headers
extern "C" {
#include "driver/pc_sampling.h"
#include "driver/profiler_host.h"
#include "driver/profiler_target.h"
#include "driver/range_profiler.h"
#include "driver/sass_metrics.h"
}

constexpr int case_ms = 6000, elements = 1 << 16;

__global__ void warm(float *data)
{
    data[blockIdx.x * blockDim.x + threadIdx.x] += 1;
}

__global__ void cold(float *data)
{
    data[blockIdx.x * blockDim.x + threadIdx.x] *= 1.5f;
}

#ifdef PROBE_CDP
__global__ void parent(float *data)
{
    if (!blockIdx.x && !threadIdx.x)
        warm<<<1, 32>>>(data);
}
#endif

static float *data;
static CUcontext context;
static cudaStream_t stream, other;
static cudaGraph_t graph;
static cudaGraphExec_t exec;
static std::string engine;
static problem trouble;

static struct cupti *library;
static pc_sampling *sampling;
static sass_metrics sass;
static profiler_host *host;
static range_profiler *profiler;
static metric_plan plan;
static std::vector<uint64_t> memory;
static uint64_t counted;

static int say(int result)
{
    if (result)
        printf("(%s)", trouble.text);
    return result;
}

static bool is_sass()
{
    return !engine.compare(0, 4, "sass");
}

static int sass_open()
{
    char chip[PROFILER_CHIP_NAME_BYTES];
    sass_metric_list list;
    sass_choice choice;
    int status = sass_metrics_bind(&sass, library, &trouble);
    if (!status)
        status = profiler_target_chip(library, 0, chip, &trouble);
    if (!status)
        status = sass_metrics_list(&sass, chip, &list, &trouble);
    if (!status)
        status = sass_choice_make(&choice, &list, chip, SASS_METRIC_EXECUTED, &trouble);
    if (!status)
        status = sass_metrics_configure(&sass, 0, &list, &choice, &trouble);
    return status ? status : sass_metrics_enable(&sass, context, engine == "sass-lazy", &trouble);
}

static void count(void *, const sass_count *one)
{
    counted += one->value;
}

static int sass_close()
{
    sass_flush flush = {64u << 20, count, nullptr, 0};
    uint64_t dropped = 0;
    int flushed = say(sass_metrics_flush(&sass, context, &flush, &trouble));
    int status = sass_metrics_disable(&sass, context, &dropped, &trouble);
    printf("[%llu instructions]", (unsigned long long)counted);
    return status ? status : flushed;
}

static int range_open()
{
    static const char *const metrics[] = {"smsp__inst_executed.sum", "dram__bytes_read.sum"};
    constexpr size_t ranges_max = 512;
    char chip[PROFILER_CHIP_NAME_BYTES];
    uint8_t *availability = nullptr;
    size_t availability_bytes = 0, image_bytes = 0;
    int status = profiler_target_chip(library, 0, chip, &trouble);
    if (!status)
        status = profiler_target_availability(library, context, &availability, &availability_bytes, &trouble);
    if (!status)
        status =
            profiler_host_open(&host, library, chip, PROFILER_RANGE, availability, availability_bytes, &trouble);
    if (!status)
        status = profiler_host_plan(host, metrics, 2, &plan, &trouble);
    if (!status)
        status = range_profiler_open(&profiler, library, context, &trouble);
    if (!status)
        status = range_profiler_image_bytes(profiler, metrics, 2, ranges_max, &image_bytes, &trouble);
    if (status)
        return status;
    memory.resize((image_bytes + 7) / 8);
    uint8_t *image = reinterpret_cast<uint8_t *>(memory.data());
    status = range_profiler_image_reset(profiler, image, image_bytes, &trouble);
    range_config config = {engine == "range-kernel" ? RANGE_KERNELS : RANGE_NAMED, &plan, image, image_bytes,
                           ranges_max, {0, 1}};
    return status ? status : range_profiler_configure(profiler, &config, &trouble);
}

static int range_start()
{
    int status = range_profiler_start(profiler, &trouble);
    return status || engine == "range-kernel" ? status : range_profiler_push(profiler, "scope", &trouble);
}

static int range_stop()
{
    range_pass pass;
    int popped = engine == "range-kernel" ? 0 : say(range_profiler_pop(profiler, &trouble));
    int status = range_profiler_stop(profiler, &pass, &trouble);
    return status ? status : popped;
}

static int range_close()
{
    size_t dropped = 0, ranges = 0;
    int status = say(range_profiler_decode(profiler, &dropped, &trouble));
    if (!status)
        status = range_image_count(library, reinterpret_cast<uint8_t *>(memory.data()), memory.size() * 8, &ranges,
                                   &trouble);
    range_profiler_close(profiler);
    printf("[%zu ranges]", ranges);
    return status;
}

static int engine_step(char step)
{
    if (engine == "none")
        return 0;
    switch (step) {
    case 'O': return is_sass() ? sass_open() : range_open();
    case 'S': return is_sass() ? 0 : range_start();
    case 'T': return is_sass() ? 0 : range_stop();
    default: return is_sass() ? sass_close() : range_close();
    }
}

static int sampling_open()
{
    pc_sampling_options options = {};
    options.is_rare = true;
    options.period_exponent = 18;
    options.hardware_buffer_bytes = 32u << 20;
    options.scratch_bytes = 4u << 20;
    return pc_sampling_open(&sampling, library, context, &options, &trouble);
}

static uint8_t *buffer_give(size_t *size)
{
    *size = 256 << 10;
    return static_cast<uint8_t *>(aligned_alloc(8, *size));
}

static void buffer_take(uint8_t *buffer, size_t, size_t)
{
    free(buffer);
}

static void on_call(const user_call *, bool) {}

static int trace_start()
{
    cupti_trace_options options = {};
    cupti_trace_result result = {};
    options.features = CUPTI_TRACE_SYNC;
    options.buffer_request = buffer_give;
    options.buffer_complete = buffer_take;
    options.on_call = on_call;
    return cupti_trace_start(library, &options, &result, &trouble);
}

static int flush()
{
    cupti_flush(library, false);
    return 0;
}

static int memory_use()
{
    int error = cudaMemsetAsync(data, 0, 4096, stream);
    return error ? error : cudaMemcpyAsync(data + 4096, data, 4096, cudaMemcpyDeviceToDevice, stream);
}

static int launch(cudaStream_t into, int times, bool with_cold)
{
    int result = 0;
    for (int i = 0; i < times; i++) {
        if (with_cold && i % 2)
            cold<<<elements / 256, 256, 0, into>>>(data);
        else
            warm<<<elements / 256, 256, 0, into>>>(data);
        int error = cudaGetLastError();
        result = result ? result : error;
    }
    return result;
}

static int launch_cooperatively()
{
    void *arguments[] = {&data};
    int error = cudaLaunchCooperativeKernel((const void *)warm, dim3(1), dim3(256), arguments, 0, stream);
    return error ? error : cudaStreamSynchronize(stream);
}

static int launch_green()
{
    CUdevResource all, part, rest;
    CUdevResourceDesc description;
    CUgreenCtx green;
    CUstream into;
    unsigned groups = 1;
    int step = 1000, error = cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM);
    if (!error && (step += 1000))
        error = cuDevSmResourceSplitByCount(&part, &groups, &all, &rest, 0, 16);
    if (!error && (step += 1000))
        error = cuDevResourceGenerateDesc(&description, &part, 1);
    if (!error && (step += 1000))
        error = cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM);
    if (!error && (step += 1000))
        error = cuGreenCtxStreamCreate(&into, green, CU_STREAM_NON_BLOCKING, 0);
    if (!error && (step += 1000))
        error = launch(into, 3, false);
    if (!error && (step += 1000))
        error = cudaStreamSynchronize(into);
    return error ? step + error : 0; // thousands: the step that failed
}

static int launch_parent()
{
#ifdef PROBE_CDP
    parent<<<2, 32, 0, stream>>>(data);
    int error = cudaGetLastError();
    return error ? error : cudaStreamSynchronize(stream);
#else
    return -1;
#endif
}

static int pool_use()
{
    void *piece = nullptr;
    int error = cudaMallocAsync(&piece, 1 << 20, stream);
    return error ? error : cudaFreeAsync(piece, stream);
}

static int graph_launch(int times)
{
    int error = 0;
    for (int i = 0; i < times && !error; i++)
        error = cudaGraphLaunch(exec, stream);
    return error;
}

static int take(char step)
{
    int error;
    switch (step) {
    case 'P': return say(sampling_open());
    case 'A': return say(trace_start());
    case 'Z': return say(cupti_trace_pause(library, &trouble));
    case 'F': return flush();
    case 'x': return memory_use();
    case 'w':
    case 'l': return (error = launch(stream, step == 'w' ? 3 : 1, false)) ? error : cudaStreamSynchronize(stream);
    case 'q': return (error = launch(other, 1, false)) ? error : cudaStreamSynchronize(other);
    case 'c': return launch_cooperatively();
    case 'n': return launch_green();
    case 'v': return launch_parent();
    case 'b': return cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    case 'B': return cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    case 'r': return cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
    case 'K':
    case 'k': return launch(stream, 20, step == 'k');
    case 'e': return cudaStreamEndCapture(stream, &graph);
    case 'i': return cudaGraphInstantiate(&exec, graph, 0);
    case 'u': return cudaGraphUpload(exec, stream);
    case 'g': return graph_launch(1);
    case 'G': return graph_launch(200);
    case 's': return cudaStreamSynchronize(stream);
    case 'y': return cuCtxSynchronize();
    case 'm': return pool_use();
    default: return say(engine_step(step));
    }
}

static int64_t now_ms()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

static int child(const char *steps)
{
    setbuf(stdout, nullptr);
    if (cudaMalloc(&data, elements * sizeof *data) || cuCtxGetCurrent(&context) ||
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) ||
        cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking)) {
        printf("no GPU");
        return 1;
    }
    if (cupti_load(&library, &trouble) || profiler_target_acquire(library, &trouble)) {
        printf("%s", trouble.text);
        return 1;
    }
    for (const char *step = steps; *step; step++) {
        bool is_elsewhere = *step == '@';
        step += is_elsewhere;
        printf(is_elsewhere ? " @%c" : " %c", *step);
        int64_t began_ms = now_ms();
        int result = 0;
        if (is_elsewhere)
            std::thread([&] {
                cuCtxSetCurrent(context);
                result = take(*step);
            }).join();
        else
            result = take(*step);
        printf("=%d", result);
        if (now_ms() - began_ms >= 20)
            printf("/%lldms", (long long)(now_ms() - began_ms));
    }
    printf(" .");
    _exit(0); // what was left open is part of no case
}

static void run_case(char *self, const char *name, const char *steps)
{
    int ends[2];
    if (pipe(ends))
        return;
    pid_t process = fork();
    if (!process) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        execl(self, self, name, steps, nullptr);
        _exit(127);
    }
    close(ends[1]);
    std::string said;
    char some[256];
    int64_t until_ms = now_ms() + case_ms;
    pollfd pipe_end = {ends[0], POLLIN, 0};
    bool is_over = false;
    while (!is_over && now_ms() < until_ms && poll(&pipe_end, 1, (int)(until_ms - now_ms())) > 0) {
        ssize_t size = read(ends[0], some, sizeof some);
        is_over = size <= 0;
        if (!is_over)
            said.append(some, size);
    }
    if (!is_over)
        kill(process, SIGKILL);
    int status = 0;
    waitpid(process, &status, 0);
    close(ends[0]);
    std::string end = !is_over            ? "HANGS"
                      : WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                                            : "exit " + std::to_string(WEXITSTATUS(status));
    printf("| %s | %s |%s | %s |\n", name, steps, said.c_str(), end.c_str());
    fflush(stdout);
}

static const char *const sass_cases[] = {
    "wOlD",        "wPOlD",       "wPObKeigsD",   "wPObkeigsD",   "wPObkeiugslD", "wPObkeiGslD", "wObKeigsD",
    "wbKeiPOgsD",  "wbKeigsPOgsD", "wbkeigsPOGsD", "wbkeigsPOlDgs", "wPOlDbkeigs",  "wPObkeDigs",  "wPObkDeigs",
    "wPObkeiDgs",  "wPbK@Oeigs",  "wbKPOeigsD",   "wPOBkeigsD",   "wPOrkeigsD",   "wPOmlD",      "wPOclD",
    "wPOnD",       "wPOvD",       "wPObKy",       "wPObK@De",     "wPOl@yD",
};
static const char *const range_cases[] = {
    "wOSlTD",     "wOSbKeTD",     "wOSbkeigsTD",  "wOSrKeigsTD",  "wObKeigsD",   "wObKeSigsTD", "wbKeiOSgsTD",
    "wbKeiOgsD",  "wbKOSeigs",    "wbK@Oeigs",    "wOSbKTeigsD",  "wOSbK@TeigsD", "wOSTDbKeigs", "wOSTbKeigsD",
    "wOSlTbKeigsSlTD", "wOSmlTD", "wOSclTD",      "wOSnTD",       "wOSvTD",      "wOSTbK@Deigs",
};
static const char *const plain_cases[] = {"wbKeigs", "wbKyeigs", "wbK@yeigs", "wBK@yeigs", "wrK@yeigs", "wrKyeigs",
                                          "wbK@qeigs", "wBK@qeigs", "wbPKeigs", "wPbKeigsGs", "wn", "wv"};

// As SassMetrics does it: tracing before the context's engines, kernel records paused.
static const char *const traced_cases[] = {
    "n", "AZPOwbkeigsGslD", "AZPOwbkeigsG@FsGslD", "AwlZPOlbkeiGsGsGslD", "AwbkeiGsZPOlGsGsD", "AZPOwbkxeiGsGslD",
    "PAZOwbkeiGslD", "AZPOwxbxkxeiGsxGsxlD", "AZPOBkxeiGsGslD", "AZOwbkeiGsGslD", "AZPwbkeiGsGsl", "APOwbkeiGsGslD",
    "AZPOwbkeiGsGsDgsGs", "AZPOwmbmkmeiGsGsmlD",
};

int main(int argc, char **argv)
{
    if (argc == 3) {
        engine = argv[1];
        return child(argv[2]);
    }
    printf("| engine | steps | results | end |\n| --- | --- | --- | --- |\n");
    for (const char *steps : traced_cases)
        run_case(argv[0], "sass-lazy", steps);
    if (argc == 2)
        return 0;
    for (const char *steps : plain_cases)
        run_case(argv[0], "none", steps);
    for (const char *name : {"sass-lazy", "sass-eager"})
        for (const char *steps : sass_cases)
            run_case(argv[0], name, steps);
    for (const char *name : {"range-kernel", "range-user"})
        for (const char *steps : range_cases)
            run_case(argv[0], name, steps);
    return 0;
}
