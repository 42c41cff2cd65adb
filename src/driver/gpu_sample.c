/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/gpu_sample.h"

#include <string.h>

bool gpu_device_is_same(const struct gpu_device_info *a, const struct gpu_device_info *b)
{
    if (a->vendor != b->vendor)
        return false;
    if (a->uuid[0] || b->uuid[0])
        return !strcmp(a->uuid, b->uuid);
    return !strcmp(a->pci_bus_id, b->pci_bus_id);
}

const char *gpu_vendor_name(enum gpu_vendor vendor)
{
    return vendor == GPU_VENDOR_AMD ? "AMD" : "NVIDIA";
}
