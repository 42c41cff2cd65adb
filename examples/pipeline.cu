// SPDX-License-Identifier: Apache-2.0
// Batches go to the GPU, are worked on, and come back: first as one writes it at first, then so that the copies in
// both directions and the kernels overlap. The timeline of both scopes shows the difference, and the report's WHERE
// THE TIME WENT says what the GPU waited for.
//
//   build  cmake -S examples -B build/examples -DGPUFL_BUILD_DIR=build && cmake --build build/examples
//   run    gpufl trace -- build/examples/pipeline [BATCHES]
//          gpufl report pipeline
//
// What keeps `in_order` from overlapping: pageable memory, which the driver must first copy itself, one stream, and a
// wait after every batch. What lets `overlapped`: pinned memory, a stream for each batch in flight, and no wait but
// for the stream whose buffer is used again.
#include <gpufl/gpufl.hpp>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

constexpr int count = 1 << 22, in_flight = 3;
constexpr size_t bytes = count * sizeof(float);

static void check(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return;
    std::fprintf(stderr, "pipeline: %s: %s\n", what, cudaGetErrorString(error));
    std::exit(3);
}

// Enough arithmetic on each value to take about as long as its way over the bus.
__global__ void work(float *values, int size)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += gridDim.x * blockDim.x) {
        float value = values[i];
        for (int k = 0; k < 256; k++)
            value = value * 0.5f + 1.0f; // towards 2
        values[i] = value;
    }
}

static void launch_work(float *values, cudaStream_t stream)
{
    work<<<264, 256, 0, stream>>>(values, count);
}

static void in_order(int batches, const std::vector<float> &input, std::vector<float> &output)
{
    float *device;
    check(cudaMalloc(&device, bytes), "device memory");
    for (int batch = 0; batch < batches; batch++)
        GFL_SCOPE("batch") {
            check(cudaMemcpy(device, input.data(), bytes, cudaMemcpyHostToDevice), "upload");
            launch_work(device, nullptr);
            check(cudaDeviceSynchronize(), "work");
            check(cudaMemcpy(output.data(), device, bytes, cudaMemcpyDeviceToHost), "download");
        }
    check(cudaFree(device), "device memory");
}

struct lane {
    cudaStream_t stream;
    float *device, *input, *output; // the last two in pinned memory
};

static void overlapped(int batches, lane (&lanes)[in_flight])
{
    for (int batch = 0; batch < batches; batch++)
        GFL_SCOPE("batch") {
            lane &mine = lanes[batch % in_flight];
            GFL_SCOPE("wait") {
                check(cudaStreamSynchronize(mine.stream), "the batch before"); // its buffers are free again
            }
            check(cudaMemcpyAsync(mine.device, mine.input, bytes, cudaMemcpyHostToDevice, mine.stream), "upload");
            launch_work(mine.device, mine.stream);
            check(cudaMemcpyAsync(mine.output, mine.device, bytes, cudaMemcpyDeviceToHost, mine.stream), "download");
        }
    check(cudaDeviceSynchronize(), "overlapped");
}

static double milliseconds_since(std::chrono::steady_clock::time_point start)
{
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

static bool is_right(const float *values)
{
    for (int i = 0; i < count; i++)
        if (std::fabs(values[i] - 2.0f) > 1e-3f)
            return false;
    return true;
}

int main(int argc, char **argv)
{
    const int batches = argc > 1 ? (int)std::strtol(argv[1], nullptr, 10) : 24;
    if (batches < 1 || batches > 100000) {
        std::fprintf(stderr, "usage: pipeline [BATCHES]\n");
        return 2;
    }
    gpufl::InitOptions opts; // under `gpufl trace` this joins the session that is already running
    opts.app_name = "pipeline";
    opts.profiling_engine = gpufl::ProfilingEngine::Trace;
    gpufl::init(opts);

    std::vector<float> input(count, 1.0f), output(count);
    lane lanes[in_flight];
    for (lane &one : lanes) {
        check(cudaStreamCreateWithFlags(&one.stream, cudaStreamNonBlocking), "stream");
        check(cudaMalloc(&one.device, bytes), "device memory");
        check(cudaMallocHost(&one.input, bytes), "pinned memory");
        check(cudaMallocHost(&one.output, bytes), "pinned memory");
        for (int i = 0; i < count; i++)
            one.input[i] = 1.0f;
    }
    launch_work(lanes[0].device, nullptr); // the first launch loads the code
    check(cudaDeviceSynchronize(), "warm-up");

    auto start = std::chrono::steady_clock::now();
    GFL_SCOPE("in_order") {
        in_order(batches, input, output);
    }
    const double in_order_ms = milliseconds_since(start);
    start = std::chrono::steady_clock::now();
    GFL_SCOPE("overlapped") {
        overlapped(batches, lanes);
    }
    const double overlapped_ms = milliseconds_since(start);
    gpufl::shutdown();

    std::printf("%d batches of %zu MB: in order %.1f ms, overlapped %.1f ms\n", batches, bytes / 1000000, in_order_ms,
                overlapped_ms);
    if (!is_right(output.data()) || !is_right(lanes[0].output)) {
        std::fprintf(stderr, "pipeline: the results are wrong\n");
        return 1;
    }
    return 0;
}
