/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/observed_calls.h"

/* Values below 8 have their own bucket; above, a bucket covers the top bit and the three bits after it. */
static unsigned bucket_of(uint64_t value)
{
    if (value < 8)
        return (unsigned)value;
    unsigned exponent = 63 - (unsigned)__builtin_clzll(value);
    return (exponent - 2) * 8 + (unsigned)(value >> (exponent - 3) & 7);
}

/* The middle value of a bucket. */
static int64_t bucket_middle(unsigned bucket)
{
    if (bucket < 8)
        return bucket;
    unsigned exponent = bucket / 8 + 2;
    uint64_t low = (8 + bucket % 8ull) << (exponent - 3);
    return (int64_t)(low + ((1ull << (exponent - 3)) >> 1));
}

/* A slice ends with the call that completes it, so that a long wait is in the slice of the launches it waits for. */
static void slice_add(struct observed_state *state, int64_t start_ns, int64_t end_ns, bool is_launch)
{
    struct call_slice *slice = &state->slice;
    if (!slice->start_ns)
        slice->start_ns = start_ns;
    slice->calls_ns += end_ns - start_ns;
    slice->launches += is_launch;
    if (end_ns - slice->start_ns < OBSERVED_SLICE_NS || !slice->launches)
        return;
    state->launches_by_mean[bucket_of((uint64_t)slice->calls_ns / slice->launches)] += slice->launches;
    *slice = (struct call_slice){0};
}

void observed_calls_add(struct observed_calls *calls, enum call_state at, int64_t start_ns, int64_t end_ns,
                        bool is_launch)
{
    if (at >= CALL_STATE_COUNT || end_ns < start_ns)
        return;
    struct observed_state *state = &calls->states[at];
    for (int i = 0; i < CALL_STATE_COUNT; i++) /* a slice that another state cut short is incomplete */
        if (i != (int)at)
            calls->states[i].slice = (struct call_slice){0};
    state->launches += is_launch;
    state->calls_ns += end_ns - start_ns;
    slice_add(state, start_ns, end_ns, is_launch);
}

int64_t observed_calls_typical_ns(const struct observed_calls *calls, enum call_state at)
{
    const struct observed_state *state = &calls->states[at];
    uint64_t all = 0, below = 0;
    for (unsigned i = 0; i < OBSERVED_BUCKETS; i++)
        all += state->launches_by_mean[i];
    for (unsigned i = 0; all && i < OBSERVED_BUCKETS; i++) {
        below += state->launches_by_mean[i];
        if (below * 2 >= all)
            return bucket_middle(i);
    }
    return -1;
}
