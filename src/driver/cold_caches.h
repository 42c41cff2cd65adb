/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the CPU's caches in the state after other work: filled with other instructions, branches and data. For
 * gpufl's own processes (driver/launch_probe.h), never in a user's. */
#ifndef GPUFL_DRIVER_COLD_CACHES_H
#define GPUFL_DRIVER_COLD_CACHES_H

#include <stdbool.h>
#include <stddef.h>

struct cold_caches {
    unsigned char *code, *data; /* NULL: that kind of memory is unavailable */
};

bool cold_caches_open(struct cold_caches *caches); /* false: neither is available */
void cold_caches_make(struct cold_caches *caches); /* takes a few tens of microseconds */
void cold_caches_close(struct cold_caches *caches);

#endif
