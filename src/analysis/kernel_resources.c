/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/kernel_resources.h"

#include <math.h>

/* The size that all its launches had; false if they differ or there is none. */
static bool launch_find(const struct session_model *model, const char *name, struct amdgpu_demand *demand)
{
    bool is_found = false;
    const uint32_t code_lds_bytes = demand->lds_bytes;
    for (size_t i = 0; name && i < model->launch_count; i++) {
        const struct launch_config *launch = &model->launches[i];
        const char *launched = session_text(model, DICTIONARY_KERNEL, launch->kernel_id);
        if (!launched || strcmp(launched, name) != 0)
            continue;
        uint64_t items = (uint64_t)launch->block[0] * launch->block[1];
        items = items <= UINT32_MAX ? items * launch->block[2] : UINT32_MAX;
        if (!items || items >= UINT32_MAX)
            return false;
        /* The code's own requirement is the minimum, whatever the runtime reports for the launch. */
        uint64_t launched_bytes = launch->static_shared != ID_UNKNOWN && launch->dyn_shared != ID_UNKNOWN
                                      ? (uint64_t)launch->static_shared + launch->dyn_shared
                                      : 0;
        uint64_t lds_bytes = launched_bytes > code_lds_bytes ? launched_bytes : code_lds_bytes;
        if (is_found && (demand->group_size != items || demand->lds_bytes != lds_bytes))
            return false;
        demand->group_size = (uint32_t)items;
        demand->lds_bytes = lds_bytes < UINT32_MAX ? (uint32_t)lds_bytes : UINT32_MAX;
        is_found = true;
    }
    return is_found;
}

bool kernel_resources_read(const struct code_function *function, const char *name, struct kernel_resources *resources)
{
    const struct code_image *image = code_function_image(function);
    struct amdgpu_target target = {0};
    if (!image || !function->function || !amdgpu_kernel_read(image, function->function, &resources->kernel))
        return false;
    resources->arch = image->arch;
    resources->demand = amdgpu_kernel_demand(&resources->kernel);
    struct amdgpu_demand launched = resources->demand;
    if (launch_find(function->model, name, &launched))
        resources->demand = launched;
    bool is_target = amdgpu_target_parse(image->arch, &target);
    resources->occupancy = amdgpu_occupancy(&target, &resources->demand);
    if (!is_target)
        resources->occupancy = (struct amdgpu_occupancy){.problem = "the target is not known"};
    return true;
}

double kernel_resources_waves(const struct kernel_resources *resources)
{
    const struct amdgpu_occupancy *occupancy = &resources->occupancy;
    return occupancy->problem ? NAN : (double)occupancy->waves / occupancy->simd_count;
}
