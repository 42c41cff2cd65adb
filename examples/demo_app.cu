// SPDX-License-Identifier: Apache-2.0
// What `gpufl demo` traces on a machine with a GPU: two streams of copies and kernels, two matrix products to
// compare, and scopes that say which part of the program each kernel belongs to.
#include <gpufl/gpufl.hpp>

#include <cstdio>
#include <vector>
#include <cuda_runtime.h>

static void check(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return;
    std::fprintf(stderr, "demo: %s: %s\n", what, cudaGetErrorString(error));
    std::exit(3);
}

__global__ void scale_and_add(float factor, const float *x, float *y, int count)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        y[i] = factor * x[i] + y[i];
}

__global__ void multiply_naive(const float *a, const float *b, float *c, int size)
{
    int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < size; k++)
        sum += a[row * size + k] * b[k * size + column];
    c[row * size + column] = sum;
}

constexpr int tile = 32;

__global__ void multiply_tiled(const float *a, const float *b, float *c, int size)
{
    __shared__ float left[tile][tile], right[tile][tile + 1];
    int row = blockIdx.y * tile + threadIdx.y, column = blockIdx.x * tile + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < size; k += tile) {
        left[threadIdx.y][threadIdx.x] = a[row * size + k + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * size + column];
        __syncthreads();
        for (int i = 0; i < tile; i++)
            sum += left[threadIdx.y][i] * right[i][threadIdx.x];
        __syncthreads();
    }
    c[row * size + column] = sum;
}

static void stream_pipeline(float *host, float *device[2], cudaStream_t stream[2], int count)
{
    for (int batch = 0; batch < 40; batch++) {
        int side = batch % 2;
        GFL_SCOPE("load") {
            cudaMemcpyAsync(device[side], host, count * sizeof(float), cudaMemcpyHostToDevice, stream[side]);
        }
        GFL_SCOPE("compute") {
            for (int i = 0; i < 4; i++)
                scale_and_add<<<264, 256, 0, stream[side]>>>(0.5f, device[side], device[side] + count, count);
        }
        GFL_SCOPE("store") {
            cudaMemcpyAsync(host, device[side] + count, count * sizeof(float), cudaMemcpyDeviceToHost, stream[side]);
        }
    }
    check(cudaDeviceSynchronize(), "pipeline");
}

int main()
{
    gpufl::InitOptions opts; // under `gpufl trace` this joins the session that is already running
    opts.app_name = "gpufl-demo-app";
    opts.profiling_engine = gpufl::ProfilingEngine::Trace;
    gpufl::init(opts);

    constexpr int count = 1 << 22, size = 1024;
    float *host, *device[2], *matrix;
    cudaStream_t stream[2];
    check(cudaMallocHost(&host, count * sizeof(float)), "pinned memory");
    for (int side = 0; side < 2; side++) {
        check(cudaMalloc(&device[side], 2 * count * sizeof(float)), "device memory");
        check(cudaStreamCreateWithFlags(&stream[side], cudaStreamNonBlocking), "stream");
    }
    check(cudaMalloc(&matrix, 3 * size * size * sizeof(float)), "matrices");
    check(cudaMemset(matrix, 0, 3 * size * size * sizeof(float)), "matrices");
    float *a = matrix, *b = a + size * size, *c = b + size * size;
    const dim3 grid(size / tile, size / tile), block(tile, tile);

    GFL_SCOPE("pipeline") {
        stream_pipeline(host, device, stream, count);
    }
    GFL_BENCH("matrix product, naive", gpufl::ScopeMeta{}.setRepeat(20).setWarmup(3)) {
        multiply_naive<<<grid, block>>>(a, b, c, size);
        cudaDeviceSynchronize();
    };
    GFL_BENCH("matrix product, tiled", gpufl::ScopeMeta{}.setRepeat(20).setWarmup(3)) {
        multiply_tiled<<<grid, block>>>(a, b, c, size);
        cudaDeviceSynchronize();
    };
    check(cudaGetLastError(), "kernels");
    gpufl::shutdown();
    return 0;
}
