// SPDX-License-Identifier: Apache-2.0
// A benchmark with GFL_BENCH: warm-up runs stay outside of the scope, the report divides the scope by its
// repetitions. What is compared: the same 16 MiB to the GPU in one copy, in 16 and in 256. Plain C++, no kernels, no
// nvcc.
//
//   build  cmake -S examples -B build/examples -DGPUFL_BUILD_DIR=build && cmake --build build/examples
//   run    build/examples/benchmark [REPEAT] && gpufl report benchmark
#include <gpufl/gpufl.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>
#include <cuda_runtime_api.h>

constexpr std::size_t bytes = 16 << 20;
constexpr std::uint32_t warmup = 3;

static void check(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return;
    std::fprintf(stderr, "benchmark: %s: %s\n", what, cudaGetErrorString(error));
    std::exit(3);
}

static void copy_in_pieces(char *device, const std::vector<char> &host, std::size_t pieces, cudaStream_t stream)
{
    const std::size_t size = bytes / pieces;
    for (std::size_t i = 0; i < pieces; i++)
        check(cudaMemcpyAsync(device + i * size, host.data() + i * size, size, cudaMemcpyHostToDevice, stream), "copy");
    check(cudaStreamSynchronize(stream), "copy");
}

int main(int argc, char **argv)
{
    const long repeat = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 20;
    if (repeat < 1 || repeat > 1000000) {
        std::fprintf(stderr, "usage: benchmark [REPEAT]\n");
        return 2;
    }
    gpufl::InitOptions opts; // under `gpufl trace` this joins the session that is already running
    opts.app_name = "benchmark";
    opts.profiling_engine = gpufl::ProfilingEngine::Trace;
    gpufl::init(opts);

    const std::vector<char> host(bytes, 1);
    void *memory;
    cudaStream_t stream;
    check(cudaMalloc(&memory, bytes), "device memory");
    check(cudaStreamCreate(&stream), "stream");
    char *device = static_cast<char *>(memory);

    for (std::size_t pieces : {1, 16, 256}) {
        const std::string name = "copy in " + std::to_string(pieces);
        const auto meta = gpufl::ScopeMeta{}.setRepeat(static_cast<std::uint32_t>(repeat)).setWarmup(warmup);
        std::vector<std::chrono::steady_clock::time_point> ends;
        GFL_BENCH(name, meta)
        {
            copy_in_pieces(device, host, pieces, stream);
            ends.push_back(std::chrono::steady_clock::now());
        };
        // From the end of the last warm-up run to the end of the last measured one.
        const double seconds = std::chrono::duration<double>(ends.back() - ends[warmup - 1]).count();
        std::printf("%-12s %8.1f us  %6.1f GB/s\n", name.c_str(), seconds / static_cast<double>(repeat) * 1e6,
                    static_cast<double>(bytes) * static_cast<double>(repeat) / seconds / 1e9);
    }
    check(cudaFree(memory), "device memory");
    gpufl::shutdown();
    return 0;
}
