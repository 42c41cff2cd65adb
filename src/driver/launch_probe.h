/* SPDX-License-Identifier: Apache-2.0 */
/* Launches small test kernels and measures what a launch costs the host, and what a kernel costs a GPU with queued
 * work. For gpufl's own processes (`gpufl doctor --calibrate`), never in a user's. */
#ifndef GPUFL_DRIVER_LAUNCH_PROBE_H
#define GPUFL_DRIVER_LAUNCH_PROBE_H

#include "base/status.h"

/* Launches of a probe, in this order. */
enum { PROBE_WARM_LAUNCHES = 2000, PROBE_HOST_LAUNCHES = 20000, PROBE_GPU_LAUNCHES = 4000, PROBE_COLD_LAUNCHES = 4000 };

struct launch_times {
    double host_ns; /* per launch of an empty kernel, in a loop of launches */
    double cold_ns; /* per launch of one, with the CPU's caches cold (driver/cold_caches.h) */
    double gpu_ns;  /* per kernel of about 10 us, queued behind others */
};
/* On the first GPU; initializes CUDA. */
NODISCARD gpufl_status launch_probe_run(struct launch_times *times, struct problem *problem);

#endif
