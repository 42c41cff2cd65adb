/* SPDX-License-Identifier: Apache-2.0 */
/* The device memory of a context, put aside and put back, so that a stretch of
 * work can be run again with the same input. Uses libcheckpoint.so, which lies
 * beside libcupti. Kernels and copies between save and restore are undone; what is
 * allocated after save is not tracked, and stream capture and graphs are not
 * supported there. One thread at a time per checkpoint. */
#ifndef GPUFL_DRIVER_CHECKPOINT_H
#define GPUFL_DRIVER_CHECKPOINT_H

#include "driver/cupti.h"

#define CHECKPOINT_RESERVE_ALL SIZE_MAX /* leave all of that memory alone */

struct checkpoint_options {
    void *context; /* CUcontext; NULL: the calling thread's */
    /* Memory that stays free for the program; what does not fit goes on to host memory, then to a file. */
    size_t reserve_device_mib, reserve_host_mib;
    /* Move only what changed. Right only when every restore is at the same point of the program. */
    bool has_fixed_point;
};

struct checkpoint; /* opaque */

/* GPUFL_E_NOT_FOUND: there is no libcheckpoint.so. Nothing is saved yet. */
NODISCARD gpufl_status checkpoint_open(struct checkpoint **out, const struct cupti *cupti,
                                       const struct checkpoint_options *options, struct problem *problem);
/* Saves, over what was saved before. */
NODISCARD gpufl_status checkpoint_save(struct checkpoint *checkpoint, struct problem *problem);
/* As often as wanted; GPUFL_E_INVALID when nothing was saved. */
NODISCARD gpufl_status checkpoint_restore(struct checkpoint *checkpoint, struct problem *problem);
void checkpoint_close(struct checkpoint *checkpoint); /* NULL is a no-op */

#endif
