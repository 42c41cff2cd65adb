// SPDX-License-Identifier: Apache-2.0
__device__ __forceinline__ float thrice(float x)
{
    return x * 3.0f + x;
}

__device__ float tripled_sum(float x)
{
    float sum = 0.0f;
    for (int i = 0; i < x; i++)
        sum += thrice(x + i);
    return sum;
}

__global__ void callee(float *values)
{
    values[threadIdx.x] = tripled_sum(thrice(values[threadIdx.x]));
}
