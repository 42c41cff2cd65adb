/* SPDX-License-Identifier: Apache-2.0 */
/* Prototypes of the look-alike driver, for itself and for fake_app. Those the
 * product calls come from the product's own declarations, so that both agree. */
#ifndef FAKES_CUDA_FAKE_H
#define FAKES_CUDA_FAKE_H

#include "driver/cuda_abi.h"
#include "fake_gpu.h"

#define CUDA_FAKE_PROTOTYPE(member, symbol, params) FAKE_API int symbol params;
CUDA_ABI_FUNCTIONS(CUDA_FAKE_PROTOTYPE)

FAKE_API int cuGetErrorName(int result, const char **name);
FAKE_API int cuCtxCreate_v2(struct fake_context **context, unsigned flags, int device);
FAKE_API int cuCtxSetCurrent(struct fake_context *context);
FAKE_API int cuCtxGetDevice(int *device);
FAKE_API int cuCtxDestroy_v2(struct fake_context *context);
FAKE_API int cuModuleLoadData(const struct fake_image **module, const void *image);
FAKE_API int cuModuleGetFunction(const struct fake_kernel **function, const struct fake_image *module,
                                 const char *name);
FAKE_API int cuModuleUnload(const struct fake_image *module);
FAKE_API int cuLaunchKernel(const struct fake_kernel *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                            unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream,
                            void **params, void **extra);
FAKE_API int cuMemAlloc_v2(uint64_t *address, size_t bytes);
FAKE_API int cuMemFree_v2(uint64_t address);
FAKE_API int cuMemcpyHtoD_v2(uint64_t destination, const void *source, size_t bytes);
FAKE_API int cuMemcpyDtoH_v2(void *destination, uint64_t source, size_t bytes);
FAKE_API int cuMemsetD8Async(uint64_t destination, unsigned char value, size_t bytes, void *stream);
FAKE_API int cuStreamCreate(struct fake_stream **stream, unsigned flags);
FAKE_API int cuStreamDestroy_v2(struct fake_stream *stream);
FAKE_API int cuStreamSynchronize(void *stream);
FAKE_API int cuStreamWaitEvent(void *stream, struct fake_event *event, unsigned flags);
FAKE_API int cuEventCreate(struct fake_event **event, unsigned flags);
FAKE_API int cuEventRecord(struct fake_event *event, void *stream);
FAKE_API int cuEventSynchronize(struct fake_event *event);
FAKE_API int cuEventDestroy_v2(struct fake_event *event);
FAKE_API int cuGraphLaunch(struct fake_graph *graph, void *stream);

#endif
