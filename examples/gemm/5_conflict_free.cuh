// SPDX-License-Identifier: Apache-2.0
// Step 5: the same tile, laid out for the banks. A thread's eight columns become two groups of four, 64 apart, so
// that threads next to each other read 16 bytes next to each other. A's tile is padded by 4, so that the 32 threads
// that store it transposed meet 32 banks. Everything moves in pieces of 16 bytes.
#pragma once

namespace block_tile {

constexpr int tile = 128, depth = 8, padded = tile + 4, half = tile / 2;

struct buffers {
    float left[depth][padded], right[depth][tile];
};

// Where this thread loads from, and where it puts that.
struct place {
    const float *a, *b;
    int a_row, a_depth, b_depth, b_column;

    __device__ place(const float *all_a, const float *all_b, int size)
        : a_row(threadIdx.x / 2), a_depth(threadIdx.x % 2 * 4), b_depth(threadIdx.x / 32),
          b_column(threadIdx.x % 32 * 4)
    {
        a = all_a + (blockIdx.y * tile + a_row) * size + a_depth;
        b = all_b + b_depth * size + blockIdx.x * tile + b_column;
    }
    __device__ float4 load_a(int k) const
    {
        return *reinterpret_cast<const float4 *>(a + k);
    }
    __device__ float4 load_b(int k, int size) const
    {
        return *reinterpret_cast<const float4 *>(b + k * size);
    }
    __device__ void store(buffers &to, float4 part_a, float4 part_b) const
    {
        to.left[a_depth + 0][a_row] = part_a.x;
        to.left[a_depth + 1][a_row] = part_a.y;
        to.left[a_depth + 2][a_row] = part_a.z;
        to.left[a_depth + 3][a_row] = part_a.w;
        *reinterpret_cast<float4 *>(&to.right[b_depth][b_column]) = part_b;
    }
};

// Four elements at `first`, and the four that lie half a tile behind them.
__device__ inline void load_eight(float out[8], const float *line, int first)
{
    const float4 low = *reinterpret_cast<const float4 *>(line + first);
    const float4 high = *reinterpret_cast<const float4 *>(line + half + first);
    out[0] = low.x, out[1] = low.y, out[2] = low.z, out[3] = low.w;
    out[4] = high.x, out[5] = high.y, out[6] = high.z, out[7] = high.w;
}

__device__ inline void multiply(float sums[8][8], const buffers &from)
{
    const int row = threadIdx.x / 16 * 4, column = threadIdx.x % 16 * 4;
    for (int i = 0; i < depth; i++) {
        float rows[8], columns[8];
        load_eight(rows, from.left[i], row);
        load_eight(columns, from.right[i], column);
        for (int y = 0; y < 8; y++)
            for (int x = 0; x < 8; x++)
                sums[y][x] += rows[y] * columns[x];
    }
}

__device__ inline void store_sums(const float sums[8][8], float *c, int size)
{
    const int row = blockIdx.y * tile + threadIdx.x / 16 * 4, column = blockIdx.x * tile + threadIdx.x % 16 * 4;
    for (int y = 0; y < 8; y++)
        for (int x = 0; x < 8; x += 4) {
            float *out = c + (row + y % 4 + y / 4 * half) * size + column + x / 4 * half;
            *reinterpret_cast<float4 *>(out) = make_float4(sums[y][x], sums[y][x + 1], sums[y][x + 2], sums[y][x + 3]);
        }
}

} // namespace block_tile

__global__ void __launch_bounds__(256) gemm_conflict_free(const float *a, const float *b, float *c, int size)
{
    __shared__ __align__(16) block_tile::buffers tiles;
    const block_tile::place place(a, b, size);
    float sums[8][8] = {};
    for (int k = 0; k < size; k += block_tile::depth) {
        place.store(tiles, place.load_a(k), place.load_b(k, size));
        __syncthreads();
        block_tile::multiply(sums, tiles);
        __syncthreads();
    }
    block_tile::store_sums(sums, c, size);
}
