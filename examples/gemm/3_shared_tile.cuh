// SPDX-License-Identifier: Apache-2.0
// Step 3: a block copies a tile of A and one of B into shared memory and uses each element 32 times from there: a
// 32nd of the global loads. Each multiplication still needs two loads from shared memory, and those are the next
// limit.
#pragma once

__global__ void gemm_shared_tile(const float *a, const float *b, float *c, int size)
{
    constexpr int tile = 32;
    __shared__ float left[tile][tile], right[tile][tile];
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
