/* SPDX-License-Identifier: Apache-2.0 */
/* Starts gpufl's threads in the user's program: the program's signals are not delivered to them. */
#ifndef GPUFL_BASE_OWN_THREAD_H
#define GPUFL_BASE_OWN_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* Stack sizes, independent of the program's limits. Small: for our code and libc. Large: for threads that call CUPTI,
 * CUDA or NVML, whose stack use is unknown. */
enum { OWN_THREAD_STACK_SMALL = 512 << 10, OWN_THREAD_STACK_LARGE = 8 << 20 };

/* name: at most 15 bytes, shown by tools. False: the thread was not started. */
bool own_thread_start(pthread_t *thread, const char *name, size_t stack_bytes, void *(*run)(void *), void *argument);

#endif
