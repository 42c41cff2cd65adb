/* SPDX-License-Identifier: Apache-2.0 */
/* Other profilers in the program that use CUPTI: torch.profiler, JAX's, Proton, or the program itself. They announce
 * themselves with gpufl_yield and gpufl_resume, or the library that `gpufl trace` preloads does it for them. */
#ifndef GPUFL_SDK_OTHER_PROFILERS_H
#define GPUFL_SDK_OTHER_PROFILERS_H

#include <stdbool.h>

/* When a session starts: listens to the preloaded library, if there is one. is_exclusive: CUPTI is never released to
 * others. */
void other_profilers_attend(bool is_exclusive);
/* The current user of CUPTI; NULL: nobody. Valid until the process's next session starts. */
const char *other_profilers_current(void);
/* Polled on the collector's thread while CUPTI is released: true once when nobody uses it any more. */
bool other_profilers_are_over(void);
void other_profilers_abandon(void); /* in a forked child */

#endif
