/* SPDX-License-Identifier: Apache-2.0 */
/* PM sampling: the GPU itself writes its counters down at a fixed interval, for
 * the whole device and all processes on it; the host decodes what has gathered.
 * One object is one device with one configuration: another configuration wants
 * another object. One thread at a time per object; never from a CUPTI callback. */
#ifndef GPUFL_DRIVER_PM_SAMPLING_H
#define GPUFL_DRIVER_PM_SAMPLING_H

#include "driver/profiler_target.h"

enum { PM_INTERVAL_NS_MIN = 1000, PM_INTERVAL_NS_MAX = 1000000000 };

struct pm_sampling_options {
    uint32_t device_id;         /* CUDA ordinal */
    const char *const *metrics; /* borrowed until close; must fit into one pass */
    size_t metric_count;
    const bool *is_named; /* by metric, borrowed until open returns: the GPU must have it; NULL: all of them */
    int64_t interval_ns;
    size_t hardware_buffer_bytes; /* of the process's memory */
    uint32_t sample_capacity;     /* most samples that one decode can give */
    bool keeps_latest;            /* a full hardware buffer forgets its oldest samples, else it takes no more */
};

/* What was granted. */
struct pm_sampling_facts {
    char chip[PROFILER_CHIP_NAME_BYTES];
    bool has_time_trigger; /* else cycles of the system clock: the interval is nominal, it follows the clock */
    bool keeps_latest;     /* Turing cannot */
    size_t image_bytes;    /* of memory, for sample_capacity samples */
    uint64_t left_out;     /* bit i: this GPU does not have metric i */
};

struct pm_decode {
    size_t sample_count;
    bool is_full;        /* the capacity was reached: what did not fit is gone */
    bool has_overflowed; /* the hardware buffer was full: samples were not taken; without a sample there is never one
                          * again (an H200, whatever keeps_latest): close and open anew */
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
/* Takes what has gathered since the last decode; what that gave is gone. Works after stop, too. */
NODISCARD gpufl_status pm_sampling_decode(struct pm_sampling *sampling, struct pm_decode *decode,
                                          struct problem *problem);
/* Sample `index` of the last decode; values in the order of the metrics, NaN: left out, or the counters do not hold it. */
NODISCARD gpufl_status pm_sampling_read(struct pm_sampling *sampling, size_t index, struct pm_sample_time *time,
                                        double *values, struct problem *problem);
/* The counters of the last decode as profiler_host_evaluate takes them; the object's, until the next decode. */
const uint8_t *pm_sampling_image(const struct pm_sampling *sampling, size_t *bytes);
/* No more samples; those taken can still be decoded. Without effect unless started. */
void pm_sampling_stop(struct pm_sampling *sampling);
void pm_sampling_close(struct pm_sampling *sampling);   /* stops; NULL is a no-op */
void pm_sampling_abandon(struct pm_sampling *sampling); /* after fork in the child: frees our memory, calls nobody */

#endif
