/* SPDX-License-Identifier: Apache-2.0 */
/* PM sampling: the GPU itself records its counters at a fixed interval, for the whole device and all processes on
 * it; the host decodes the recorded samples. One object is one device with one configuration: another configuration
 * needs another object. One thread at a time per object; never from a CUPTI callback. */
#ifndef GPUFL_DRIVER_PM_SAMPLING_H
#define GPUFL_DRIVER_PM_SAMPLING_H

#include "driver/profiler_target.h"

enum { PM_INTERVAL_NS_MIN = 1000, PM_INTERVAL_NS_MAX = 1000000000 };

struct pm_sampling_options {
    uint32_t device_id;         /* CUDA ordinal */
    const char *const *metrics; /* borrowed until close; must fit in one pass */
    size_t metric_count;
    const bool *is_named; /* by metric, borrowed until open returns: the GPU must support it; NULL: all of them */
    int64_t interval_ns;
    size_t hardware_buffer_bytes; /* allocated from process memory */
    uint32_t sample_capacity;     /* maximum number of samples per decode */
    bool keeps_latest;            /* a full hardware buffer drops its oldest samples; false: the new ones */
};

/* What was granted. */
struct pm_sampling_facts {
    char chip[PROFILER_CHIP_NAME_BYTES];
    bool has_time_trigger; /* otherwise cycles of the system clock: the interval is nominal and varies with the clock */
    bool keeps_latest;     /* not supported on Turing */
    size_t image_bytes;    /* of memory, for sample_capacity samples */
    uint64_t left_out;     /* bit i: this GPU does not support metric i */
};

struct pm_decode {
    size_t sample_count;
    bool is_full;        /* the capacity was reached: samples that did not fit are lost */
    bool has_overflowed; /* the hardware buffer was full and samples were lost; if the decode returned none, none
                          * will ever come (on an H200, with either keeps_latest): close and open again */
};

struct pm_sample_time {
    int64_t start_ns, end_ns; /* CUPTI's clock; not checked: the first may be 0 or from another time */
};

struct pm_sampling; /* opaque */

/* GPUFL_E_INVALID: a metric or the interval; GPUFL_E_LIMIT: the metrics need more than one pass, and how many;
 * otherwise as profiler_problem. The GPU does not sample yet. */
NODISCARD gpufl_status pm_sampling_open(struct pm_sampling **out, struct cupti *cupti,
                                        const struct pm_sampling_options *options, struct problem *problem);
const struct pm_sampling_facts *pm_sampling_facts(const struct pm_sampling *sampling);
NODISCARD gpufl_status pm_sampling_start(struct pm_sampling *sampling, struct problem *problem);
/* Decodes the samples recorded since the last decode, whose samples are discarded. Works after stop, too. */
NODISCARD gpufl_status pm_sampling_decode(struct pm_sampling *sampling, struct pm_decode *decode,
                                          struct problem *problem);
/* Sample `index` of the last decode; values in the order of the metrics, NaN: left out, or not in the counters. */
NODISCARD gpufl_status pm_sampling_read(struct pm_sampling *sampling, size_t index, struct pm_sample_time *time,
                                        double *values, struct problem *problem);
/* The counters of the last decode in the form that profiler_host_evaluate takes; owned by the object, valid until
 * the next decode. */
const uint8_t *pm_sampling_image(const struct pm_sampling *sampling, size_t *bytes);
/* No more samples; earlier ones can still be decoded. A no-op unless started. */
void pm_sampling_stop(struct pm_sampling *sampling);
void pm_sampling_close(struct pm_sampling *sampling);   /* stops; NULL is a no-op */
void pm_sampling_abandon(struct pm_sampling *sampling); /* after fork in the child: frees our memory, calls no
                                                         * library */

#endif
