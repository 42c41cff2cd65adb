/* SPDX-License-Identifier: Apache-2.0 */
/* ROCm SMI, for values that the amdgpu driver's files lack: energy without gpu_metrics, error counts without a ras
 * directory. One owner, not thread-safe. */
#ifndef GPUFL_DRIVER_ROCM_SMI_H
#define GPUFL_DRIVER_ROCM_SMI_H

#include "base/status.h"

struct rocm_smi; /* opaque */
NODISCARD gpufl_status rocm_smi_open(struct rocm_smi **out, struct problem *problem);
void rocm_smi_close(struct rocm_smi *smi); /* NULL is a no-op */
/* The library's index of the GPU at this bus address ("0000:c1:00.0"); -1: unknown. */
int rocm_smi_find(const struct rocm_smi *smi, const char *pci_bus_id);
bool rocm_smi_energy_uj(const struct rocm_smi *smi, uint32_t index, uint64_t *microjoules);
/* Sums over all blocks that count errors; false when none does. */
bool rocm_smi_errors(const struct rocm_smi *smi, uint32_t index, uint64_t *corrected, uint64_t *uncorrected);

#endif
