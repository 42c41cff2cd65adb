/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel of AMD's takes of a GPU, from its code and its launches: registers, LDS, scratch, and how many of its
 * waves fit. For NVIDIA the launch records say it. */
#ifndef GPUFL_ANALYSIS_KERNEL_RESOURCES_H
#define GPUFL_ANALYSIS_KERNEL_RESOURCES_H

#include "analysis/code_lookup.h"
#include "code/amdgpu_occupancy.h"

struct kernel_resources {
    const char *arch; /* borrowed from the lookup */
    struct amdgpu_kernel kernel;
    struct amdgpu_demand demand; /* group_size 0: no launch says it, or launches differ */
    struct amdgpu_occupancy occupancy;
};

/* name: of the kernel in the log's launches. False: it is no kernel of AMD's whose code the log holds. */
bool kernel_resources_read(const struct code_function *function, const char *name, struct kernel_resources *resources);
/* How many waves of it a SIMD holds, on average over those that share work-groups. */
double kernel_resources_waves(const struct kernel_resources *resources);

#endif
