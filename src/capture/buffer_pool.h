/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that CUPTI writes its records to, and that rocprofiler's threads fill with decoded activities for the
 * collector. A fixed number of buffers circulates: free -> CUPTI -> completed -> collector -> free. CUPTI (13.0 and
 * later) keeps one buffer per thread that calls the API, so a program with very many threads gets smaller reserve
 * buffers when the pool is empty, up to a limit. Beyond the limit CUPTI is given no buffer, drops records and counts
 * them. Process-wide: CUPTI's callbacks have no user pointer, and CUPTI may hold buffers across sessions. */
#ifndef GPUFL_CAPTURE_BUFFER_POOL_H
#define GPUFL_CAPTURE_BUFFER_POOL_H

#include "base/status.h"

enum {
    POOL_BUFFER_BYTES = 256 * 1024,
    POOL_BUFFER_COUNT = 80, /* 20 MiB */
    RESERVE_BUFFER_BYTES = 32 * 1024,
    RESERVE_BUFFER_COUNT = 256 /* 8 MiB, made only under pressure */
};

struct filled_buffer {
    uint8_t *data;
    size_t valid_bytes;
    bool is_decoded; /* an array of struct activity, not CUPTI's records */
};

NODISCARD gpufl_status buffer_pool_setup(void); /* once per process */
/* In a forked child: marks every buffer free, whatever the parent's threads were doing with it. */
void buffer_pool_abandon(void);
/* For CUPTI, on any thread. */
uint8_t *buffer_pool_request(size_t *size);
void buffer_pool_complete(uint8_t *buffer, size_t size, size_t valid);
void buffer_pool_complete_decoded(uint8_t *buffer, size_t valid);
/* For the collector. */
bool buffer_pool_take(struct filled_buffer *filled);
void buffer_pool_return(uint8_t *buffer);
/* Frees the buffers that CUPTI held when it was detached: it never returns them. */
void buffer_pool_take_back(void);
/* Sleeps until a buffer is completed, buffer_pool_wake is called, or the timeout expires. */
void buffer_pool_wait(int64_t timeout_ns);
void buffer_pool_wake(void);
uint32_t buffer_pool_lent(void); /* buffers that CUPTI holds */
size_t buffer_pool_bytes(void);  /* memory allocated so far */

#endif
