// SPDX-License-Identifier: Apache-2.0
// 8 threads on 8 streams open nested scopes and launch kernels whose names say where they belong:
// work<T, S> runs inside scope "thread_T|scope_S", outside<T> inside "thread_T" alone.
#include <cstdio>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <cuda_runtime.h>
#include <gpufl/gpufl.hpp>

template <int T, int S> __global__ void work(float *p)
{
    p[threadIdx.x] += T * 4 + S;
}
template <int T> __global__ void outside(float *p)
{
    p[threadIdx.x] += T;
}

constexpr int rounds = 500;

template <int T, int S> void in_scope(cudaStream_t stream, float *p)
{
    static const std::string name = "scope_" + std::to_string(S);
    GFL_SCOPE(name) {
        for (int i = 0; i < 3; i++)
            work<T, S><<<1, 32, 0, stream>>>(p);
    }
}

template <int T> void run(float *p)
{
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    gpufl::ScopedMonitor thread_scope("thread_" + std::to_string(T));
    for (int i = 0; i < rounds; i++) {
        in_scope<T, 0>(stream, p);
        outside<T><<<1, 32, 0, stream>>>(p);
        in_scope<T, 1>(stream, p);
        in_scope<T, 2>(stream, p);
        in_scope<T, 3>(stream, p);
    }
    cudaStreamSynchronize(stream);
}

template <int... T> void run_all(float *p, std::integer_sequence<int, T...>)
{
    std::vector<std::thread> threads;
    (threads.emplace_back([p] { run<T>(p + 32 * T); }), ...);
    for (auto &thread : threads)
        thread.join();
}

int main(int argc, char **argv)
{
    gpufl::InitOptions opts;
    opts.app_name = "scope_threads";
    opts.log_path = argc > 1 ? argv[1] : "";
    opts.profiling_engine = gpufl::ProfilingEngine::Trace;
    if (!gpufl::init(opts)) {
        fprintf(stderr, "%s\n", gpufl_last_error());
        return 3;
    }
    float *p;
    if (cudaMalloc(&p, 4096) != cudaSuccess)
        return 3;
    run_all(p, std::make_integer_sequence<int, 8>());
    gpufl::shutdown();
    printf("{\"kernels\":%d,\"session\":\"%s\"}\n", 8 * rounds * 13, gpufl_session_dir());
    return cudaGetLastError() != cudaSuccess;
}
