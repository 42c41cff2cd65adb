/* SPDX-License-Identifier: Apache-2.0 */
/* GPU waits made by gpufl itself: CUPTI records them like the program's, and the collector filters them out. Begin
 * and end are called on the waiting thread, one wait at a time in the process. The latest 64 are remembered. */
#ifndef GPUFL_CAPTURE_OWN_WAITS_H
#define GPUFL_CAPTURE_OWN_WAITS_H

#include <stdbool.h>
#include <stdint.h>

void own_wait_begin(void);
void own_wait_end(void);
/* thread_id: gettid(), or the low half of pthread_self() as an old CUPTI gives it. */
bool own_waits_include(uint32_t thread_id, int64_t time_ns);

#endif
