// SPDX-License-Identifier: Apache-2.0
__device__ float tripled_sum(float x);

__device__ __forceinline__ float twice(float x)
{
    return x + x;
}

__global__ void caller(float *values)
{
    values[threadIdx.x] = tripled_sum(twice(values[threadIdx.x]));
}
