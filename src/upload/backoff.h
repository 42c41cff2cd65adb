/* SPDX-License-Identifier: Apache-2.0 */
/* How long to wait before the next try: exponential with full jitter, so that many clients that failed together do not
 * come back together. Any thread. */
#ifndef GPUFL_UPLOAD_BACKOFF_H
#define GPUFL_UPLOAD_BACKOFF_H

#include <stdint.h>

/* After the given number of tries (from 1): anything from 0 to first_ms, doubled with each try, at most most_ms. */
int64_t backoff_ms(unsigned tries, int64_t first_ms, int64_t most_ms);

#endif
