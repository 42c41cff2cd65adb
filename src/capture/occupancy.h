/* SPDX-License-Identifier: Apache-2.0 */
/* Theoretical occupancy with per-resource limits, from a launch configuration
 * and the device's limits, following the allocation granularities of each
 * compute capability (registers per warp, reserved and rounded shared memory). */
#ifndef GPUFL_CAPTURE_OCCUPANCY_H
#define GPUFL_CAPTURE_OCCUPANCY_H

#include "driver/cuda.h"

struct occupancy_input {
    uint32_t threads_per_block, regs_per_thread;
    uint32_t static_shared, dyn_shared;
};
enum occupancy_limiter {
    LIMITER_UNKNOWN,
    LIMITER_REGISTERS,
    LIMITER_SHARED_MEMORY,
    LIMITER_WARPS,
    LIMITER_BLOCKS,
    LIMITER_GRID_SIZE
};
struct occupancy {
    bool is_known;
    uint32_t total_bp, regs_bp, shared_bp, warps_bp, blocks_bp; /* 10000 = 100 % */
    uint32_t active_blocks_max;
    enum occupancy_limiter limiter;
};
struct occupancy occupancy_compute(const struct device_limits *limits, const struct occupancy_input *input);

/* A launch on an AMD GPU, as its runtime reports it. */
struct amd_occupancy_input {
    uint32_t gfx_version; /* 90010: gfx90a, as the driver encodes it: major, minor, stepping in two decimal digits
                           * each */
    uint32_t threads_per_block;
    uint32_t vgprs, accum_vgprs, sgprs;
    uint32_t lds_bytes; /* of a work-group, static and dynamic */
};
/* Known for gfx9 only: from gfx10 on occupancy depends on the wave size and mode of the kernel, which are only in
 * its code (code/amdgpu_occupancy.h). Blocks are per CU. */
struct occupancy amd_occupancy_compute(const struct amd_occupancy_input *input);

#endif
