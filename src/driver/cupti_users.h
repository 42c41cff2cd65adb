/* SPDX-License-Identifier: Apache-2.0 */
/* Who else in the process can call CUPTI: libraries that were linked with it. */
#ifndef GPUFL_DRIVER_CUPTI_USERS_H
#define GPUFL_DRIVER_CUPTI_USERS_H

#include <stdbool.h>

/* Whether the program, or a library that it has loaded by now, is linked with CUPTI and may push external ids at any
 * time. Kineto's library, libtorch_cpu.so, does not count: it pushes one per operator, and only while it profiles, so
 * its ids are found soon. Takes the dynamic linker's lock: our own threads. */
bool cupti_has_linked_users(void);

#endif
