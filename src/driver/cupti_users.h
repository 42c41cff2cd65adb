/* SPDX-License-Identifier: Apache-2.0 */
/* Detects other libraries in the process that can call CUPTI because they are linked with it. */
#ifndef GPUFL_DRIVER_CUPTI_USERS_H
#define GPUFL_DRIVER_CUPTI_USERS_H

#include <stdbool.h>

/* Whether the program, or a library loaded so far, is linked with CUPTI and may push external ids at any time.
 * Kineto's library, libtorch_cpu.so, does not count: it pushes one per operator, and only while it profiles, so its
 * ids are found soon. Takes the dynamic linker's lock: call it on our own threads. */
bool cupti_has_linked_users(void);

#endif
