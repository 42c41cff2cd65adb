// SPDX-License-Identifier: Apache-2.0
// Times tiny launches: launch_rate LAUNCHES [THREADS] from one or several threads at once;
// launch_rate --turns LAUNCHES from one thread pinned to its first core, once for each line that it reads.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>
#include <cuda_runtime.h>
#include <pthread.h>

__global__ void tiny(float *p, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        p[i] += 1.f;
}

static double timed_ns(float *p, const std::vector<cudaStream_t> &streams, int thread, long launches)
{
    auto start = std::chrono::steady_clock::now();
    for (long i = 0; i < launches; i++)
        tiny<<<1, 32, 0, streams[thread]>>>(p + 1024 * thread, 32);
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

static void pin_to_first_core()
{
    cpu_set_t allowed, first;
    pthread_getaffinity_np(pthread_self(), sizeof allowed, &allowed);
    int core = 0;
    while (core < CPU_SETSIZE - 1 && !CPU_ISSET(core, &allowed))
        core++;
    CPU_ZERO(&first);
    CPU_SET(core, &first);
    pthread_setaffinity_np(pthread_self(), sizeof first, &first);
}

static int take_turns(float *p, const std::vector<cudaStream_t> &streams, long launches)
{
    char line[64];
    pin_to_first_core();
    printf("ready\n");
    while (fflush(stdout) == 0 && fgets(line, sizeof line, stdin)) {
        timed_ns(p, streams, 0, launches / 10);
        printf("%.1f\n", timed_ns(p, streams, 0, launches) / launches);
        cudaDeviceSynchronize();
    }
    return cudaGetLastError() != cudaSuccess;
}

int main(int argc, char **argv)
{
    bool has_turns = argc > 1 && !strcmp(argv[1], "--turns");
    long launches = argc > 1 + has_turns ? atol(argv[1 + has_turns]) : 1000000;
    int threads = !has_turns && argc > 2 ? atoi(argv[2]) : 1;
    float *p;
    if (cudaMalloc(&p, 4096 * threads) != cudaSuccess)
        return 3;
    std::vector<cudaStream_t> streams(threads);
    for (auto &stream : streams)
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    timed_ns(p, streams, 0, 1000);
    cudaDeviceSynchronize();
    if (has_turns)
        return take_turns(p, streams, launches);
    std::vector<std::thread> workers;
    auto start = std::chrono::steady_clock::now();
    for (int t = 0; t < threads; t++)
        workers.emplace_back([&, t] { timed_ns(p, streams, t, launches); });
    for (auto &worker : workers)
        worker.join();
    double ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
    cudaDeviceSynchronize();
    printf("{\"launches\":%ld,\"ns_per_launch\":%.1f,\"launches_per_s\":%.0f}\n", launches * threads + 1000, ns / launches,
           launches * threads * 1e9 / ns);
    return cudaGetLastError() != cudaSuccess;
}
