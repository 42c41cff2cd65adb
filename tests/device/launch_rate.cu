// SPDX-License-Identifier: Apache-2.0
// Times tiny launches from one or several threads: launch_rate LAUNCHES [THREADS]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>
#include <cuda_runtime.h>

__global__ void tiny(float *p, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        p[i] += 1.f;
}

int main(int argc, char **argv)
{
    long launches = argc > 1 ? atol(argv[1]) : 1000000;
    int threads = argc > 2 ? atoi(argv[2]) : 1;
    float *p;
    if (cudaMalloc(&p, 4096 * threads) != cudaSuccess)
        return 3;
    std::vector<cudaStream_t> streams(threads);
    for (auto &stream : streams)
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    for (int i = 0; i < 1000; i++)
        tiny<<<1, 32, 0, streams[0]>>>(p, 32);
    cudaDeviceSynchronize();
    auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> workers;
    for (int t = 0; t < threads; t++)
        workers.emplace_back([&, t] {
            for (long i = 0; i < launches; i++)
                tiny<<<1, 32, 0, streams[t]>>>(p + 1024 * t, 32);
        });
    for (auto &worker : workers)
        worker.join();
    double ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
    cudaDeviceSynchronize();
    printf("{\"launches\":%ld,\"ns_per_launch\":%.1f,\"launches_per_s\":%.0f}\n", launches * threads + 1000, ns / launches,
           launches * threads * 1e9 / ns);
    return cudaGetLastError() != cudaSuccess;
}
