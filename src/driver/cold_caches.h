/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves the CPU's caches as a program does that ran much else: other instructions, branches and data are in them. For a
 * process of ours (driver/launch_probe.h), never in a user's. */
#ifndef GPUFL_DRIVER_COLD_CACHES_H
#define GPUFL_DRIVER_COLD_CACHES_H

#include <stdbool.h>
#include <stddef.h>

struct cold_caches {
    unsigned char *code, *data; /* NULL: that kind of memory is not to be had */
};

bool cold_caches_open(struct cold_caches *caches); /* false: neither kind */
void cold_caches_make(struct cold_caches *caches); /* some tens of microseconds */
void cold_caches_close(struct cold_caches *caches);

#endif
