/* SPDX-License-Identifier: Apache-2.0 */
/* What only AMD's code objects have: the names of their targets, and what each kernel needs, from its descriptor and
 * from the metadata note. Bytes in, values out: any thread. */
#ifndef GPUFL_CODE_AMDGPU_H
#define GPUFL_CODE_AMDGPU_H

#include "code/image.h"

enum { AMDGPU_DESCRIPTOR_BYTES = 64, AMDGPU_DESCRIPTOR_ENTRY = 16 };
#define AMDGPU_UNKNOWN UINT32_MAX

/* Names image->arch after the ELF header; "gfx?" with the number for a target that is not known here. */
void amdgpu_arch(struct code_image *image);

/* A target as numbers, "gfx90a" being 9, 0, 10. */
struct amdgpu_target {
    uint32_t major, minor, stepping;
    bool is_generic; /* "gfx11-generic": stepping is not known, and minor where major 9 or 11 says it all */
};
/* Of a name with or without features behind a colon; false when it is none. */
bool amdgpu_target_parse(const char *name, struct amdgpu_target *target);
/* Whether vector and accumulation registers come from one file. */
bool amdgpu_is_unified(const struct amdgpu_target *target);
/* The name without features, as -mcpu takes it. */
void amdgpu_target_name(const char *arch, char *out, size_t out_size);

/* AMDGPU_UNKNOWN where the code object does not say. */
struct amdgpu_kernel {
    uint32_t vgpr_count; /* of a work-item; gfx90a and later of major 9: with the accumulation registers */
    uint32_t agpr_count; /* accumulation registers */
    uint32_t sgpr_count; /* of a wave */
    uint32_t vgpr_spills, sgpr_spills;
    uint32_t lds_bytes;     /* of a work-group, without what a launch adds */
    uint32_t scratch_bytes; /* of a work-item */
    uint32_t kernarg_bytes;
    uint32_t wave_size;                     /* 32 or 64 */
    uint32_t group_size_max, group_size[3]; /* group_size: as the source requires it; zeros: it does not */
    bool is_allocation; /* the counts of registers are what the hardware hands out: there is no metadata */
    bool is_wgp_mode;   /* gfx10 and later: its work-groups may use both CUs of a WGP */
};
/* False: the function is no kernel of this code object. */
bool amdgpu_kernel_read(const struct code_image *image, const struct image_function *function,
                        struct amdgpu_kernel *kernel);

#endif
