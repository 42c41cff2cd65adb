/* SPDX-License-Identifier: Apache-2.0 */
/* The MIG instances of a GPU. */
#include "driver/nvml_table.h"

#include <string.h>

void nvml_mig_release(const struct nvml *nvml, struct nvml_device *device)
{
    for (uint32_t i = 0; i < device->mig_count; i++)
        nvml_gpm_release(nvml, &device->migs[i].gpm);
    device->mig_count = 0;
}

static bool is_in_mig_mode(const struct nvml *nvml, const struct nvml_device *device)
{
    const struct nvml_table *call = &nvml->call;
    unsigned current = 0, pending = 0;
    return call->mig_count_max && call->mig_handle && call->gpu_instance_id && call->compute_instance_id &&
           call->mig_mode && call->mig_mode(device->handle, &current, &pending) == NVML_ABI_SUCCESS && current == 1;
}

/* Handles do not change while the layout does not: the samples that rates need are then kept. */
static void keep_or_replace(const struct nvml *nvml, struct nvml_device *device, const struct nvml_mig *found,
                            uint32_t count)
{
    bool is_same = count == device->mig_count;
    for (uint32_t i = 0; i < count && is_same; i++)
        is_same =
            found[i].handle == device->migs[i].handle && found[i].gpu_instance_id == device->migs[i].gpu_instance_id;
    if (is_same)
        return;
    nvml_mig_release(nvml, device);
    memcpy(device->migs, found, count * sizeof *found);
    device->mig_count = count;
}

uint32_t nvml_device_mig_list(struct nvml *nvml, uint32_t index, struct gpu_mig_info infos[GPU_MIG_MAX])
{
    if (index >= nvml->device_count || !nvml->devices[index].handle)
        return 0;
    const struct nvml_table *call = &nvml->call;
    struct nvml_device *device = &nvml->devices[index];
    struct nvml_mig found[GPU_MIG_MAX] = {{0}};
    uint32_t count = 0;
    unsigned most = 0;
    if (!is_in_mig_mode(nvml, device) || call->mig_count_max(device->handle, &most) != NVML_ABI_SUCCESS)
        most = 0;
    for (unsigned i = 0; i < most && count < GPU_MIG_MAX; i++) {
        struct nvml_mig *mig = &found[count];
        struct gpu_mig_info *info = &infos[count];
        memset(info, 0, sizeof *info);
        /* There may be gaps between positions. */
        if (call->mig_handle(device->handle, i, &mig->handle) != NVML_ABI_SUCCESS || !mig->handle ||
            call->gpu_instance_id(mig->handle, &info->gpu_instance_id) != NVML_ABI_SUCCESS ||
            call->compute_instance_id(mig->handle, &info->compute_instance_id) != NVML_ABI_SUCCESS)
            continue;
        mig->gpu_instance_id = info->gpu_instance_id;
        nvml_text_read(call->uuid, mig->handle, info->uuid, sizeof info->uuid);
        nvml_text_read(call->name, mig->handle, info->name, sizeof info->name);
        count++;
    }
    keep_or_replace(nvml, device, found, count);
    return count;
}

void nvml_device_mig_sample(struct nvml *nvml, uint32_t index, uint32_t position, struct gpu_sample *sample)
{
    memset(sample, 0, sizeof *sample);
    if (index >= nvml->device_count || position >= nvml->devices[index].mig_count)
        return;
    struct nvml_device *device = &nvml->devices[index];
    struct nvml_mig *mig = &device->migs[position];
    uint64_t used = 0, total = 0;
    int result = nvml_memory_read(nvml, mig->handle, &used, &total);
    if (result == NVML_ABI_SUCCESS) {
        sample->known = 1ull << GPU_MEM_USED_BYTES | 1ull << GPU_MEM_TOTAL_BYTES;
        sample->values[GPU_MEM_USED_BYTES] = used;
        sample->values[GPU_MEM_TOTAL_BYTES] = total;
    }
    sample->is_lost = result == NVML_ABI_GPU_IS_LOST;
    const struct nvml_gpm_source source = {device->handle, &mig->gpm, true, mig->gpu_instance_id};
    if (!sample->is_lost)
        nvml_gpm_sample(nvml, &source, sample);
}
