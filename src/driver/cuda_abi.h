/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA driver's binary interface, as far as we use it: our own declarations. */
#ifndef GPUFL_DRIVER_CUDA_ABI_H
#define GPUFL_DRIVER_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

/* CUresult */
enum {
    CUDA_ABI_SUCCESS = 0,
    CUDA_ABI_NOT_INITIALIZED = 3,
    CUDA_ABI_NO_DEVICE = 100,
    CUDA_ABI_CAPTURE_INVALIDATED = 901,
    CUDA_ABI_CAPTURE_UNJOINED = 904
};

/* CUdevice_attribute */
enum {
    CUDA_ABI_WARP_SIZE = 10,
    CUDA_ABI_REGS_PER_BLOCK = 12,
    CUDA_ABI_CLOCK_KHZ = 13,
    CUDA_ABI_MULTIPROCESSORS = 16,
    CUDA_ABI_MEMORY_CLOCK_KHZ = 36,
    CUDA_ABI_MEMORY_BUS_BITS = 37,
    CUDA_ABI_L2_BYTES = 38,
    CUDA_ABI_THREADS_PER_SM = 39,
    CUDA_ABI_COMPUTE_MAJOR = 75,
    CUDA_ABI_COMPUTE_MINOR = 76,
    CUDA_ABI_SHARED_PER_SM = 81,
    CUDA_ABI_REGS_PER_SM = 82,
    CUDA_ABI_SHARED_PER_BLOCK_OPTIN = 97,
    CUDA_ABI_BLOCKS_PER_SM = 106,
    CUDA_ABI_SHARED_RESERVED_PER_BLOCK = 111
};

struct cuda_abi_uuid {
    unsigned char bytes[16];
};

/* X(member, symbol, parameters): every function we call; all return a CUresult. */
#define CUDA_ABI_FUNCTIONS(X)                                                                   \
    X(init, cuInit, (unsigned flags))                                                           \
    X(driver_version, cuDriverGetVersion, (int *version))                                       \
    X(error_string, cuGetErrorString, (int result, const char **text))                          \
    X(device_count, cuDeviceGetCount, (int *count))                                             \
    X(device_get, cuDeviceGet, (int *device, int ordinal))                                      \
    X(device_name, cuDeviceGetName, (char *name, int size, int device))                         \
    X(device_uuid, cuDeviceGetUuid, (struct cuda_abi_uuid * uuid, int device))                  \
    X(device_uuid_v2, cuDeviceGetUuid_v2, (struct cuda_abi_uuid * uuid, int device))            \
    X(device_memory, cuDeviceTotalMem_v2, (size_t * bytes, int device))                         \
    X(device_attribute, cuDeviceGetAttribute, (int *value, int attribute, int device))          \
    X(primary_state, cuDevicePrimaryCtxGetState, (int device, unsigned *flags, int *is_active)) \
    X(primary_retain, cuDevicePrimaryCtxRetain, (void **context, int device))                   \
    X(current, cuCtxGetCurrent, (void **context))                                               \
    X(push_current, cuCtxPushCurrent_v2, (void *context))                                       \
    X(pop_current, cuCtxPopCurrent_v2, (void **context))                                        \
    X(synchronize, cuCtxSynchronize, (void))

#endif
