/* SPDX-License-Identifier: Apache-2.0 */
/* ROCm SMI, for what the files of the amdgpu driver lack: energy where there is
 * no gpu_metrics, error counts where there is no ras directory. One owner, not
 * thread-safe. */
#ifndef GPUFL_DRIVER_ROCM_SMI_H
#define GPUFL_DRIVER_ROCM_SMI_H

#include "base/status.h"

struct rocm_smi; /* opaque */
NODISCARD gpufl_status rocm_smi_open(struct rocm_smi **out, struct problem *problem);
void rocm_smi_close(struct rocm_smi *smi); /* NULL is a no-op */
/* The number that the library gives the GPU at this place ("0000:c1:00.0"); -1: it does not know it. */
int rocm_smi_find(const struct rocm_smi *smi, const char *pci_bus_id);
bool rocm_smi_energy_uj(const struct rocm_smi *smi, uint32_t index, uint64_t *microjoules);
/* Sums over all blocks that count errors; false when none does. */
bool rocm_smi_errors(const struct rocm_smi *smi, uint32_t index, uint64_t *corrected, uint64_t *uncorrected);

#endif
