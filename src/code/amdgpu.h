/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of AMD code objects: the names of their targets, and the resources of each kernel, from its descriptor and
 * the metadata note. Pure functions; thread-safe. */
#ifndef GPUFL_CODE_AMDGPU_H
#define GPUFL_CODE_AMDGPU_H

#include "code/image.h"

enum { AMDGPU_DESCRIPTOR_BYTES = 64, AMDGPU_DESCRIPTOR_ENTRY = 16 };
#define AMDGPU_UNKNOWN UINT32_MAX

/* Sets image->arch from the ELF header; "gfx?" with the number for an unknown target. */
void amdgpu_arch(struct code_image *image);

/* A target as numbers: "gfx90a" is 9, 0, 10. */
struct amdgpu_target {
    uint32_t major, minor, stepping;
    bool is_generic; /* "gfx11-generic": stepping is unknown, and so is minor where major 9 or 11 is sufficient */
};
/* Parses a name with or without features after a colon; false for anything else. */
bool amdgpu_target_parse(const char *name, struct amdgpu_target *target);
/* True if vector and accumulation registers share one register file. */
bool amdgpu_is_unified(const struct amdgpu_target *target);
/* The name without features, as for -mcpu. */
void amdgpu_target_name(const char *arch, char *out, size_t out_size);

/* AMDGPU_UNKNOWN: not in the code object. */
struct amdgpu_kernel {
    uint32_t vgpr_count; /* per work-item; gfx90a and later of major 9: including the accumulation registers */
    uint32_t agpr_count; /* accumulation registers */
    uint32_t sgpr_count; /* per wave */
    uint32_t vgpr_spills, sgpr_spills;
    uint32_t lds_bytes;     /* per work-group, without the part added by a launch */
    uint32_t scratch_bytes; /* per work-item */
    uint32_t kernarg_bytes;
    uint32_t wave_size;                     /* 32 or 64 */
    uint32_t group_size_max, group_size[3]; /* group_size: as required by the source; zeros: not required */
    bool is_allocation; /* the register counts are those allocated by the hardware: there is no metadata */
    bool is_wgp_mode;   /* gfx10 and later: its work-groups may use both CUs of a WGP */
};
/* False: the function is not a kernel of this code object. */
bool amdgpu_kernel_read(const struct code_image *image, const struct image_function *function,
                        struct amdgpu_kernel *kernel);

#endif
