/* SPDX-License-Identifier: Apache-2.0 */
/* Every vendor function is called through a wrapper that publishes its name (base/watch.h), so that a hanging call
 * can be identified. */
#ifndef GPUFL_DRIVER_WATCHED_CALLS_H
#define GPUFL_DRIVER_WATCHED_CALLS_H

#include <stddef.h>

/* The wrapper of that function; the function itself if there is no wrapper for the name, or if the wrapper is
 * already used for another copy of the library; NULL for NULL. */
void *watched_call(const char *symbol, void *function);
/* The names of all functions with a wrapper; NULL at the end. */
const char *watched_call_name(size_t index);

#endif
