/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime and driver calls whose records are wanted; enabling a whole kind would also record every query and
 * attribute call. Ids are permanent; ids unknown to a library are skipped. */
#ifndef GPUFL_DRIVER_CUPTI_CALLS_H
#define GPUFL_DRIVER_CUPTI_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(domain, name in CUPTI's headers, callback id, group) */
#define CUPTI_RUNTIME_CALLS(X)                                            \
    /* launch */                                                          \
    X(RUNTIME, cudaLaunch_v3020, 13, LAUNCH)                              \
    X(RUNTIME, cudaLaunchKernel_v7000, 211, LAUNCH)                       \
    X(RUNTIME, cudaLaunch_ptsz_v7000, 213, LAUNCH)                        \
    X(RUNTIME, cudaLaunchKernel_ptsz_v7000, 214, LAUNCH)                  \
    X(RUNTIME, cudaLaunchCooperativeKernel_v9000, 269, LAUNCH)            \
    X(RUNTIME, cudaLaunchCooperativeKernel_ptsz_v9000, 270, LAUNCH)       \
    X(RUNTIME, cudaLaunchCooperativeKernelMultiDevice_v9000, 272, LAUNCH) \
    X(RUNTIME, cudaLaunchKernelExC_v11060, 430, LAUNCH)                   \
    X(RUNTIME, cudaLaunchKernelExC_ptsz_v11060, 431, LAUNCH)              \
    X(RUNTIME, __cudaLaunchKernel_v13000, 505, LAUNCH)                    \
    X(RUNTIME, __cudaLaunchKernel_ptsz_v13000, 506, LAUNCH)               \
    /* graph */                                                           \
    X(RUNTIME, cudaGraphLaunch_v10000, 311, GRAPH)                        \
    X(RUNTIME, cudaGraphLaunch_ptsz_v10000, 312, GRAPH)                   \
    /* capture */                                                         \
    X(RUNTIME, cudaStreamBeginCapture_v10000, 315, CAPTURE)               \
    X(RUNTIME, cudaStreamBeginCapture_ptsz_v10000, 316, CAPTURE)          \
    X(RUNTIME, cudaStreamBeginCaptureToGraph_v12030, 452, CAPTURE)        \
    X(RUNTIME, cudaStreamBeginCaptureToGraph_ptsz_v12030, 453, CAPTURE)   \
    X(RUNTIME, cudaStreamEndCapture_v10000, 319, CAPTURE_END)             \
    X(RUNTIME, cudaStreamEndCapture_ptsz_v10000, 320, CAPTURE_END)        \
    /* copy */                                                            \
    X(RUNTIME, cudaMemcpy_v3020, 31, COPY)                                \
    X(RUNTIME, cudaMemcpy2D_v3020, 32, COPY)                              \
    X(RUNTIME, cudaMemcpyToArray_v3020, 33, COPY)                         \
    X(RUNTIME, cudaMemcpy2DToArray_v3020, 34, COPY)                       \
    X(RUNTIME, cudaMemcpyFromArray_v3020, 35, COPY)                       \
    X(RUNTIME, cudaMemcpy2DFromArray_v3020, 36, COPY)                     \
    X(RUNTIME, cudaMemcpyArrayToArray_v3020, 37, COPY)                    \
    X(RUNTIME, cudaMemcpy2DArrayToArray_v3020, 38, COPY)                  \
    X(RUNTIME, cudaMemcpyToSymbol_v3020, 39, COPY)                        \
    X(RUNTIME, cudaMemcpyFromSymbol_v3020, 40, COPY)                      \
    X(RUNTIME, cudaMemcpyAsync_v3020, 41, COPY)                           \
    X(RUNTIME, cudaMemcpyToArrayAsync_v3020, 42, COPY)                    \
    X(RUNTIME, cudaMemcpyFromArrayAsync_v3020, 43, COPY)                  \
    X(RUNTIME, cudaMemcpy2DAsync_v3020, 44, COPY)                         \
    X(RUNTIME, cudaMemcpy2DToArrayAsync_v3020, 45, COPY)                  \
    X(RUNTIME, cudaMemcpy2DFromArrayAsync_v3020, 46, COPY)                \
    X(RUNTIME, cudaMemcpyToSymbolAsync_v3020, 47, COPY)                   \
    X(RUNTIME, cudaMemcpyFromSymbolAsync_v3020, 48, COPY)                 \
    X(RUNTIME, cudaMemset_v3020, 49, COPY)                                \
    X(RUNTIME, cudaMemset2D_v3020, 50, COPY)                              \
    X(RUNTIME, cudaMemsetAsync_v3020, 51, COPY)                           \
    X(RUNTIME, cudaMemset2DAsync_v3020, 52, COPY)                         \
    X(RUNTIME, cudaMemset3D_v3020, 142, COPY)                             \
    X(RUNTIME, cudaMemset3DAsync_v3020, 143, COPY)                        \
    X(RUNTIME, cudaMemcpy3D_v3020, 144, COPY)                             \
    X(RUNTIME, cudaMemcpy3DAsync_v3020, 145, COPY)                        \
    X(RUNTIME, cudaMemcpyPeer_v4000, 160, COPY)                           \
    X(RUNTIME, cudaMemcpyPeerAsync_v4000, 161, COPY)                      \
    X(RUNTIME, cudaMemcpy3DPeer_v4000, 162, COPY)                         \
    X(RUNTIME, cudaMemcpy3DPeerAsync_v4000, 163, COPY)                    \
    X(RUNTIME, cudaMemcpy_ptds_v7000, 215, COPY)                          \
    X(RUNTIME, cudaMemcpy2D_ptds_v7000, 216, COPY)                        \
    X(RUNTIME, cudaMemcpyToArray_ptds_v7000, 217, COPY)                   \
    X(RUNTIME, cudaMemcpy2DToArray_ptds_v7000, 218, COPY)                 \
    X(RUNTIME, cudaMemcpyFromArray_ptds_v7000, 219, COPY)                 \
    X(RUNTIME, cudaMemcpy2DFromArray_ptds_v7000, 220, COPY)               \
    X(RUNTIME, cudaMemcpyArrayToArray_ptds_v7000, 221, COPY)              \
    X(RUNTIME, cudaMemcpy2DArrayToArray_ptds_v7000, 222, COPY)            \
    X(RUNTIME, cudaMemcpyToSymbol_ptds_v7000, 223, COPY)                  \
    X(RUNTIME, cudaMemcpyFromSymbol_ptds_v7000, 224, COPY)                \
    X(RUNTIME, cudaMemcpyAsync_ptsz_v7000, 225, COPY)                     \
    X(RUNTIME, cudaMemcpyToArrayAsync_ptsz_v7000, 226, COPY)              \
    X(RUNTIME, cudaMemcpyFromArrayAsync_ptsz_v7000, 227, COPY)            \
    X(RUNTIME, cudaMemcpy2DAsync_ptsz_v7000, 228, COPY)                   \
    X(RUNTIME, cudaMemcpy2DToArrayAsync_ptsz_v7000, 229, COPY)            \
    X(RUNTIME, cudaMemcpy2DFromArrayAsync_ptsz_v7000, 230, COPY)          \
    X(RUNTIME, cudaMemcpyToSymbolAsync_ptsz_v7000, 231, COPY)             \
    X(RUNTIME, cudaMemcpyFromSymbolAsync_ptsz_v7000, 232, COPY)           \
    X(RUNTIME, cudaMemset_ptds_v7000, 233, COPY)                          \
    X(RUNTIME, cudaMemset2D_ptds_v7000, 234, COPY)                        \
    X(RUNTIME, cudaMemsetAsync_ptsz_v7000, 235, COPY)                     \
    X(RUNTIME, cudaMemset2DAsync_ptsz_v7000, 236, COPY)                   \
    X(RUNTIME, cudaMemset3D_ptds_v7000, 243, COPY)                        \
    X(RUNTIME, cudaMemset3DAsync_ptsz_v7000, 244, COPY)                   \
    X(RUNTIME, cudaMemcpy3D_ptds_v7000, 245, COPY)                        \
    X(RUNTIME, cudaMemcpy3DAsync_ptsz_v7000, 246, COPY)                   \
    X(RUNTIME, cudaMemcpy3DPeer_ptds_v7000, 249, COPY)                    \
    X(RUNTIME, cudaMemcpy3DPeerAsync_ptsz_v7000, 250, COPY)               \
    X(RUNTIME, cudaMemcpyBatchAsync_v12080, 482, COPY)                    \
    X(RUNTIME, cudaMemcpyBatchAsync_ptsz_v12080, 483, COPY)               \
    X(RUNTIME, cudaMemcpy3DBatchAsync_v12080, 484, COPY)                  \
    X(RUNTIME, cudaMemcpy3DBatchAsync_ptsz_v12080, 485, COPY)             \
    X(RUNTIME, cudaMemcpyBatchAsync_v13000, 509, COPY)                    \
    X(RUNTIME, cudaMemcpyBatchAsync_ptsz_v13000, 510, COPY)               \
    X(RUNTIME, cudaMemcpy3DBatchAsync_v13000, 511, COPY)                  \
    X(RUNTIME, cudaMemcpy3DBatchAsync_ptsz_v13000, 512, COPY)             \
    /* sync */                                                            \
    X(RUNTIME, cudaThreadSynchronize_v3020, 126, SYNC)                    \
    X(RUNTIME, cudaStreamSynchronize_v3020, 131, SYNC)                    \
    X(RUNTIME, cudaEventSynchronize_v3020, 137, SYNC)                     \
    X(RUNTIME, cudaStreamWaitEvent_v3020, 147, SYNC)                      \
    X(RUNTIME, cudaDeviceSynchronize_v3020, 165, SYNC)                    \
    X(RUNTIME, cudaStreamSynchronize_ptsz_v7000, 239, SYNC)               \
    X(RUNTIME, cudaStreamWaitEvent_ptsz_v7000, 247, SYNC)                 \
    /* memory */                                                          \
    X(RUNTIME, cudaMalloc_v3020, 20, MEMORY)                              \
    X(RUNTIME, cudaMallocPitch_v3020, 21, MEMORY)                         \
    X(RUNTIME, cudaFree_v3020, 22, MEMORY)                                \
    X(RUNTIME, cudaMallocArray_v3020, 23, MEMORY)                         \
    X(RUNTIME, cudaFreeArray_v3020, 24, MEMORY)                           \
    X(RUNTIME, cudaMallocHost_v3020, 25, MEMORY)                          \
    X(RUNTIME, cudaFreeHost_v3020, 26, MEMORY)                            \
    X(RUNTIME, cudaHostAlloc_v3020, 27, MEMORY)                           \
    X(RUNTIME, cudaMalloc3D_v3020, 140, MEMORY)                           \
    X(RUNTIME, cudaMalloc3DArray_v3020, 141, MEMORY)                      \
    X(RUNTIME, cudaMallocMipmappedArray_v5000, 192, MEMORY)               \
    X(RUNTIME, cudaFreeMipmappedArray_v5000, 194, MEMORY)                 \
    X(RUNTIME, cudaMallocManaged_v6000, 206, MEMORY)                      \
    X(RUNTIME, cudaMallocAsync_v11020, 373, MEMORY)                       \
    X(RUNTIME, cudaMallocAsync_ptsz_v11020, 374, MEMORY)                  \
    X(RUNTIME, cudaFreeAsync_v11020, 375, MEMORY)                         \
    X(RUNTIME, cudaFreeAsync_ptsz_v11020, 376, MEMORY)                    \
    X(RUNTIME, cudaMallocFromPoolAsync_v11020, 391, MEMORY)               \
    X(RUNTIME, cudaMallocFromPoolAsync_ptsz_v11020, 392, MEMORY)

