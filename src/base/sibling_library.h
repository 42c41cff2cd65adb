/* SPDX-License-Identifier: Apache-2.0 */
/* Finds a shared object of gpufl's own that is loaded only when it is needed, so
 * that neither a user's program nor the command line carries what it needs, or
 * fails to start without it. */
#ifndef GPUFL_BASE_SIBLING_LIBRARY_H
#define GPUFL_BASE_SIBLING_LIBRARY_H

#include "base/status.h"

#include <stddef.h>

/* The symbol of the library, e.g. "libgpufl-upload.so.1". Looks beside the module that holds `address`, in ../lib from
 * there, in gpufl/ below both, then where the loader looks. The library stays loaded. NULL: `reason` (the loader's words) says why. */
void *sibling_library_symbol(const char *library, const char *symbol, const void *address, char *reason,
                             size_t reason_size);

#endif
