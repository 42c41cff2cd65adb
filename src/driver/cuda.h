/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the CUDA driver that we use. Never initializes CUDA: in the user's process that is up to the user, and
 * until then every query returns "unavailable". */
#ifndef GPUFL_DRIVER_CUDA_H
#define GPUFL_DRIVER_CUDA_H

#include "base/status.h"

/* Limits of one device; a field that could not be read is 0 and its validity bit unset. */
struct device_limits {
    uint32_t device_id;
    char name[128];
    char uuid[48]; /* "GPU-xxxxxxxx-..." */
    uint32_t compute_major, compute_minor;
    uint32_t multiprocessors, warp_size;
    uint32_t warps_per_sm_max, blocks_per_sm_max;
    uint32_t regs_per_sm, regs_per_block_max;
    uint32_t shared_per_sm, shared_per_block_max, shared_reserved_per_block;
    uint32_t core_clock_khz, l2_bytes;
    uint64_t memory_bytes, memory_bandwidth_bps;
    bool is_known; /* false: nothing could be read */
};

struct cuda; /* opaque, process-wide, never unloaded */
/* Uses only a libcuda that is already mapped, unless may_load. */
NODISCARD gpufl_status cuda_load(struct cuda **out, bool may_load, struct problem *problem);
void cuda_abandon(void); /* in a forked child */
/* Records that this process used CUDA. Any thread, also in a callback. */
void cuda_note_use(void);
/* A process that this one was forked from used CUDA: CUDA cannot be used here. */
bool cuda_is_of_parent(void);
/* For commands (info, doctor, demo), never in a user's process. */
NODISCARD gpufl_status cuda_initialize(struct cuda *cuda, struct problem *problem);
int cuda_driver_version(const struct cuda *cuda); /* 13000 = 13.0; 0 unknown */
int cuda_device_count(const struct cuda *cuda);   /* 0 when not initialized */
/* GPUFL_E_NO_DRIVER when the driver is not initialized. */
NODISCARD gpufl_status cuda_device_limits(const struct cuda *cuda, uint32_t device_id, struct device_limits *limits);

/* The device's primary context, kept alive from now on; NULL when it does not exist yet. */
void *cuda_primary_context(const struct cuda *cuda, int device_id);
/* The calling thread's; NULL when it has none. */
void *cuda_current_context(const struct cuda *cuda);
/* Makes the context current on this thread; true: cuda_context_pop must follow. */
bool cuda_context_push(const struct cuda *cuda, void *context);
void cuda_context_pop(const struct cuda *cuda);

/* Waits until the context is idle; false when the driver refuses. The calling thread's current context does not
 * change. */
bool cuda_synchronize(const struct cuda *cuda, void *context);

#endif
