/* SPDX-License-Identifier: Apache-2.0 */
/* Our own declarations of libcheckpoint (cupti_checkpoint.h, which is C++). */
#ifndef GPUFL_DRIVER_CHECKPOINT_ABI_H
#define GPUFL_DRIVER_CHECKPOINT_ABI_H

#include <stddef.h>
#include <stdint.h>

enum { CHECKPOINT_ABI_OPTIMIZE_NONE = 0, CHECKPOINT_ABI_OPTIMIZE_TRANSFER = 1 };

/* The library keeps pointers to it between save and free. */
struct checkpoint_abi {
    size_t struct_bytes;
    void *context; /* CUcontext; NULL: the calling thread's */
    size_t reserve_device_mib, reserve_host_mib;
    uint8_t allow_overwrite, optimizations;
    void *priv;
};
#ifdef __cplusplus
static_assert(sizeof(struct checkpoint_abi) == 48, "CUpti_Checkpoint");
#else
_Static_assert(sizeof(struct checkpoint_abi) == 48, "CUpti_Checkpoint");
#endif

/* X(member, symbol, parameters): all return a CUptiResult. */
#define CHECKPOINT_ABI_FUNCTIONS(X)                                      \
    X(save, cuptiCheckpointSave, (struct checkpoint_abi * handle))       \
    X(restore, cuptiCheckpointRestore, (struct checkpoint_abi * handle)) \
    X(free, cuptiCheckpointFree, (struct checkpoint_abi * handle))

#endif
