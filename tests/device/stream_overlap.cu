// SPDX-License-Identifier: Apache-2.0
// Whether streams still overlap: 8 streams run kernels of one block that spin for a fixed number of cycles. Together
// they take as long as one stream, one after another eight times as long. usage: stream_overlap [REPEATS]
// Prints the time of 10 rounds, once for each repeat.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

constexpr int streams_count = 8, rounds = 10;
constexpr long long cycles = 4000000;

__global__ void spin(long long length, float *out)
{
    long long begin = clock64();
    float x = threadIdx.x;
    while (clock64() - begin < length)
        x = x * 1.0001f + 0.1f;
    out[threadIdx.x] = x;
}

int main(int argc, char **argv)
{
    int repeats = argc > 1 ? atoi(argv[1]) : 15;
    cudaStream_t streams[streams_count];
    float *out;
    if (cudaMalloc(&out, 4096) != cudaSuccess)
        return 3;
    for (auto &stream : streams)
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    for (int i = -2; i < repeats; i++) { // the first two warm up
        auto begin = std::chrono::steady_clock::now();
        for (int round = 0; round < rounds; round++)
            for (auto stream : streams)
                spin<<<1, 32, 0, stream>>>(cycles, out);
        cudaDeviceSynchronize();
        std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
        if (i >= 0)
            printf("%s%.3f", i ? "," : "{\"ms\":[", took.count());
    }
    printf("],\"streams\":%d,\"rounds\":%d}\n", streams_count, rounds);
    return cudaGetLastError() != cudaSuccess;
}
