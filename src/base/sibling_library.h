/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a shared object of gpufl on demand, so that neither a user's program nor the command line depends on the
 * libraries it needs. */
#ifndef GPUFL_BASE_SIBLING_LIBRARY_H
#define GPUFL_BASE_SIBLING_LIBRARY_H

#include "base/status.h"

#include <stddef.h>

/* A function that would be in a sibling library, and is in the program instead: static programs load nothing. */
struct sibling_function {
    const char *name;
    void (*address)(void);
};

/* Searched first from now on; the array stays the caller's. */
void sibling_functions_set(const struct sibling_function *functions, size_t count);

/* Returns the symbol of the library, e.g. "libgpufl-upload.so.1". Searches next to the module that contains `address`,
 * where libraries are installed relative to programs (such as ../lib64), in ../lib, in gpufl/ below the first and the
 * last, then in the loader's path. The library stays loaded. NULL: `reason` is the loader's message. */
void *sibling_library_symbol(const char *library, const char *symbol, const void *address, char *reason,
                             size_t reason_size);

#endif
