/* SPDX-License-Identifier: Apache-2.0 */
/* Only one process may sample a GPU's PCs: CUPTI accepts a second process and then crashes or hangs in it. A process
 * therefore claims the GPU before it calls CUPTI. The claim is a name in the abstract socket namespace, which the
 * kernel releases however the process ends; processes in other network namespaces do not see it. Any thread. */
#ifndef GPUFL_DRIVER_GPU_CLAIM_H
#define GPUFL_DRIVER_GPU_CLAIM_H

#include "base/status.h"

#include <stdint.h>

/* GPUFL_E_BUSY: another process has the claim; the text names it. Each success needs one release. If no claim can be
 * made (the GPU has no name yet, sockets are forbidden) it succeeds without one. */
NODISCARD gpufl_status gpu_claim_take(uint32_t device_id, struct problem *problem);
void gpu_claim_release(uint32_t device_id);
void gpu_claims_abandon(void); /* after fork in the child: the claims belong to the parent */

#endif
