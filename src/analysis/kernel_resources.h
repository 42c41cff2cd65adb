/* SPDX-License-Identifier: Apache-2.0 */
/* The resources of an AMD kernel, from its code and its launches: registers, LDS, scratch, and how many of its waves
 * fit. For NVIDIA the launch records contain this. */
#ifndef GPUFL_ANALYSIS_KERNEL_RESOURCES_H
#define GPUFL_ANALYSIS_KERNEL_RESOURCES_H

#include "analysis/code_lookup.h"
#include "code/amdgpu_occupancy.h"

struct kernel_resources {
    const char *arch; /* borrowed from the lookup */
    struct amdgpu_kernel kernel;
    struct amdgpu_demand demand; /* group_size 0: no launch has it, or launches differ */
    struct amdgpu_occupancy occupancy;
};

/* name: of the kernel in the log's launches. False: not an AMD kernel whose code is in the log. */
bool kernel_resources_read(const struct code_function *function, const char *name, struct kernel_resources *resources);
/* The number of its waves on a SIMD, averaged over SIMDs that share work-groups. */
double kernel_resources_waves(const struct kernel_resources *resources);

#endif
