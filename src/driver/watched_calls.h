/* SPDX-License-Identifier: Apache-2.0 */
/* Every vendor function is called through a wrapper that publishes its name
 * (base/watch.h), so that a call that never returns can be named. */
#ifndef GPUFL_DRIVER_WATCHED_CALLS_H
#define GPUFL_DRIVER_WATCHED_CALLS_H

#include <stddef.h>

/* The wrapper of that function; the function itself where there is no wrapper for the name, or one of another copy of
 * the library was made before; NULL for NULL. */
void *watched_call(const char *symbol, void *function);
/* The names of all functions with a wrapper; NULL at the end. */
const char *watched_call_name(size_t index);

#endif
