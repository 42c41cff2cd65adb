/* SPDX-License-Identifier: Apache-2.0 */
/* Our own declarations of librocm_smi64's interface (5.x, 6.x). */
#ifndef GPUFL_DRIVER_ROCM_SMI_ABI_H
#define GPUFL_DRIVER_ROCM_SMI_ABI_H

#include <stdint.h>

enum { ROCM_SMI_ABI_SUCCESS = 0, ROCM_SMI_ABI_BLOCK_COUNT = 14 };

struct rocm_smi_abi_errors {
    uint64_t correctable, uncorrectable;
};

/* member, symbol, parameters */
#define ROCM_SMI_ABI_FUNCTIONS(X)                                                                                     \
    X(init, rsmi_init, (uint64_t flags))                                                                              \
    X(shut_down, rsmi_shut_down, (void))                                                                              \
    X(device_count, rsmi_num_monitor_devices, (uint32_t * count))                                                     \
    X(pci_id, rsmi_dev_pci_id_get, (uint32_t index, uint64_t * id))                                                   \
    X(energy, rsmi_dev_energy_count_get, (uint32_t index, uint64_t * counter, float *microjoules, uint64_t *time_ns)) \
    X(error_blocks, rsmi_dev_ecc_enabled_get, (uint32_t index, uint64_t * blocks))                                    \
    X(errors, rsmi_dev_ecc_count_get, (uint32_t index, uint64_t block, struct rocm_smi_abi_errors * errors))

#endif
