/* SPDX-License-Identifier: Apache-2.0 */
/* Rate limit per second with a burst. The caller locks. */
#ifndef GPUFL_SERVER_TOKEN_BUCKET_H
#define GPUFL_SERVER_TOKEN_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

struct token_bucket {
    double tokens;
    int64_t filled_ns; /* monotonic; 0: never used, therefore full */
};

/* Takes `amount` if the bucket is not empty, so that a single large request is never impossible: later requests wait
 * until the debt is refilled. False: retry after *wait_s (at least 1). rate 0: no limit. */
static inline bool token_bucket_take(struct token_bucket *bucket, double rate_per_s, double burst, double amount,
                                     int64_t now_ns, unsigned *wait_s)
{
    if (rate_per_s <= 0)
        return true;
    double elapsed_s = bucket->filled_ns ? (double)(now_ns - bucket->filled_ns) / 1e9 : 0;
    bucket->tokens = bucket->filled_ns ? bucket->tokens + elapsed_s * rate_per_s : burst;
    if (bucket->tokens > burst)
        bucket->tokens = burst;
    bucket->filled_ns = now_ns;
    if (bucket->tokens <= 0) {
        double wait = -bucket->tokens / rate_per_s;
        *wait_s = wait < 3600 ? (unsigned)wait + 1 : 3600;
        return false;
    }
    bucket->tokens -= amount;
    return true;
}

#endif
