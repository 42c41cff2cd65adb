/* SPDX-License-Identifier: Apache-2.0 */
/* The words of CUDA that blocks in the documentation use, so that their syntax can be checked without a toolkit. */
#ifndef CUDA_WORDS_H
#define CUDA_WORDS_H

#include <stddef.h>

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __restrict__ __restrict

struct dim3 {
    unsigned x, y, z;
    __host__ __device__ dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
typedef struct CUstream_st *cudaStream_t;
typedef int cudaError_t;
extern "C" cudaError_t __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t bytes = 0, cudaStream_t stream = 0);
extern "C" cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t bytes,
                                        cudaStream_t stream);
extern "C" cudaError_t cudaDeviceSynchronize(void);
extern "C" cudaError_t cudaMalloc(void **address, size_t bytes);
extern "C" cudaError_t cudaFree(void *address);
__device__ void __syncthreads(void);
extern const __device__ dim3 threadIdx, blockIdx, blockDim, gridDim;

#endif
