// SPDX-License-Identifier: Apache-2.0
// Step 1: one thread for each element of C. Neighbouring threads have neighbouring rows, so the 32 threads of a warp
// read A from 32 places that lie a whole row apart: each load moves 32 sectors of 32 bytes to use 4 bytes of each.
#pragma once

__global__ void gemm_naive(const float *a, const float *b, float *c, int size)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x, column = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < size; k++)
        sum += a[row * size + k] * b[k * size + column];
    c[row * size + column] = sum;
}
