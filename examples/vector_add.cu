// SPDX-License-Identifier: Apache-2.0
// The smallest program worth a look: two vectors are added, and scopes say which kernel belongs to which part.
//
//   build  cmake -S examples -B build/examples -DGPUFL_BUILD_DIR=build && cmake --build build/examples
//   run    build/examples/vector_add && gpufl report vector_add
//
// Or without a line of gpufl in it: `gpufl trace -- build/examples/vector_add` records any CUDA program.
#include <gpufl/gpufl.hpp>

#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

static void check(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return;
    std::fprintf(stderr, "vector_add: %s: %s\n", what, cudaGetErrorString(error));
    std::exit(3);
}

__global__ void vector_add(const float *a, const float *b, float *sum, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        sum[i] = a[i] + b[i];
}

int main()
{
    gpufl::InitOptions opts;
    opts.app_name = "vector_add"; // the session directory is ./vector_add/<id>
    opts.profiling_engine = gpufl::ProfilingEngine::Trace;
    gpufl::init(opts);

    constexpr int count = 1 << 24;
    constexpr size_t bytes = count * sizeof(float);
    std::vector<float> a(count, 1.0f), b(count, 2.0f), sum(count);
    float *device_a, *device_b, *device_sum;
    for (float **vector : {&device_a, &device_b, &device_sum})
        check(cudaMalloc(vector, bytes), "device memory");

    GFL_SCOPE("upload") {
        check(cudaMemcpy(device_a, a.data(), bytes, cudaMemcpyHostToDevice), "upload");
        check(cudaMemcpy(device_b, b.data(), bytes, cudaMemcpyHostToDevice), "upload");
    }
    GFL_SCOPE("add") {
        for (int i = 0; i < 10; i++)
            vector_add<<<(count + 255) / 256, 256>>>(device_a, device_b, device_sum, count);
        check(cudaDeviceSynchronize(), "add");
    }
    GFL_SCOPE("download") {
        check(cudaMemcpy(sum.data(), device_sum, bytes, cudaMemcpyDeviceToHost), "download");
    }

    gpufl::shutdown();
    for (float value : sum)
        if (value != 3.0f) {
            std::fprintf(stderr, "vector_add: 1 + 2 is not %g\n", value);
            return 1;
        }
    std::printf("%d sums are right\n", count);
    return 0;
}
