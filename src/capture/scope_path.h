/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the scopes that the calling thread is in, from the outside in,
 * joined by '|'. Kept only by engines that count by scope. Each thread owns its
 * path, made at its first scope and freed when it exits. */
#ifndef GPUFL_CAPTURE_SCOPE_PATH_H
#define GPUFL_CAPTURE_SCOPE_PATH_H

#include <stddef.h>

/* Enters a scope; the path with it, cut at 2 KiB, "" when there is no memory for it. */
const char *scope_path_push(const char *name, size_t name_size);
void scope_path_pop(void);

#endif
