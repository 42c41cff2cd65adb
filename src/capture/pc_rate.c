/* SPDX-License-Identifier: Apache-2.0 */
/* The sampling rate, and how often samples are read. */
#include "capture/pc_engine.h"

enum {
    DRAIN_DEFAULT_MS = 100,
    DRAIN_BREAKS_DEFAULT_MS = 500, /* decoding less often costs a launch less when there are many samples */
    SAMPLES_PER_PERIOD = 4,        /* an SM's sub-partitions */
};

uint32_t pc_sampler_period_exponent(uint32_t rate_hz, uint32_t clock_khz)
{
    uint64_t cycles = (uint64_t)clock_khz * 1000 * SAMPLES_PER_PERIOD / rate_hz;
    uint32_t exponent = PC_PERIOD_MIN;
    while (exponent < PC_PERIOD_MAX && UINT64_C(2) << exponent <= cycles)
        exponent++;
    return exponent;
}

uint32_t pc_sampler_exponent(const struct pc_sampler *sampler, uint32_t clock_khz)
{
    const struct pc_sampler_options *options = &sampler->options;
    uint64_t rate_hz = (uint64_t)options->rate_hz * 100 / sampler->breaks.share_percent;
    return options->period_exponent ? options->period_exponent
                                    : pc_sampler_period_exponent((uint32_t)rate_hz, clock_khz);
}

uint32_t pc_sampler_worker_ms(const struct pc_sampler *sampler)
{
    enum { most_ms = 1000 }; /* the end of a session waits for one round */
    return sampler->options.drain_ms < most_ms ? sampler->options.drain_ms : most_ms;
}

/* Often enough for the GPU's buffer: at one sample in 2^17 cycles, half a second fills half of it on an H200. */
uint32_t pc_sampler_usual_drain_ms(const struct pc_sampler *sampler)
{
    enum { least_ms = 10, half_full_exponent = 17 };
    uint32_t exponent = pc_sampler_exponent(sampler, PC_CLOCK_GUESS_KHZ), most_ms = DRAIN_BREAKS_DEFAULT_MS;
    while (exponent++ < half_full_exponent && most_ms / 2 >= least_ms)
        most_ms /= 2;
    return sampler->breaks.has_breaks || most_ms < DRAIN_DEFAULT_MS ? most_ms : DRAIN_DEFAULT_MS;
}
