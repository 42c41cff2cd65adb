// SPDX-License-Identifier: Apache-2.0
template <int THREADS> __global__ void reduce(const float *values, float *sums, int count)
{
    __shared__ float partial[THREADS];
    float sum = 0.0f;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS)
        sum += values[i];
    partial[threadIdx.x] = sum;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        sums[blockIdx.x] = partial[0];
}
template __global__ void reduce<64>(const float *, float *, int);
template __global__ void reduce<256>(const float *, float *, int);
