/* SPDX-License-Identifier: Apache-2.0 */
/* How many waves of a kernel fit on a SIMD of an AMD GPU, and which resource limits them: the allocation rules of gfx9
 * (GCN 5, CDNA 1 to 3), gfx10 and gfx11 (RDNA 1 to 3). Pure functions; thread-safe. */
#ifndef GPUFL_CODE_AMDGPU_OCCUPANCY_H
#define GPUFL_CODE_AMDGPU_OCCUPANCY_H

#include "code/amdgpu.h"

enum amdgpu_limiter {
    AMDGPU_LIMITER_NONE,   /* the SIMD is full */
    AMDGPU_LIMITER_GROUPS, /* slots for work-groups, or too few waves are left for a whole one */
    AMDGPU_LIMITER_VGPR,
    AMDGPU_LIMITER_SGPR,
    AMDGPU_LIMITER_LDS
};

/* One launch, or a kernel without a known launch. */
struct amdgpu_demand {
    uint32_t vgpr_count; /* counted as in struct amdgpu_kernel */
    uint32_t sgpr_count; /* AMDGPU_UNKNOWN is allowed from gfx10 on, where the count does not matter */
    uint32_t wave_size;
    uint32_t group_size; /* work-items; 0: unknown, so work-groups and LDS are ignored */
    uint32_t lds_bytes;
    bool is_wgp_mode;
};

struct amdgpu_occupancy {
    const char *problem; /* NULL, or why the result is unknown and empty */
    uint32_t waves_max;  /* per SIMD */
    uint32_t simd_count; /* SIMDs that share work-groups and LDS: those of a CU, or of a WGP */
    /* Waves on all these SIMDs that each resource allows, in whole work-groups if their size is known; AMDGPU_UNKNOWN:
     * ignored. */
    uint32_t waves, by_vgpr, by_sgpr, by_lds, by_groups;
    uint32_t groups; /* simultaneous work-groups; AMDGPU_UNKNOWN as above */
    enum amdgpu_limiter limiter;
};

struct amdgpu_occupancy amdgpu_occupancy(const struct amdgpu_target *target, const struct amdgpu_demand *demand);
/* The count that limits occupancy, from the separate counts that drivers report. */
uint32_t amdgpu_vgpr_total(const struct amdgpu_target *target, uint32_t vector_count, uint32_t accumulation_count);
const char *amdgpu_limiter_name(enum amdgpu_limiter limiter);
/* The demand of a kernel without a launch. */
struct amdgpu_demand amdgpu_kernel_demand(const struct amdgpu_kernel *kernel);

#endif
