/* SPDX-License-Identifier: Apache-2.0 */
/* PC samples of a GPU are for one process: CUPTI takes a second one on, and then
 * crashes or hangs in it. So a process claims the GPU before it asks CUPTI. The
 * claim is a name in the abstract socket namespace, which the kernel takes back
 * whatever becomes of the process; processes in other network namespaces do not
 * see it. Any thread. */
#ifndef GPUFL_DRIVER_GPU_CLAIM_H
#define GPUFL_DRIVER_GPU_CLAIM_H

#include "base/status.h"

#include <stdint.h>

/* GPUFL_E_BUSY: another process, which the text names. Each success wants one release. Where no claim can be made (the
 * GPU has no name yet, sockets are forbidden) it succeeds without one. */
NODISCARD gpufl_status gpu_claim_take(uint32_t device_id, struct problem *problem);
void gpu_claim_release(uint32_t device_id);
void gpu_claims_abandon(void); /* after fork in the child: the claims are the parent's */

#endif
