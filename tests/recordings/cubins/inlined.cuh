// SPDX-License-Identifier: Apache-2.0
__device__ __forceinline__ float square(float x)
{
    return x * x;
}

__device__ __forceinline__ float distance(float x, float y)
{
    float sum = square(x) + square(y);
    return sqrtf(sum);
}
