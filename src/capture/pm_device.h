/* SPDX-License-Identifier: Apache-2.0 */
/* One device of the PM sampling engine: opens it, validates decoded samples, passes good ones on and counts the
 * rest. Everything runs under the engine's lock. */
#ifndef GPUFL_CAPTURE_PM_DEVICE_H
#define GPUFL_CAPTURE_PM_DEVICE_H

#include "base/ring.h"
#include "capture/recorder.h"
#include "driver/pm_sampling.h"

enum { PM_PERIOD_NS_MAX = 100000000 }; /* maximum age of a sample when it is decoded */

/* Where the samples of all devices go. */
struct pm_feed {
    struct cupti *cupti;       /* borrowed */
    struct recorder *recorder; /* borrowed; for losses */
    struct pm_sampling_options options;
    struct ring ring;                   /* of struct pm_ring_sample, to the collector */
    int64_t period_ns, quiet_period_ns; /* time between decodes: now, and while nothing is lost */
    bool is_running;                    /* devices sample as soon as they are open */
    _Atomic uint64_t samples, values, first_dropped, bad_time, missed, overflows, queue_lost, no_values;
};

struct pm_ring_sample {
    struct ring_record header;
    int64_t start_ns;
    uint32_t device_id, index;
    uint64_t left_out; /* bit i: the device does not have metric i */
    double values[];   /* one per metric */
};

struct pm_device {
    uint32_t device_id;
    struct pm_sampling *sampling; /* NULL: failed or closed */
    gpufl_status status;
    struct problem problem; /* why status is not GPUFL_OK */
    int64_t started_ns, last_start_ns, last_end_ns;
    int64_t read_mono_ns; /* when the last decode began, or the device started */
    bool may_reach_back;  /* the next sample is the first since a start or a full image, so its start may be wrong */
    uint32_t next_index;
    uint64_t timeless; /* samples since the last good one whose interval is already counted as lost */
    unsigned failures, rebuilds;
    bool has_failed; /* has failed at least once, which was logged */
};

/* How many samples the image must hold so that decodes may be late. */
uint32_t pm_feed_capacity(int64_t interval_ns);
/* Computes how often to decode so that neither the hardware buffer nor the image fills up. */
void pm_feed_pace(struct pm_feed *feed, const struct pm_sampling_facts *facts);
/* Counts a loss in the feed's total and in the log. */
void pm_feed_lose(struct pm_feed *feed, _Atomic uint64_t *total, enum loss_reason reason, uint64_t count);

NODISCARD gpufl_status pm_device_open(struct pm_device *device, struct pm_feed *feed);
/* On failure the device is closed. */
NODISCARD gpufl_status pm_device_start(struct pm_device *device);
/* Reads the collected samples. A device that cannot be read is reopened, a few times; then it fails and status has
 * the reason. A device whose hardware buffer was full never returns data again, so it is reopened at once. */
void pm_device_decode(struct pm_device *device, struct pm_feed *feed);
void pm_device_close(struct pm_device *device); /* stops it; samples that were not decoded are lost */

#endif
