/* SPDX-License-Identifier: Apache-2.0 */
/* The library that the program loads before all others, so that profilers inside
 * the program get CUPTI while they need it. */
#ifndef GPUFL_CLI_PRELOADING_H
#define GPUFL_CLI_PRELOADING_H

#include "cli/child.h"

/* recorder: path of the recorder, beside which the library is. is_exclusive: nothing is preloaded, nobody is yielded to.
 * False: a value is too long. */
bool preloading_set(struct child_options *child, const char *recorder, bool is_exclusive);

#endif
