// SPDX-License-Identifier: Apache-2.0
// Step 4: a thread computes 8 x 8 elements of C in its registers, so 16 loads from shared memory feed 64
// multiplications. Its eight columns lie side by side: threads next to each other read shared memory 8 floats apart,
// and every fourth of them meets the same bank.
#pragma once

__global__ void __launch_bounds__(256) gemm_register_tile(const float *a, const float *b, float *c, int size)
{
    constexpr int tile = 128, depth = 8, own = 8;
    __shared__ float left[depth][tile], right[depth][tile];
    const int first_row = blockIdx.y * tile, first_column = blockIdx.x * tile;
    const int own_row = threadIdx.x / 16 * own, own_column = threadIdx.x % 16 * own;
    // What this thread loads: of A four elements of one of 128 rows, of B four elements of one of 8 rows.
    const int a_row = threadIdx.x / 2, a_depth = threadIdx.x % 2 * 4;
    const int b_depth = threadIdx.x / 32, b_column = threadIdx.x % 32 * 4;

    float sums[own][own] = {};
    for (int k = 0; k < size; k += depth) {
        for (int i = 0; i < 4; i++)
            left[a_depth + i][a_row] = a[(first_row + a_row) * size + k + a_depth + i];
        for (int i = 0; i < 4; i++)
            right[b_depth][b_column + i] = b[(k + b_depth) * size + first_column + b_column + i];
        __syncthreads();
        for (int i = 0; i < depth; i++) {
            float rows[own], columns[own];
            for (int j = 0; j < own; j++)
                rows[j] = left[i][own_row + j];
            for (int j = 0; j < own; j++)
                columns[j] = right[i][own_column + j];
            for (int y = 0; y < own; y++)
                for (int x = 0; x < own; x++)
                    sums[y][x] += rows[y] * columns[x];
        }
        __syncthreads();
    }
    for (int y = 0; y < own; y++)
        for (int x = 0; x < own; x++)
            c[(first_row + own_row + y) * size + first_column + own_column + x] = sums[y][x];
}
