/* SPDX-License-Identifier: Apache-2.0 */
/* How many waves of a kernel a SIMD of an AMD GPU can hold at once, and what keeps it from more: the allocation rules of
 * gfx9 (GCN 5, CDNA 1 to 3), gfx10 and gfx11 (RDNA 1 to 3). Values in, values out: any thread. */
#ifndef GPUFL_CODE_AMDGPU_OCCUPANCY_H
#define GPUFL_CODE_AMDGPU_OCCUPANCY_H

#include "code/amdgpu.h"

enum amdgpu_limiter {
    AMDGPU_LIMITER_NONE,   /* the SIMD is full */
    AMDGPU_LIMITER_GROUPS, /* slots for work-groups, or none is left for a whole one */
    AMDGPU_LIMITER_VGPR,
    AMDGPU_LIMITER_SGPR,
    AMDGPU_LIMITER_LDS
};

/* One launch, or a kernel of which no launch is known. */
struct amdgpu_demand {
    uint32_t vgpr_count; /* as struct amdgpu_kernel counts them */
    uint32_t sgpr_count; /* AMDGPU_UNKNOWN is good from gfx10 on, where it does not matter */
    uint32_t wave_size;
    uint32_t group_size; /* work-items; 0: not known, then neither work-groups nor LDS are looked at */
    uint32_t lds_bytes;
    bool is_wgp_mode;
};

struct amdgpu_occupancy {
    const char *problem; /* NULL; else why nothing is known, and the rest is empty */
    uint32_t waves_max;  /* of a SIMD */
    uint32_t simd_count; /* that share work-groups and LDS: those of a CU, or of a WGP */
    /* How many waves of all these SIMDs each resource allows, in whole work-groups where their size is known;
     * AMDGPU_UNKNOWN: not looked at. */
    uint32_t waves, by_vgpr, by_sgpr, by_lds, by_groups;
    uint32_t groups; /* work-groups at once; AMDGPU_UNKNOWN as above */
    enum amdgpu_limiter limiter;
};

struct amdgpu_occupancy amdgpu_occupancy(const struct amdgpu_target *target, const struct amdgpu_demand *demand);
/* Of the counts that drivers give apart, the one that decides. */
uint32_t amdgpu_vgpr_total(const struct amdgpu_target *target, uint32_t vector_count, uint32_t accumulation_count);
const char *amdgpu_limiter_name(enum amdgpu_limiter limiter);
/* The demand of a kernel before anyone launched it. */
struct amdgpu_demand amdgpu_kernel_demand(const struct amdgpu_kernel *kernel);

#endif
