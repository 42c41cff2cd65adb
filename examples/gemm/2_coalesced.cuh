// SPDX-License-Identifier: Apache-2.0
// Step 2: the same, but neighbouring threads have neighbouring columns. A warp reads one element of A, which all its
// threads share, and 32 elements of B that lie side by side: four sectors, every byte used.
#pragma once

__global__ void gemm_coalesced(const float *a, const float *b, float *c, int size)
{
    int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < size; k++)
        sum += a[row * size + k] * b[k * size + column];
    c[row * size + column] = sum;
}
