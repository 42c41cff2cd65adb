/* SPDX-License-Identifier: Apache-2.0 */
/* The recorded sessions that come with gpufl: each folder of examples/recorded that holds a session is one. */
#ifndef GPUFL_CLI_DEMO_RECORDINGS_H
#define GPUFL_CLI_DEMO_RECORDINGS_H

#include "base/status.h"

#include <limits.h>
#include <stddef.h>

enum { DEMO_RECORDINGS_MAX = 11 };

struct demo_recordings {
    char paths[DEMO_RECORDINGS_MAX][PATH_MAX]; /* the one to report on first, the others by name */
    size_t count;
    size_t left_out; /* sessions beyond the limit */
};

/* Of this installation. GPUFL_E_NOT_FOUND: it has none. */
NODISCARD gpufl_status demo_recordings_find(struct demo_recordings *recordings, struct problem *problem);

#endif
