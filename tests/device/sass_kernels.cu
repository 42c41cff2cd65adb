/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels whose instruction counts are known by construction, to compare gpufl
 * and ncu on:
 *
 *   nvcc -O2 -lineinfo -arch=sm_90 -o sass_kernels sass_kernels.cu
 *   ./sass_kernels [--launches N] [KERNEL...]      (default: every kernel, once)
 *
 * coalesce_1, _2, _4: float loads and stores with that stride between
 *   neighbouring threads: global coalescing 100, 50 and 25 %.
 * diverge: even and odd threads of every warp take different sides of one
 *   branch; diverge_none: whole warps do.
 * conflict_1, _2, _32: shared loads in which that many threads of a warp hit
 *   the same bank: bank-conflict factor 1, 2, 32.
 *
 * Prints one JSON object: what was launched and what must come out of it. With
 * record_sass_metrics.so preloaded the launches are recorded. */
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <cuda_runtime.h>

enum { BLOCKS = 132, THREADS = 256, WARPS = BLOCKS * THREADS / 32, ELEMENTS = BLOCKS * THREADS };

template <int STRIDE> __device__ void copy_strided(const float *in, float *out)
{
    int i = (blockIdx.x * blockDim.x + threadIdx.x) * STRIDE;
    out[i] = in[i] + 1.0f;
}
extern "C" __global__ void coalesce_1(const float *in, float *out)
{
    copy_strided<1>(in, out);
}
extern "C" __global__ void coalesce_2(const float *in, float *out)
{
    copy_strided<2>(in, out);
}
extern "C" __global__ void coalesce_4(const float *in, float *out)
{
    copy_strided<4>(in, out);
}

/* Calls that are not inlined, so that the two sides stay a branch and do not become predicated instructions. */
static __device__ __noinline__ float side_a(float x)
{
    return x * x + 3.0f;
}
static __device__ __noinline__ float side_b(float x)
{
    return x * 0.25f - 1.0f;
}

extern "C" __global__ void diverge(const float *in, float *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = in[i];
    if (threadIdx.x & 1)
        x = side_a(x);
    else
        x = side_b(x);
    out[i] = x;
}
extern "C" __global__ void diverge_none(const float *in, float *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = in[i];
    if ((threadIdx.x >> 5) & 1)
        x = side_a(x);
    else
        x = side_b(x);
    out[i] = x;
}

/* Threads t and t + 32 / WAYS of a warp read different words of the same bank. */
template <int WAYS> __device__ void shared_read(const float *in, float *out)
{
    __shared__ volatile float words[32 * 32];
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    for (int k = threadIdx.x; k < 32 * 32; k += THREADS)
        words[k] = in[k];
    __syncthreads();
    out[i] = words[lane % (32 / WAYS) + 32 * (lane / (32 / WAYS))];
}
extern "C" __global__ void conflict_1(const float *in, float *out)
{
    shared_read<1>(in, out);
}
extern "C" __global__ void conflict_2(const float *in, float *out)
{
    shared_read<2>(in, out);
}
extern "C" __global__ void conflict_32(const float *in, float *out)
{
    shared_read<32>(in, out);
}

struct kernel {
    const char *name;
    void (*function)(const float *, float *);
    const char *expected; /* JSON members */
};
static const struct kernel kernels[] = {
    {"coalesce_1", coalesce_1, "\"coalescing\":1.0"},
    {"coalesce_2", coalesce_2, "\"coalescing\":0.5"},
    {"coalesce_4", coalesce_4, "\"coalescing\":0.25"},
    {"diverge", diverge, "\"divergent_branches\":1056,\"coalescing\":1.0"},
    {"diverge_none", diverge_none, "\"divergent_branches\":0,\"coalescing\":1.0"},
    {"conflict_1", conflict_1, "\"worst_conflict\":1.0"},
    {"conflict_2", conflict_2, "\"worst_conflict\":2.0"},
    {"conflict_32", conflict_32, "\"worst_conflict\":32.0"},
};
static_assert(WARPS == 1056, "the number of divergent branches above");

/* Of record_sass_metrics.so, when it is preloaded. */
extern "C" __attribute__((weak)) void sass_record_begin(void);
extern "C" __attribute__((weak)) void sass_record_end(void);

static bool check(cudaError_t result, const char *what)
{
    if (result == cudaSuccess)
        return true;
    fprintf(stderr, "sass_kernels: %s: %s\n", what, cudaGetErrorString(result));
    return false;
}

int main(int argc, char **argv)
{
    int launches = 1;
    bool is_chosen[sizeof kernels / sizeof *kernels] = {}, has_choice = false;
    for (int i = 1; i < argc; i++) {
        bool is_known = false;
        if (!strcmp(argv[i], "--launches") && i + 1 < argc && (launches = atoi(argv[++i])) > 0)
            continue;
        for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++)
            if (!strcmp(argv[i], kernels[k].name))
                is_chosen[k] = is_known = has_choice = true;
        if (!is_known) {
            fprintf(stderr, "sass_kernels: \"%s\" is neither --launches N nor a kernel\n", argv[i]);
            return 2;
        }
    }
    float *in, *out;
    size_t bytes = (size_t)ELEMENTS * 4 * sizeof(float);
    if (!check(cudaMalloc(&in, bytes), "cudaMalloc") || !check(cudaMalloc(&out, bytes), "cudaMalloc") ||
        !check(cudaMemset(in, 0, bytes), "cudaMemset") || !check(cudaDeviceSynchronize(), "cudaMemset"))
        return 1;
    if (sass_record_begin)
        sass_record_begin();
    const char *separator = "";
    printf("{\"blocks\":%d,\"threads\":%d,\"warps\":%d,\"launches\":%d,\"kernels\":{", BLOCKS, THREADS, WARPS,
           launches);
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
        if (has_choice && !is_chosen[k])
            continue;
        for (int i = 0; i < launches; i++)
            kernels[k].function<<<BLOCKS, THREADS>>>(in, out);
        if (!check(cudaGetLastError(), kernels[k].name) || !check(cudaDeviceSynchronize(), kernels[k].name))
            return 1;
        printf("%s\"%s\":{%s}", separator, kernels[k].name, kernels[k].expected);
        separator = ",";
    }
    printf("}}\n");
    if (sass_record_end)
        sass_record_end();
    return 0;
}
