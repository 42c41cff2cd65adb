/* SPDX-License-Identifier: Apache-2.0 */
/* Saves and restores the device memory of a context, so that a section of work can be run again with the same input.
 * Uses libcheckpoint.so, which is installed next to libcupti. Kernels and copies between save and restore are
 * undone; memory allocated after save is not tracked, and stream capture and graphs are not supported in between.
 * One thread at a time per checkpoint. */
#ifndef GPUFL_DRIVER_CHECKPOINT_H
#define GPUFL_DRIVER_CHECKPOINT_H

#include "driver/cupti.h"

#define CHECKPOINT_RESERVE_ALL SIZE_MAX /* do not use any of that memory */

struct checkpoint_options {
    void *context; /* CUcontext; NULL: the calling thread's */
    /* Memory that stays free for the program; what does not fit is stored in host memory, then in a file. */
    size_t reserve_device_mib, reserve_host_mib;
    /* Save only what changed. Only correct if every restore is at the same point of the program. */
    bool has_fixed_point;
};

struct checkpoint; /* opaque */

/* GPUFL_E_NOT_FOUND: there is no libcheckpoint.so. Nothing is saved yet. */
NODISCARD gpufl_status checkpoint_open(struct checkpoint **out, const struct cupti *cupti,
                                       const struct checkpoint_options *options, struct problem *problem);
/* Saves, replacing an earlier save. */
NODISCARD gpufl_status checkpoint_save(struct checkpoint *checkpoint, struct problem *problem);
/* May be repeated; GPUFL_E_INVALID when nothing was saved. */
NODISCARD gpufl_status checkpoint_restore(struct checkpoint *checkpoint, struct problem *problem);
void checkpoint_close(struct checkpoint *checkpoint); /* NULL is a no-op */

#endif
