/* SPDX-License-Identifier: Apache-2.0 */
/* What PC sampling, SASS metrics, range profiling and PM sampling share on the target side: a single initialization
 * of CUPTI's profiler, whether a device allows an API, its chip and counters, and common error messages.
 * Thread-safe, also in CUPTI's callbacks: no lock is held during a call of CUPTI. */
#ifndef GPUFL_DRIVER_PROFILER_TARGET_H
#define GPUFL_DRIVER_PROFILER_TARGET_H

#include "driver/cupti.h"

enum { PROFILER_CHIP_NAME_BYTES = 32 };

/* CUPTI's numbering */
enum profiler_api {
    PROFILER_API_RANGE = 0,
    PROFILER_API_PC_SAMPLING = 1,
    PROFILER_API_SASS_METRICS = 2,
    PROFILER_API_PM_SAMPLING = 3
};

/* The meaning of a result other than CUPTI_ABI_SUCCESS and how to resolve it. GPUFL_E_PERMISSION: not allowed to
 * read counters; GPUFL_E_BUSY: another tool uses them; GPUFL_E_UNSUPPORTED: this device or its configuration has
 * none (vGPU, MIG, confidential computing, ...); GPUFL_E_NO_DRIVER. */
gpufl_status profiler_problem(const struct cupti *cupti, const char *function, int result, struct problem *problem);
/* The same for a function that is missing in this CUPTI: GPUFL_E_UNSUPPORTED. */
gpufl_status profiler_lacks(const struct cupti *cupti, const char *function, struct problem *problem);

/* Loads the libraries that CUPTI needs for counters and initializes its profiler, unless it is initialized. Every
 * success needs one profiler_target_release; the last one ends it. GPUFL_E_BUSY: it is being ended right now. */
NODISCARD gpufl_status profiler_target_acquire(struct cupti *cupti, struct problem *problem);
void profiler_target_release(struct cupti *cupti);
void profiler_target_abandon(void); /* in a forked child: the uses belong to the parent */

/* Whether the device (its CUDA ordinal) allows the API; needs an acquired profiler. The problem has the reason. */
NODISCARD gpufl_status profiler_target_check(struct cupti *cupti, uint32_t device, enum profiler_api api,
                                             struct problem *problem);
/* "GH100"; needs an initialized CUDA driver in the process (GPUFL_E_NO_DRIVER), but no acquired profiler. */
NODISCARD gpufl_status profiler_target_chip(struct cupti *cupti, uint32_t device, char chip[PROFILER_CHIP_NAME_BYTES],
                                            struct problem *problem);
/* The counters that the context's device offers, for profiler_host_open; the caller frees *image. context: a
 * CUcontext, NULL for the current one. Needs an acquired profiler. (PM sampling has its own, by device.) */
NODISCARD gpufl_status profiler_target_availability(struct cupti *cupti, void *context, uint8_t **image,
                                                    size_t *image_bytes, struct problem *problem);

/* For the files of this folder: loads a library of the same CUPTI release (libnvperf_host.so, libnvperf_target.so)
 * before CUPTI searches for it by name only. False: it is not next to libcupti; `directory` is where it was
 * searched. */
bool profiler_library_load(const struct cupti *cupti, const char *name, char *directory, size_t size);

#endif
