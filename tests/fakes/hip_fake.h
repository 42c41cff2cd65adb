/* SPDX-License-Identifier: Apache-2.0 */
/* Prototypes of the look-alike HIP runtime, for itself and for fake_hip_app. */
#ifndef FAKES_HIP_FAKE_H
#define FAKES_HIP_FAKE_H

#include "fake_gpu.h"

enum { FAKE_HIP_TO_DEVICE = 1, FAKE_HIP_TO_HOST = 2, FAKE_HIP_ON_DEVICE = 3 }; /* hipMemcpyKind */

struct fake_hip_kernel { /* what a compiler would have made of a __global__ function */
    const char *name;
    uint64_t kernel_id;
};

/* X(return type, name, parameters); a grid is in blocks, as HIP has it, and hipFakeLoad stands for hipModuleLoadData: the
 * kernel gets its id. */
#define FAKE_HIP_FUNCTIONS(X)                                                                                      \
    X(int, hipInit, (unsigned flags))                                                                              \
    X(int, hipGetDeviceCount, (int *count))                                                                        \
    X(int, hipGetDevice, (int *device))                                                                            \
    X(int, hipSetDevice, (int device))                                                                             \
    X(int, hipMalloc, (void **address, size_t bytes))                                                              \
    X(int, hipFree, (void *address))                                                                               \
    X(int, hipMemcpy, (void *destination, const void *source, size_t bytes, int kind))                             \
    X(int, hipMemcpyAsync, (void *destination, const void *source, size_t bytes, int kind, void *stream))          \
    X(int, hipLaunchKernel,                                                                                        \
      (const struct fake_hip_kernel *kernel, const unsigned grid[3], const unsigned block[3], size_t shared_bytes, \
       void *stream))                                                                                              \
    X(int, hipDeviceSynchronize, (void))                                                                           \
    X(int, hipFakeLoad, (struct fake_hip_kernel * kernel, const void *code, size_t code_bytes))                    \
    X(void, roctxMarkA, (const char *text))                                                                        \
    X(int, roctxRangePushA, (const char *text))                                                                    \
    X(int, roctxRangePop, (void))                                                                                  \
    X(uint64_t, roctxRangeStartA, (const char *text))                                                              \
    X(void, roctxRangeStop, (uint64_t id))

#define FAKE_DECLARE(type, name, parameters) FAKE_API type name parameters;
FAKE_HIP_FUNCTIONS(FAKE_DECLARE)
#undef FAKE_DECLARE

#endif
