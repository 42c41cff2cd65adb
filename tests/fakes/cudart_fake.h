/* SPDX-License-Identifier: Apache-2.0 */
/* Prototypes of the look-alike CUDA runtime, for itself and for fake_app. */
#ifndef FAKES_CUDART_FAKE_H
#define FAKES_CUDART_FAKE_H

#include "fake_gpu.h"

enum { FAKE_COPY_TO_DEVICE = 1, FAKE_COPY_TO_HOST = 2, FAKE_COPY_ON_DEVICE = 3 }; /* cudaMemcpyKind */
struct fake_dim3 {
    unsigned x, y, z;
};

/* Registration as nvcc's code does it; the "fat binary" is a struct fake_image. */
FAKE_API void **__cudaRegisterFatBinary(void *image);
FAKE_API void __cudaRegisterFunction(void **handle, const char *host_function, char *device_function, const char *name,
                                     int thread_limit, void *tid, void *bid, void *block_dim, void *grid_dim,
                                     int *warp_size);
FAKE_API void __cudaUnregisterFatBinary(void **handle);

FAKE_API int cudaGetDeviceCount(int *count);
FAKE_API int cudaSetDevice(int device);
FAKE_API int cudaGetDevice(int *device);
FAKE_API int cudaGetLastError(void);
FAKE_API const char *cudaGetErrorString(int error);
FAKE_API int cudaMalloc(void **address, size_t bytes);
FAKE_API int cudaFree(void *address);
FAKE_API int cudaMemcpy(void *destination, const void *source, size_t bytes, int kind);
FAKE_API int cudaMemcpyAsync(void *destination, const void *source, size_t bytes, int kind, void *stream);
FAKE_API int cudaMemcpyPeerAsync(void *destination, int destination_device, const void *source, int source_device,
                                 size_t bytes, void *stream);
FAKE_API int cudaMemset(void *destination, int value, size_t bytes);
FAKE_API int cudaMemsetAsync(void *destination, int value, size_t bytes, void *stream);
FAKE_API int cudaLaunchKernel(const void *function, struct fake_dim3 grid, struct fake_dim3 block, void **args,
                              size_t shared_bytes, void *stream);
FAKE_API int cudaStreamCreate(void **stream);
FAKE_API int cudaStreamDestroy(void *stream);
FAKE_API int cudaStreamSynchronize(void *stream);
FAKE_API int cudaStreamWaitEvent(void *stream, void *event, unsigned flags);
FAKE_API int cudaDeviceSynchronize(void);
FAKE_API int cudaEventCreate(void **event);
FAKE_API int cudaEventRecord(void *event, void *stream);
FAKE_API int cudaEventSynchronize(void *event);
FAKE_API int cudaEventQuery(void *event);
FAKE_API int cudaEventElapsedTime(float *milliseconds, void *start, void *end);
FAKE_API int cudaEventDestroy(void *event);
FAKE_API int cudaStreamBeginCapture(void *stream, int mode);
FAKE_API int cudaStreamEndCapture(void *stream, void **graph);
FAKE_API int cudaGraphInstantiate(void **executable, void *graph, unsigned long long flags);
FAKE_API int cudaGraphLaunch(void *executable, void *stream);
FAKE_API int cudaGraphExecDestroy(void *executable);
FAKE_API int cudaGraphDestroy(void *graph);

#endif
