// SPDX-License-Identifier: Apache-2.0
// Step 6: two tiles in turn. The next one is on its way from global memory while this one is multiplied, so nobody
// waits for it, and one barrier per tile is enough: no thread writes what another still reads.
#pragma once

#include "5_conflict_free.cuh"

__global__ void __launch_bounds__(256) gemm_double_buffer(const float *a, const float *b, float *c, int size)
{
    __shared__ __align__(16) block_tile::buffers tiles[2];
    const block_tile::place place(a, b, size);
    float sums[8][8] = {};
    place.store(tiles[0], place.load_a(0), place.load_b(0, size));
    __syncthreads();
    int current = 0;
    for (int k = block_tile::depth; k < size; k += block_tile::depth) {
        const float4 next_a = place.load_a(k), next_b = place.load_b(k, size);
        block_tile::multiply(sums, tiles[current]);
        current ^= 1;
        place.store(tiles[current], next_a, next_b);
        __syncthreads();
    }
    block_tile::multiply(sums, tiles[current]);
    block_tile::store_sums(sums, c, size);
}
