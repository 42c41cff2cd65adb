/* SPDX-License-Identifier: Apache-2.0 */
/* Launches small kernels of its own and takes the time: what a launch costs the host, and what a kernel costs a GPU that
 * has more work queued. For a process of ours (`gpufl doctor --calibrate`), never in a user's. */
#ifndef GPUFL_DRIVER_LAUNCH_PROBE_H
#define GPUFL_DRIVER_LAUNCH_PROBE_H

#include "base/status.h"

struct launch_times {
    double host_ns; /* per launch of an empty kernel */
    double gpu_ns;  /* per kernel of some 10 us, queued behind others */
    uint32_t launches;
};
/* On the first GPU; initializes CUDA. */
NODISCARD gpufl_status launch_probe_run(struct launch_times *times, struct problem *problem);

#endif
