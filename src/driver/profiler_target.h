/* SPDX-License-Identifier: Apache-2.0 */
/* What PC sampling, SASS metrics, range profiling and PM sampling share on the
 * device's side: CUPTI's profiler initialized once for all of them, whether a
 * device allows an API, its chip and counters, and one wording of every refusal.
 * Thread-safe, also in CUPTI's callbacks: no lock is held across a call of CUPTI. */
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

/* What a result other than CUPTI_ABI_SUCCESS of one of these families means and what to do about it.
 * GPUFL_E_PERMISSION: not allowed to read counters; GPUFL_E_BUSY: another tool holds them; GPUFL_E_UNSUPPORTED:
 * this device or its configuration has none (vGPU, MIG, confidential computing, ...); GPUFL_E_NO_DRIVER. */
gpufl_status profiler_problem(const struct cupti *cupti, const char *function, int result, struct problem *problem);
/* The same for a function that this CUPTI does not have: GPUFL_E_UNSUPPORTED. */
gpufl_status profiler_lacks(const struct cupti *cupti, const char *function, struct problem *problem);

/* Loads the libraries that CUPTI needs for counters and initializes its profiler, unless it is. Every success wants
 * one profiler_target_release; the last one ends it. GPUFL_E_BUSY: that is happening right now. */
NODISCARD gpufl_status profiler_target_acquire(struct cupti *cupti, struct problem *problem);
void profiler_target_release(struct cupti *cupti);
void profiler_target_abandon(void); /* in a forked child: the uses are the parent's */

/* Whether the device (its CUDA ordinal) allows the API; wants an acquired profiler. The problem names the reason. */
NODISCARD gpufl_status profiler_target_check(struct cupti *cupti, uint32_t device, enum profiler_api api,
                                             struct problem *problem);
/* "GH100"; needs an initialized CUDA driver in the process (GPUFL_E_NO_DRIVER), but no acquired profiler. */
NODISCARD gpufl_status profiler_target_chip(struct cupti *cupti, uint32_t device, char chip[PROFILER_CHIP_NAME_BYTES],
                                            struct problem *problem);
/* Which counters the context's device offers, for profiler_host_open; *image is the caller's to free. context: a
 * CUcontext, NULL for the current one. Wants an acquired profiler. (PM sampling has its own, by device.) */
NODISCARD gpufl_status profiler_target_availability(struct cupti *cupti, void *context, uint8_t **image,
                                                    size_t *image_bytes, struct problem *problem);

/* For the files of this folder: a library of CUPTI's own release (libnvperf_host.so, libnvperf_target.so), opened
 * before CUPTI looks for it by name only. False: there is none beside libcupti; `directory` is where it was looked for. */
bool profiler_library_load(const struct cupti *cupti, const char *name, char *directory, size_t size);

#endif
