/* SPDX-License-Identifier: Apache-2.0 */
/* The PM sampling engine: a time line of hardware metrics of each attached device, as pm_sample_batch rows. Its own
 * thread (gpufl-pm) decodes; decoded samples wait in a bounded ring for the collector, which writes them. Rows have
 * the start of the sampled interval. Losses: pm_* of recorder.h. */
#ifndef GPUFL_CAPTURE_PM_SAMPLER_H
#define GPUFL_CAPTURE_PM_SAMPLER_H

#include "capture/names.h"
#include "driver/metric_sets.h"

enum { PM_DEVICES_MAX = 32 };

struct pm_sampler; /* opaque */

struct pm_sampler_options {
    struct cupti *cupti; /* borrowed, as the next two */
    struct recorder *recorder;
    struct names *names;
    const struct metric_choice *choice; /* copied */
    unsigned interval_us;               /* 0: 1000 */
    size_t hardware_buffer_bytes;       /* per device; 0: 64 MiB */
    bool keeps_oldest;                  /* a full hardware buffer drops new samples; false: the oldest */
    uint64_t device_mask;               /* by CUDA ordinal; 0: every device that is attached */
};

struct pm_sampler_totals {
    uint64_t samples, values; /* written to the ring; values that were numbers */
    /* samples without a time: expected after a start or a full image, otherwise a loss */
    uint64_t first_dropped, bad_time;
    uint64_t missed, overflows, queue_lost, no_values;
    uint32_t devices, devices_failed;
    int64_t cpu_ns; /* of the thread */
};

NODISCARD gpufl_status pm_sampler_make(struct pm_sampler **out, const struct pm_sampler_options *options,
                                       struct problem *problem);
/* Opens the device, and starts it if the sampler runs. The first result for a device is final. A device outside of
 * the mask is ignored (GPUFL_OK). Not from a CUPTI callback. */
NODISCARD gpufl_status pm_sampler_attach(struct pm_sampler *sampler, uint32_t device_id, struct problem *problem);
/* The same, done soon by the sampler's thread: any thread, also in a callback. Failures go to the log and to
 * pm_sampler_trouble. */
void pm_sampler_want(struct pm_sampler *sampler, uint32_t device_id);
NODISCARD gpufl_status pm_sampler_start(struct pm_sampler *sampler, struct problem *problem);
/* Collector thread: writes the samples decoded since the last call. Call it once more after stop. */
void pm_sampler_write(struct pm_sampler *sampler);
/* Takes the last samples and joins the thread. */
void pm_sampler_stop(struct pm_sampler *sampler);
bool pm_sampler_is_left(const struct pm_sampler *sampler); /* after stop: its thread hangs in CUPTI. NULL: no */
void pm_sampler_free(struct pm_sampler *sampler);          /* stops; NULL is a no-op */
void pm_sampler_abandon(struct pm_sampler *sampler);       /* after fork in the child */
/* The reason why a device failed, or could not be read once; false: there was none. */
bool pm_sampler_trouble(struct pm_sampler *sampler, struct problem *problem);
/* After the stop: GPUFL_OK, or the reason why there is not a single sample. */
NODISCARD gpufl_status pm_sampler_outcome(struct pm_sampler *sampler, struct problem *problem);
size_t pm_sampler_bytes(struct pm_sampler *sampler);
struct pm_sampler_totals pm_sampler_totals(const struct pm_sampler *sampler);

#endif