#define CUPTI_DRIVER_CALLS(X)                                    \
    /* launch */                                                 \
    X(DRIVER, cuLaunch, 115, LAUNCH)                             \
    X(DRIVER, cuLaunchGrid, 116, LAUNCH)                         \
    X(DRIVER, cuLaunchGridAsync, 117, LAUNCH)                    \
    X(DRIVER, cuLaunchKernel, 307, LAUNCH)                       \
    X(DRIVER, cuLaunchKernel_ptsz, 442, LAUNCH)                  \
    X(DRIVER, cuLaunchCooperativeKernel, 477, LAUNCH)            \
    X(DRIVER, cuLaunchCooperativeKernel_ptsz, 478, LAUNCH)       \
    X(DRIVER, cuLaunchCooperativeKernelMultiDevice, 480, LAUNCH) \
    X(DRIVER, cuLaunchKernelEx, 652, LAUNCH)                     \
    X(DRIVER, cuLaunchKernelEx_ptsz, 653, LAUNCH)                \
    /* graph */                                                  \
    X(DRIVER, cuGraphLaunch, 514, GRAPH)                         \
    X(DRIVER, cuGraphLaunch_ptsz, 515, GRAPH)                    \
    /* capture */                                                \
    X(DRIVER, cuStreamBeginCapture, 495, CAPTURE)                \
    X(DRIVER, cuStreamBeginCapture_ptsz, 496, CAPTURE)           \
    X(DRIVER, cuStreamBeginCapture_v2, 539, CAPTURE)             \
    X(DRIVER, cuStreamBeginCapture_v2_ptsz, 540, CAPTURE)        \
    X(DRIVER, cuStreamBeginCaptureToGraph, 720, CAPTURE)         \
    X(DRIVER, cuStreamBeginCaptureToGraph_ptsz, 721, CAPTURE)    \
    X(DRIVER, cuStreamEndCapture, 497, CAPTURE_END)              \
    X(DRIVER, cuStreamEndCapture_ptsz, 498, CAPTURE_END)         \
    /* copy */                                                   \
    X(DRIVER, cuMemcpyHtoD, 43, COPY)                            \
    X(DRIVER, cuMemcpyDtoH, 45, COPY)                            \
    X(DRIVER, cuMemcpyDtoD, 47, COPY)                            \
    X(DRIVER, cuMemcpyDtoA, 49, COPY)                            \
    X(DRIVER, cuMemcpyAtoD, 51, COPY)                            \
    X(DRIVER, cuMemcpyHtoA, 53, COPY)                            \
    X(DRIVER, cuMemcpyAtoH, 54, COPY)                            \
    X(DRIVER, cuMemcpyAtoA, 55, COPY)                            \
    X(DRIVER, cuMemcpy2D, 56, COPY)                              \
    X(DRIVER, cuMemcpy2DUnaligned, 57, COPY)                     \
    X(DRIVER, cuMemcpy3D, 58, COPY)                              \
    X(DRIVER, cuMemcpyHtoDAsync, 60, COPY)                       \
    X(DRIVER, cuMemcpyDtoHAsync, 62, COPY)                       \
    X(DRIVER, cuMemcpyDtoDAsync, 64, COPY)                       \
    X(DRIVER, cuMemcpyHtoAAsync, 66, COPY)                       \
    X(DRIVER, cuMemcpyAtoHAsync, 67, COPY)                       \
    X(DRIVER, cuMemcpy2DAsync, 68, COPY)                         \
    X(DRIVER, cuMemcpy3DAsync, 69, COPY)                         \
    X(DRIVER, cuMemsetD8, 71, COPY)                              \
    X(DRIVER, cuMemsetD16, 73, COPY)                             \
    X(DRIVER, cuMemsetD32, 75, COPY)                             \
    X(DRIVER, cuMemsetD2D8, 77, COPY)                            \
    X(DRIVER, cuMemsetD2D16, 79, COPY)                           \
    X(DRIVER, cuMemsetD2D32, 81, COPY)                           \
    X(DRIVER, cuMemsetD8Async, 216, COPY)                        \
    X(DRIVER, cuMemsetD16Async, 218, COPY)                       \
    X(DRIVER, cuMemsetD32Async, 220, COPY)                       \
    X(DRIVER, cuMemsetD2D8Async, 222, COPY)                      \
    X(DRIVER, cuMemsetD2D16Async, 224, COPY)                     \
    X(DRIVER, cuMemsetD2D32Async, 226, COPY)                     \
    X(DRIVER, cuMemcpy_v2, 248, COPY)                            \
    X(DRIVER, cuMemsetD8_v2, 249, COPY)                          \
    X(DRIVER, cuMemsetD16_v2, 250, COPY)                         \
    X(DRIVER, cuMemsetD32_v2, 251, COPY)                         \
    X(DRIVER, cuMemsetD2D8_v2, 252, COPY)                        \
    X(DRIVER, cuMemsetD2D16_v2, 253, COPY)                       \
    X(DRIVER, cuMemsetD2D32_v2, 254, COPY)                       \
    X(DRIVER, cuMemcpyHtoD_v2, 276, COPY)                        \
    X(DRIVER, cuMemcpyHtoDAsync_v2, 277, COPY)                   \
    X(DRIVER, cuMemcpyDtoH_v2, 278, COPY)                        \
    X(DRIVER, cuMemcpyDtoHAsync_v2, 279, COPY)                   \
    X(DRIVER, cuMemcpyDtoD_v2, 280, COPY)                        \
    X(DRIVER, cuMemcpyDtoDAsync_v2, 281, COPY)                   \
    X(DRIVER, cuMemcpyAtoH_v2, 282, COPY)                        \
    X(DRIVER, cuMemcpyAtoHAsync_v2, 283, COPY)                   \
    X(DRIVER, cuMemcpyAtoD_v2, 284, COPY)                        \
    X(DRIVER, cuMemcpyDtoA_v2, 285, COPY)                        \
    X(DRIVER, cuMemcpyAtoA_v2, 286, COPY)                        \
    X(DRIVER, cuMemcpy2D_v2, 287, COPY)                          \
    X(DRIVER, cuMemcpy2DUnaligned_v2, 288, COPY)                 \
    X(DRIVER, cuMemcpy2DAsync_v2, 289, COPY)                     \
    X(DRIVER, cuMemcpy3D_v2, 290, COPY)                          \
    X(DRIVER, cuMemcpy3DAsync_v2, 291, COPY)                     \
    X(DRIVER, cuMemcpyHtoA_v2, 292, COPY)                        \
    X(DRIVER, cuMemcpyHtoAAsync_v2, 293, COPY)                   \
    X(DRIVER, cuMemcpy, 305, COPY)                               \
    X(DRIVER, cuMemcpyAsync, 306, COPY)                          \
    X(DRIVER, cuMemcpyPeer, 318, COPY)                           \
    X(DRIVER, cuMemcpyPeerAsync, 319, COPY)                      \
    X(DRIVER, cuMemcpy3DPeer, 320, COPY)                         \
    X(DRIVER, cuMemcpy3DPeerAsync, 321, COPY)                    \
    X(DRIVER, cuMemcpyHtoD_v2_ptds, 397, COPY)                   \
    X(DRIVER, cuMemcpyDtoH_v2_ptds, 398, COPY)                   \
    X(DRIVER, cuMemcpyDtoD_v2_ptds, 399, COPY)                   \
    X(DRIVER, cuMemcpyDtoA_v2_ptds, 400, COPY)                   \
    X(DRIVER, cuMemcpyAtoD_v2_ptds, 401, COPY)                   \
    X(DRIVER, cuMemcpyHtoA_v2_ptds, 402, COPY)                   \
    X(DRIVER, cuMemcpyAtoH_v2_ptds, 403, COPY)                   \
    X(DRIVER, cuMemcpyAtoA_v2_ptds, 404, COPY)                   \
    X(DRIVER, cuMemcpy2D_v2_ptds, 405, COPY)                     \
    X(DRIVER, cuMemcpy2DUnaligned_v2_ptds, 406, COPY)            \
    X(DRIVER, cuMemcpy3D_v2_ptds, 407, COPY)                     \
    X(DRIVER, cuMemcpy_ptds, 408, COPY)                          \
    X(DRIVER, cuMemcpyPeer_ptds, 409, COPY)                      \
    X(DRIVER, cuMemcpy3DPeer_ptds, 410, COPY)                    \
    X(DRIVER, cuMemsetD8_v2_ptds, 411, COPY)                     \
    X(DRIVER, cuMemsetD16_v2_ptds, 412, COPY)                    \
    X(DRIVER, cuMemsetD32_v2_ptds, 413, COPY)                    \
    X(DRIVER, cuMemsetD2D8_v2_ptds, 414, COPY)                   \
    X(DRIVER, cuMemsetD2D16_v2_ptds, 415, COPY)                  \
    X(DRIVER, cuMemsetD2D32_v2_ptds, 416, COPY)                  \
    X(DRIVER, cuMemcpyAsync_ptsz, 418, COPY)                     \
    X(DRIVER, cuMemcpyHtoAAsync_v2_ptsz, 419, COPY)              \
    X(DRIVER, cuMemcpyAtoHAsync_v2_ptsz, 420, COPY)              \
    X(DRIVER, cuMemcpyHtoDAsync_v2_ptsz, 421, COPY)              \
    X(DRIVER, cuMemcpyDtoHAsync_v2_ptsz, 422, COPY)              \
    X(DRIVER, cuMemcpyDtoDAsync_v2_ptsz, 423, COPY)              \
    X(DRIVER, cuMemcpy2DAsync_v2_ptsz, 424, COPY)                \
    X(DRIVER, cuMemcpy3DAsync_v2_ptsz, 425, COPY)                \
    X(DRIVER, cuMemcpyPeerAsync_ptsz, 426, COPY)                 \
    X(DRIVER, cuMemcpy3DPeerAsync_ptsz, 427, COPY)               \
    X(DRIVER, cuMemsetD8Async_ptsz, 428, COPY)                   \
    X(DRIVER, cuMemsetD16Async_ptsz, 429, COPY)                  \
    X(DRIVER, cuMemsetD32Async_ptsz, 430, COPY)                  \
    X(DRIVER, cuMemsetD2D8Async_ptsz, 431, COPY)                 \
    X(DRIVER, cuMemsetD2D16Async_ptsz, 432, COPY)                \
    X(DRIVER, cuMemsetD2D32Async_ptsz, 433, COPY)                \
    X(DRIVER, cuMemcpyBatchAsync, 776, COPY)                     \
    X(DRIVER, cuMemcpyBatchAsync_ptsz, 777, COPY)                \
    X(DRIVER, cuMemcpy3DBatchAsync, 778, COPY)                   \
    X(DRIVER, cuMemcpy3DBatchAsync_ptsz, 779, COPY)              \
    X(DRIVER, cuMemcpyBatchAsync_v2, 796, COPY)                  \
    X(DRIVER, cuMemcpyBatchAsync_v2_ptsz, 797, COPY)             \
    X(DRIVER, cuMemcpy3DBatchAsync_v2, 798, COPY)                \
    X(DRIVER, cuMemcpy3DBatchAsync_v2_ptsz, 799, COPY)           \
    /* sync */                                                   \
    X(DRIVER, cuCtxSynchronize, 17, SYNC)                        \
    X(DRIVER, cuEventSynchronize, 121, SYNC)                     \
    X(DRIVER, cuStreamSynchronize, 126, SYNC)                    \
    X(DRIVER, cuStreamWaitEvent, 295, SYNC)                      \
    X(DRIVER, cuStreamWaitEvent_ptsz, 436, SYNC)                 \
    X(DRIVER, cuStreamSynchronize_ptsz, 440, SYNC)               \
    X(DRIVER, cuCtxSynchronize_v2, 800, SYNC)                    \
    /* memory */                                                 \
    X(DRIVER, cuMemAlloc, 29, MEMORY)                            \
    X(DRIVER, cuMemAllocPitch, 31, MEMORY)                       \
    X(DRIVER, cuMemFree, 33, MEMORY)                             \
    X(DRIVER, cuMemAllocHost, 37, MEMORY)                        \
    X(DRIVER, cuMemFreeHost, 38, MEMORY)                         \
    X(DRIVER, cuMemHostAlloc, 39, MEMORY)                        \
    X(DRIVER, cuMemAlloc_v2, 243, MEMORY)                        \
    X(DRIVER, cuMemAllocPitch_v2, 244, MEMORY)                   \
    X(DRIVER, cuMemFree_v2, 245, MEMORY)                         \
    X(DRIVER, cuMemHostAlloc_v2, 271, MEMORY)                    \
    X(DRIVER, cuMemAllocHost_v2, 294, MEMORY)                    \
    X(DRIVER, cuMemAllocManaged, 371, MEMORY)                    \
    X(DRIVER, cuMemAllocAsync, 598, MEMORY)                      \
    X(DRIVER, cuMemAllocAsync_ptsz, 599, MEMORY)                 \
    X(DRIVER, cuMemFreeAsync, 600, MEMORY)                       \
    X(DRIVER, cuMemFreeAsync_ptsz, 601, MEMORY)                  \
    X(DRIVER, cuMemAllocFromPoolAsync, 611, MEMORY)              \
    X(DRIVER, cuMemAllocFromPoolAsync_ptsz, 612, MEMORY)

enum {
    CUPTI_CALL_LAUNCH = 1 << 0,
    CUPTI_CALL_GRAPH = 1 << 1,
    CUPTI_CALL_COPY = 1 << 2, /* and memset */
    CUPTI_CALL_SYNC = 1 << 3,
    CUPTI_CALL_MEMORY = 1 << 4,
    CUPTI_CALL_CAPTURE = 1 << 5, /* from here on launches may only be recorded in a graph */
    CUPTI_CALL_CAPTURE_END = 1 << 6
};
struct cupti_call {
    uint16_t cbid;
    uint8_t group;
    bool is_runtime;
};
extern const struct cupti_call cupti_calls[];
extern const size_t cupti_call_count;

/* The groups whose records the features (CUPTI_TRACE_*) need. */
unsigned cupti_call_groups(unsigned features);
bool cupti_call_is_graph_launch(bool is_runtime, uint32_t cbid);
/* What a call of the group SYNC waits for: CUPTI's synchronization type; 0 for any other call. */
uint32_t cupti_call_sync_type(bool is_runtime, uint32_t cbid);
/* For this call the default stream is the thread's. */
bool cupti_call_is_per_thread(bool is_runtime, uint32_t cbid);

#endif
