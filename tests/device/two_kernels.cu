// SPDX-License-Identifier: Apache-2.0
// Two kernels that stall for known reasons: `chase` follows pointers through memory (every load waits for the one
// before), `multiply` only computes. One after the other, so that sampling one kernel at a time and sampling them as
// they run must see the same. usage: two_kernels [--rounds N] [--seconds N]
//   --seconds: instead of rounds; prints the process's resident memory every second
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>
#include <cuda_runtime.h>

constexpr unsigned entries = 16u << 20;
constexpr int chase_steps = 1500, multiply_steps = 30000, threads = 256, blocks = 132 * 8;

extern "C" __global__ void chase(const unsigned *next, unsigned *out, int steps)
{
    unsigned at = (blockIdx.x * blockDim.x + threadIdx.x) * 97u % entries;
    for (int i = 0; i < steps; i++)
        at = next[at];
    out[blockIdx.x * blockDim.x + threadIdx.x] = at;
}

extern "C" __global__ void multiply(float *out, int steps)
{
    float a = threadIdx.x, b = a + 1, c = a + 2, d = a + 3, factor = 1.0001f, offset = 0.5f;
    for (int i = 0; i < steps; i++) {
        a = a * factor + offset;
        b = b * factor + offset;
        c = c * factor + offset;
        d = d * factor + offset;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = a + b + c + d;
}

static long resident_kib()
{
    char line[256];
    long kib = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        sscanf(line, "VmRSS: %ld", &kib);
    if (status)
        fclose(status);
    return kib;
}

/* One random cycle through all entries. */
static std::vector<unsigned> cycle()
{
    std::vector<unsigned> order(entries), next(entries);
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), std::minstd_rand(1));
    for (unsigned i = 0; i < entries; i++)
        next[order[i]] = order[(i + 1) % entries];
    return next;
}

int main(int argc, char **argv)
{
    int rounds = 40, seconds = 0;
    for (int i = 1; i + 1 < argc; i += 2)
        (!strcmp(argv[i], "--seconds") ? seconds : rounds) = atoi(argv[i + 1]);
    unsigned *next, *found;
    float *out;
    if (cudaMalloc(&next, entries * sizeof *next) || cudaMalloc(&found, blocks * threads * sizeof *found) ||
        cudaMalloc(&out, blocks * threads * sizeof *out))
        return 3;
    cudaMemcpy(next, cycle().data(), entries * sizeof *next, cudaMemcpyHostToDevice);
    using clock = std::chrono::steady_clock;
    auto begin = clock::now(), printed = begin;
    int done = 0;
    // Short kernels in a long run: there the number of launches is what could make memory grow.
    int shorten = seconds ? 16 : 1;
    for (; seconds ? clock::now() - begin < std::chrono::seconds(seconds) : done < rounds; done++) {
        chase<<<blocks, threads>>>(next, found, chase_steps / shorten);
        multiply<<<blocks, threads>>>(out, multiply_steps / shorten);
        cudaDeviceSynchronize();
        if (seconds && clock::now() - printed >= std::chrono::seconds(1)) {
            printed = clock::now();
            double now_s = std::chrono::duration<double>(printed - begin).count();
            printf("{\"s\":%.1f,\"rss_kib\":%ld}\n", now_s, resident_kib());
            fflush(stdout);
        }
    }
    cudaError_t error = cudaDeviceSynchronize();
    printf("{\"rounds\":%d,\"ms_each\":%.3f,\"error\":%d}\n", done,
           std::chrono::duration<double, std::milli>(clock::now() - begin).count() / done, (int)error);
    return error != cudaSuccess;
}
