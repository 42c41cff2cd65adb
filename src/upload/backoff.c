/* SPDX-License-Identifier: Apache-2.0 */
#include "upload/backoff.h"

#include "base/clock.h"

#include <sys/random.h>

int64_t backoff_ms(unsigned tries, int64_t first_ms, int64_t most_ms)
{
    int64_t ms = first_ms;
    for (unsigned i = 1; i < tries && ms < most_ms; i++)
        ms *= 2;
    uint32_t random = 0;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
        random = (uint32_t)clock_mono_ns();
    return (int64_t)(random % (uint64_t)((ms < most_ms ? ms : most_ms) + 1));
}
