/* SPDX-License-Identifier: Apache-2.0 */
/* Other profilers in the program that use CUPTI: torch.profiler, JAX's, Proton, or
 * the program itself. They announce themselves through gpufl_yield and
 * gpufl_resume, or the library that `gpufl trace` preloads does it for them. */
#ifndef GPUFL_SDK_OTHER_PROFILERS_H
#define GPUFL_SDK_OTHER_PROFILERS_H

#include <stdbool.h>

/* When a session starts: listens to the preloaded library, where there is one. is_exclusive: nobody is yielded to. */
void other_profilers_attend(bool is_exclusive);
/* Who uses CUPTI now; NULL: nobody. Valid until the process's next session starts. */
const char *other_profilers_current(void);
/* Asked now and then while the collector has no CUPTI, on its thread: true once when nobody uses it any more. */
bool other_profilers_are_over(void);
void other_profilers_abandon(void); /* in a forked child */

#endif
