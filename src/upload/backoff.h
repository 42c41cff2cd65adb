/* SPDX-License-Identifier: Apache-2.0 */
/* Delay before the next retry: exponential with full jitter, so that clients that failed together do not retry
 * together. Any thread. */
#ifndef GPUFL_UPLOAD_BACKOFF_H
#define GPUFL_UPLOAD_BACKOFF_H

#include <stdint.h>

/* A random delay between 0 and first_ms * 2^(tries - 1), but at most most_ms. tries: made so far, from 1. */
int64_t backoff_ms(unsigned tries, int64_t first_ms, int64_t most_ms);

#endif
