/* SPDX-License-Identifier: Apache-2.0 */
/* A look-alike ROCm SMI with one GPU, at the place in FAKE_ROCM_SMI_SLOT. */
#include "driver/rocm_smi_abi.h"

#include <stdio.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

enum { INVALID_ARGS = 1, NOT_SUPPORTED = 2, BLOCK_UMC = 1, BLOCK_GFX = 4 };

EXPORT int rsmi_init(uint64_t flags);
EXPORT int rsmi_shut_down(void);
EXPORT int rsmi_num_monitor_devices(uint32_t *count);
EXPORT int rsmi_dev_pci_id_get(uint32_t index, uint64_t *id);
EXPORT int rsmi_dev_energy_count_get(uint32_t index, uint64_t *counter, float *microjoules, uint64_t *time_ns);
EXPORT int rsmi_dev_ecc_enabled_get(uint32_t index, uint64_t *blocks);
EXPORT int rsmi_dev_ecc_count_get(uint32_t index, uint64_t block, struct rocm_smi_abi_errors *errors);

int rsmi_init(uint64_t flags)
{
    return flags || !getenv("FAKE_ROCM_SMI_SLOT") ? INVALID_ARGS : 0;
}

int rsmi_shut_down(void)
{
    return 0;
}

int rsmi_num_monitor_devices(uint32_t *count)
{
    *count = 2; /* the first is another one */
    return 0;
}

int rsmi_dev_pci_id_get(uint32_t index, uint64_t *id)
{
    unsigned domain, bus, device, function;
    if (index > 1 || sscanf(getenv("FAKE_ROCM_SMI_SLOT"), "%8x:%2x:%2x.%1x", &domain, &bus, &device, &function) != 4)
        return INVALID_ARGS;
    *id = (uint64_t)domain << 32 | bus << 8 | device << 3 | (index == 1 ? function : 7);
    return 0;
}

int rsmi_dev_energy_count_get(uint32_t index, uint64_t *counter, float *microjoules, uint64_t *time_ns)
{
    if (index != 1)
        return NOT_SUPPORTED;
    *counter = 1000000;
    *microjoules = 15.25f;
    *time_ns = 1;
    return 0;
}

int rsmi_dev_ecc_enabled_get(uint32_t index, uint64_t *blocks)
{
    *blocks = BLOCK_UMC | BLOCK_GFX;
    return index == 1 ? 0 : NOT_SUPPORTED;
}

int rsmi_dev_ecc_count_get(uint32_t index, uint64_t block, struct rocm_smi_abi_errors *errors)
{
    if (index != 1 || (block != BLOCK_UMC && block != BLOCK_GFX))
        return NOT_SUPPORTED;
    *errors = (struct rocm_smi_abi_errors){block == BLOCK_UMC ? 7 : 4, block == BLOCK_UMC ? 2 : 0};
    return 0;
}
