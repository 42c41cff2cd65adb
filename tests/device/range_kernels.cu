// SPDX-License-Identifier: Apache-2.0
// A GEMM, a copy and a reduction, each in a separate scope and repeated, so that all passes of a set of metrics can
// be collected; also runs plainly under ncu. usage: range_kernels [--rounds N] [--interleave]
//   --interleave: gemm, copy, reduce, gemm, ... instead of all rounds of one before the next
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <gpufl/gpufl.h>

constexpr int side = 4096, tile = 32;
// Copy and reduction run for a millisecond: parts of the peak per elapsed time mean little for a shorter kernel.
constexpr int count = 1 << 28;

__global__ void gemm(float *c, const float *a, const float *b)
{
    __shared__ float part_a[tile][tile], part_b[tile][tile];
    int row = blockIdx.y * tile + threadIdx.y, column = blockIdx.x * tile + threadIdx.x;
    float sum = 0;
    for (int step = 0; step < side; step += tile) {
        part_a[threadIdx.y][threadIdx.x] = a[row * side + step + threadIdx.x];
        part_b[threadIdx.y][threadIdx.x] = b[(step + threadIdx.y) * side + column];
        __syncthreads();
        for (int k = 0; k < tile; k++)
            sum += part_a[threadIdx.y][k] * part_b[k][threadIdx.x];
        __syncthreads();
    }
    c[row * side + column] = sum;
}

__global__ void copy(float *to, const float *from)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    to[i] = from[i];
}

__global__ void reduce(float *to, const float *from)
{
    __shared__ float part[256];
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        sum += from[i];
    part[threadIdx.x] = sum;
    for (int width = 128; width; width /= 2) {
        __syncthreads();
        if (threadIdx.x < width)
            part[threadIdx.x] += part[threadIdx.x + width];
    }
    if (!threadIdx.x)
        to[blockIdx.x] = part[0];
}

static float *a, *b, *c;
static const char *const names[] = {"gemm", "copy", "reduce"};

static void run(int which)
{
    gpufl_scope_push(names[which], nullptr);
    if (which == 0)
        gemm<<<dim3(side / tile, side / tile), dim3(tile, tile)>>>(c, a, b);
    else if (which == 1)
        copy<<<count / 256, 256>>>(c, a);
    else
        reduce<<<1024, 256>>>(c, a);
    gpufl_scope_pop();
    cudaDeviceSynchronize();
}

int main(int argc, char **argv)
{
    int rounds = 40;
    bool is_interleaved = false;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--rounds") && i + 1 < argc)
            rounds = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--interleave"))
            is_interleaved = true;
    }
    for (float **buffer : {&a, &b, &c})
        if (cudaMalloc(buffer, count * sizeof **buffer) || cudaMemset(*buffer, 0, count * sizeof **buffer)) {
            fprintf(stderr, "no GPU memory: %s\n", cudaGetErrorString(cudaGetLastError()));
            return 1;
        }
    cudaDeviceSynchronize();
    for (int i = 0; i < 3 * rounds; i++)
        run(is_interleaved ? i % 3 : i / rounds);
    cudaError_t error = cudaDeviceSynchronize();
    printf("{\"kernels\": [\"gemm\", \"copy\", \"reduce\"], \"rounds\": %d, \"error\": %d}\n", rounds, (int)error);
    return error != cudaSuccess;
}
