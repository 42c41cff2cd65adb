/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and opens vendor libraries. Order: already mapped in the process (a second copy of CUPTI crashes), an
 * explicit path (environment), the toolkit's or a Python wheel's directory, the loader's path. */
#ifndef GPUFL_DRIVER_LIBRARY_H
#define GPUFL_DRIVER_LIBRARY_H

#include "base/status.h"

struct library {
    void *handle;   /* dlopen handle, never closed: vendor libraries do not survive it */
    char path[512]; /* where it came from, for messages */
    bool was_mapped;
};

/* NULL-terminated lists. prefix: the start of a mapped object's file name ("libcupti.so"). */
struct library_search {
    const char *prefix;
    const char *path_variable;      /* e.g. "GPUFL_CUPTI_PATH" */
    const char *const *directories; /* absolute; may contain one * (glob) */
    const char *const *names;       /* sonames, best first */
};
NODISCARD gpufl_status library_open(struct library *library, const struct library_search *search,
                                    struct problem *problem);
/* Path of the first mapped object whose file name starts with prefix; false when there is none. */
bool library_find_mapped(const char *prefix, char *path, size_t size);
/* The site-packages directory that contains a mapped object; false when there is none. */
bool library_find_site_packages(char *path, size_t size);
/* Returns pages of the library's zero-initialized data that are still all zero to the system; their content does not
 * change. NVML touches 13 MiB of them when it starts. For gpufl's own processes, while nothing else calls the
 * library. Returns the number of bytes released. */
size_t library_trim(const struct library *library);
/* Whether another thread can load libraries now. False while this thread is inside a library's constructor and holds
 * the loader's lock. */
bool library_loads_on_other_threads(void);
/* NULL when absent. Calls to a function listed in a table of this folder are watched, see base/watch.h. */
void *library_symbol(const struct library *library, const char *name);

#endif
