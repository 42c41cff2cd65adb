/* SPDX-License-Identifier: Apache-2.0 */
/* Carries PC samples from the thread that drains a context to the collector: a bounded ring of intervals, preceded
 * by the definitions of the numbers in them. Any thread may push; samples that do not fit are counted as lost. Only
 * the collector reads. */
#ifndef GPUFL_CAPTURE_PC_RING_H
#define GPUFL_CAPTURE_PC_RING_H

#include "capture/pc_attribution.h"
#include "driver/pc_sampling.h"

struct pc_ring; /* opaque */

/* The content of a pc_sampling_config record. */
struct pc_config {
    uint32_t context_id, device_id;
    bool is_serialized;
    uint32_t period_exponent, rate_hz;
    uint64_t hardware_buffer_bytes;
};

NODISCARD gpufl_status pc_ring_make(struct pc_ring **out, struct recorder *recorder);
void pc_ring_free(struct pc_ring *ring);
/* False: the ring is full. Push it before the context's samples. */
bool pc_ring_push_config(struct pc_ring *ring, const struct pc_config *config, const struct stall_reasons *stalls);
void pc_ring_push_samples(struct pc_ring *ring, const struct pc_interval *interval, const struct pc_sample *samples,
                          size_t count);
/* Collector thread: writes configurations and passes intervals that ended by complete_ns to the attribution. */
void pc_ring_read(struct pc_ring *ring, struct pc_attribution *attribution, int64_t complete_ns);
size_t pc_ring_bytes(const struct pc_ring *ring);

#endif
