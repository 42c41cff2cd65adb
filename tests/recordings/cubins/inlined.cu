// SPDX-License-Identifier: Apache-2.0
#include "inlined.cuh"

__device__ __noinline__ float slow_sum(const float *values, int count)
{
    float sum = 0.0f;
    for (int i = 0; i < count; i++)
        sum += square(values[i]);
    return sum;
}

__global__ void distances(const float *x, const float *y, float *out, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    float first = distance(x[i], y[i]);
    float second = square(first) * slow_sum(x, i);
    out[i] = distance(second, first);
}

__global__ void squares(const float *x, float *out)
{
    out[threadIdx.x] = square(x[threadIdx.x]);
}
