/* SPDX-License-Identifier: Apache-2.0 */
/* A thread of gpufl's in somebody else's program: the program's signals are for the program's threads. */
#ifndef GPUFL_BASE_OWN_THREAD_H
#define GPUFL_BASE_OWN_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* Of the stack, whatever the program's limits are. Small: enough for our own code and libc's. Large: for a thread that
 * calls into CUPTI, CUDA or NVML: how much those take is not known. */
enum { OWN_THREAD_STACK_SMALL = 512 << 10, OWN_THREAD_STACK_LARGE = 8 << 20 };

/* name: at most 15 bytes, as tools show it. False: there is no thread. */
bool own_thread_start(pthread_t *thread, const char *name, size_t stack_bytes, void *(*run)(void *), void *argument);

#endif
