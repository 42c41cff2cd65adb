/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's id of the calling thread. */
#ifndef GPUFL_BASE_CURRENT_THREAD_H
#define GPUFL_BASE_CURRENT_THREAD_H

#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* gettid() is missing in glibc before 2.30. */
static inline uint32_t current_thread_id(void)
{
    return (uint32_t)syscall(SYS_gettid);
}

#endif
