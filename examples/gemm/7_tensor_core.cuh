// SPDX-License-Identifier: Apache-2.0
// Step 7: another unit does the arithmetic. A and B in half precision, sums in single; one instruction of a warp
// multiplies 16 x 16 x 16. Eight warps share a tile of 128 x 128; asynchronous copies fill one half of the shared
// memory while the other is used. Rows are padded by 16 bytes, so that eight of them lie in different banks.
#pragma once

#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

namespace tensor_tile {

constexpr int tile = 128, depth = 32, piece = 8; // a piece: 16 bytes

struct buffers {
    __half left[tile][depth + piece], right[depth][tile + piece];
};

// Two pieces of A and two of B for each thread.
__device__ inline void copy_async(buffers &to, const __half *a, const __half *b, int k, int size)
{
    for (int i = threadIdx.x; i < tile * depth / piece; i += blockDim.x) {
        const int row = i / (depth / piece), column = i % (depth / piece) * piece;
        __pipeline_memcpy_async(&to.left[row][column], a + (blockIdx.y * tile + row) * size + k + column, 16);
    }
    for (int i = threadIdx.x; i < tile * depth / piece; i += blockDim.x) {
        const int row = i / (tile / piece), column = i % (tile / piece) * piece;
        __pipeline_memcpy_async(&to.right[row][column], b + (k + row) * size + blockIdx.x * tile + column, 16);
    }
}

} // namespace tensor_tile

__global__ void __launch_bounds__(256) gemm_tensor_core(const __half *a, const __half *b, float *c, int size)
{
    using namespace nvcuda::wmma;
    using tensor_tile::tile, tensor_tile::depth, tensor_tile::piece;
    constexpr int side = 16, down = 4, across = 2; // a warp has 4 x 2 fragments: 64 x 32 elements
    __shared__ __align__(32) tensor_tile::buffers tiles[2];
    const int warp = threadIdx.x / 32, warp_row = warp / 4 * down * side, warp_column = warp % 4 * across * side;

    fragment<accumulator, side, side, side, float> sums[down][across];
    for (auto &line : sums)
        for (auto &sum : line)
            fill_fragment(sum, 0.0f);

    tensor_tile::copy_async(tiles[0], a, b, 0, size);
    __pipeline_commit();
    for (int k = 0, current = 0; k < size; k += depth, current ^= 1) {
        if (k + depth < size)
            tensor_tile::copy_async(tiles[current ^ 1], a, b, k + depth, size);
        __pipeline_commit();
        __pipeline_wait_prior(1); // all but the newest copy: this tile is there
        __syncthreads();
        for (int i = 0; i < depth; i += side) {
            fragment<matrix_a, side, side, side, __half, row_major> left[down];
            fragment<matrix_b, side, side, side, __half, row_major> right[across];
            for (int y = 0; y < down; y++)
                load_matrix_sync(left[y], &tiles[current].left[warp_row + y * side][i], depth + piece);
            for (int x = 0; x < across; x++)
                load_matrix_sync(right[x], &tiles[current].right[i][warp_column + x * side], tile + piece);
            for (int y = 0; y < down; y++)
                for (int x = 0; x < across; x++)
                    mma_sync(sums[y][x], left[y], right[x], sums[y][x]);
        }
        __syncthreads();
    }
    for (int y = 0; y < down; y++)
        for (int x = 0; x < across; x++) {
            const int row = blockIdx.y * tile + warp_row + y * side;
            const int column = blockIdx.x * tile + warp_column + x * side;
            store_matrix_sync(c + row * size + column, sums[y][x], size, mem_row_major);
        }
}
