/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/pm_device.h"

#include "base/clock.h"
#include "base/log.h"
#include "driver/metric_sets.h"

enum {
    period_ns_min = 1000000,
    sample_capacity_min = 64,
    sample_capacity_max = 1024, /* an image needs 15 to 40 KiB per sample */
    /* CUPTI does not report the size of a raw sample. Nine metrics on an H200: 40 KiB decoded, and a hardware buffer
     * of 32 MiB was full after about 225 samples. */
    raw_per_decoded = 4,
    /* A decode takes 0.04 ms per sample while the GPU is idle and up to 0.7 ms while it is busy, so at 1 ms almost
     * as many samples arrive meanwhile: a late or slow decode doubles the next one, and three times that must fit. */
    periods_held_min = 8,
    image_periods_min = 2, /* samples that do not fit in the image are lost: one decode may be late by a period */
    late_periods = 4,      /* of the longest period, which the image holds if the limit allows it */
    first_intervals_max = 3,
    full_rounds_max = 4,
    failures_max = 3, /* consecutive failed decodes before the device is reopened */
    rebuilds_max = 3, /* without a sample in between */
    calm_shift = 6,   /* after a failure the period grows back by 1/64 per decode */
    clock_slack_ns = 1000000000
};

uint32_t pm_feed_capacity(int64_t interval_ns)
{
    int64_t capacity = late_periods * (int64_t)PM_PERIOD_NS_MAX / interval_ns;
    capacity = capacity < sample_capacity_max ? capacity : sample_capacity_max;
    return (uint32_t)(capacity > sample_capacity_min ? capacity : sample_capacity_min);
}

void pm_feed_pace(struct pm_feed *feed, const struct pm_sampling_facts *facts)
{
    size_t raw_bytes = raw_per_decoded * (facts->image_bytes / feed->options.sample_capacity + 1);
    size_t samples = feed->options.hardware_buffer_bytes / raw_bytes / periods_held_min;
    size_t image_samples = feed->options.sample_capacity / image_periods_min;
    samples = samples < image_samples ? samples : image_samples;
    int64_t period_ns = (int64_t)samples * feed->options.interval_ns;
    period_ns = period_ns < PM_PERIOD_NS_MAX ? period_ns : PM_PERIOD_NS_MAX;
    period_ns = period_ns > period_ns_min ? period_ns : period_ns_min;
    if (!feed->quiet_period_ns || period_ns < feed->quiet_period_ns)
        feed->period_ns = feed->quiet_period_ns = period_ns;
}

static void hurry(struct pm_feed *feed)
{
    int64_t half_ns = feed->period_ns / 2;
    feed->period_ns = half_ns > period_ns_min ? half_ns : period_ns_min;
}

static void calm(struct pm_feed *feed)
{
    int64_t longer_ns = feed->period_ns + (feed->period_ns >> calm_shift);
    feed->period_ns = longer_ns < feed->quiet_period_ns ? longer_ns : feed->quiet_period_ns;
}

static void add(_Atomic uint64_t *total, uint64_t count)
{
    atomic_fetch_add_explicit(total, count, memory_order_relaxed);
}

void pm_feed_lose(struct pm_feed *feed, _Atomic uint64_t *total, enum loss_reason reason, uint64_t count)
{
    add(total, count);
    recorder_lose(feed->recorder, reason, count);
}

gpufl_status pm_device_start(struct pm_device *device)
{
    device->started_ns = clock_log_ns();
    device->read_mono_ns = clock_mono_ns();
    device->may_reach_back = true;
    device->status = pm_sampling_start(device->sampling, &device->problem);
    if (device->status != GPUFL_OK)
        pm_device_close(device);
    return device->status;
}

gpufl_status pm_device_open(struct pm_device *device, struct pm_feed *feed)
{
    struct pm_sampling_options options = feed->options;
    options.device_id = device->device_id;
    device->status = pm_sampling_open(&device->sampling, feed->cupti, &options, &device->problem);
    if (device->status == GPUFL_OK && feed->is_running)
        (void)!pm_device_start(device);
    return device->status;
}

void pm_device_close(struct pm_device *device)
{
    pm_sampling_close(device->sampling);
    device->sampling = NULL;
}

/* Whether time and order of a sample are plausible. */
static bool time_is_possible(const struct pm_device *device, const struct pm_sample_time *time, int64_t now_ns)
{
    return time->start_ns > device->last_start_ns && time->end_ns > time->start_ns &&
           time->start_ns > device->started_ns - clock_slack_ns && time->end_ns < now_ns + clock_slack_ns;
}

/* The first sample after a start has no time, or starts when the counters were set up; the first after a full image
 * was seen to begin two seconds too early. Its counts may not belong to its interval. */
static bool first_is_usable(const struct pm_device *device, const struct pm_sample_time *time, int64_t interval_ns)
{
    return !pm_sampling_facts(device->sampling)->has_time_trigger ||
           time->end_ns - time->start_ns <= first_intervals_max * interval_ns;
}

/* Intervals between the last sample and this one without a sample. */
static uint64_t intervals_missed(const struct pm_device *device, const struct pm_sample_time *time, int64_t interval_ns)
{
    int64_t length_ns = time->end_ns - time->start_ns; /* the intervals of the system clock vary with the clock */
    length_ns = length_ns > interval_ns ? length_ns : interval_ns;
    int64_t gap_ns = device->last_end_ns ? time->start_ns - device->last_end_ns : 0;
    return gap_ns >= length_ns ? (uint64_t)((gap_ns + length_ns / 2) / length_ns) : 0;
}

static void sample_push(struct pm_device *device, struct pm_feed *feed, int64_t start_ns, const double *values)
{
    size_t values_bytes = feed->options.metric_count * sizeof *values;
    struct ring_record *record = ring_reserve(&feed->ring, sizeof(struct pm_ring_sample) + values_bytes, 0);
    uint32_t index = device->next_index++;
    if (!record) {
        pm_feed_lose(feed, &feed->queue_lost, LOSS_PM_QUEUE, 1);
        return;
    }
    struct pm_ring_sample *sample = (struct pm_ring_sample *)(void *)record;
    sample->start_ns = start_ns;
    sample->device_id = device->device_id;
    sample->index = index;
    sample->left_out = pm_sampling_facts(device->sampling)->left_out;
    memcpy(sample->values, values, values_bytes);
    ring_commit(&feed->ring, record);
    add(&feed->samples, 1);
}

/* CUPTI stamps with the wall clock; false: the clock was set at that moment, so the time cannot be converted. */
static bool time_to_log(struct pm_sample_time *time)
{
    bool is_start_certain, is_end_certain;
    time->start_ns = clock_log_of_wall_ns(time->start_ns, INT64_MIN, &is_start_certain);
    time->end_ns = clock_log_of_wall_ns(time->end_ns, time->start_ns, &is_end_certain);
    return is_start_certain && is_end_certain;
}

static gpufl_status sample_take(struct pm_device *device, struct pm_feed *feed, size_t index, int64_t now_ns)
{
    struct pm_sample_time time;
    double values[METRICS_MAX];
    gpufl_status status = pm_sampling_read(device->sampling, index, &time, values, &device->problem);
    if (status != GPUFL_OK)
        return status;
    bool is_certain = time_to_log(&time);
    bool is_first = device->may_reach_back;
    device->may_reach_back = false;
    bool is_possible = is_certain && time_is_possible(device, &time, now_ns);
    if (is_first && !(is_possible && first_is_usable(device, &time, feed->options.interval_ns))) {
        add(&feed->first_dropped, 1); /* if there was a sample before, its interval is counted as missing */
        return GPUFL_OK;
    }
    if (!is_possible) {
        device->timeless++;
        pm_feed_lose(feed, &feed->bad_time, LOSS_PM_BAD_TIME, 1);
        return GPUFL_OK;
    }
    uint64_t missed = intervals_missed(device, &time, feed->options.interval_ns);
    if (missed > device->timeless) {
        pm_feed_lose(feed, &feed->missed, LOSS_PM_GAP, missed - device->timeless);
        hurry(feed);
    }
    device->timeless = 0;
    device->last_start_ns = time.start_ns;
    device->last_end_ns = time.end_ns;
    sample_push(device, feed, time.start_ns, values);
    return GPUFL_OK;
}

/* An unreadable sample does not invalidate the others; the decode fails only if there are no others. */
static gpufl_status samples_take(struct pm_device *device, struct pm_feed *feed, size_t count)
{
    bool is_certain;
    clock_notice_step();
    int64_t now_ns = cupti_now_ns(feed->cupti);
    now_ns = now_ns ? clock_log_of_wall_ns(now_ns, INT64_MIN, &is_certain) : clock_log_ns();
    size_t unread = 0;
    gpufl_status status = GPUFL_OK;
    for (size_t i = 0; i < count; i++) {
        gpufl_status read = sample_take(device, feed, i, now_ns);
        if (read == GPUFL_OK)
            continue;
        status = read;
        unread++;
        device->timeless++; /* its interval is not counted again */
    }
    if (unread == count) {
        device->timeless -= unread;
        return status;
    }
    if (!unread)
        return GPUFL_OK;
    uint64_t values = unread * feed->options.metric_count;
    add(&feed->no_values, values);
    recorder_lose_because(feed->recorder, LOSS_PM_NO_VALUE, values, device->problem.text);
    return GPUFL_OK;
}

/* Logs why samples are missing: device->problem. */
static void device_tell(struct pm_device *device, struct pm_feed *feed)
{
    add(&feed->overflows, 1);
    recorder_lose_because(feed->recorder, LOSS_PM_OVERFLOW, 1, device->problem.text);
    if (!device->has_failed)
        log_message(GPUFL_LOG_WARNING, "PM samples of device %u are missing: %s", device->device_id,
                    device->problem.text);
    device->has_failed = true;
}

/* Replaces a CUPTI object that is no longer usable. The times of the last sample are kept: what is missing since
 * becomes the next sample's gap. */
static void device_rebuild(struct pm_device *device, struct pm_feed *feed, gpufl_status cause)
{
    device->failures = 0;
    pm_device_close(device);
    if (++device->rebuilds > rebuilds_max)
        device->status = cause;
    else if (feed->is_running)
        (void)!pm_device_open(device, feed); /* the device keeps the status */
}

/* Handles a failed decode. CUPTI may have lost its object: after a few failures a new one is created. */
static void device_recover(struct pm_device *device, struct pm_feed *feed, gpufl_status cause)
{
    device_tell(device, feed);
    if (++device->failures == failures_max)
        device_rebuild(device, feed, cause);
}

/* The hardware buffer was full and returned nothing, and never will again, in either mode. */
static void device_revive(struct pm_device *device, struct pm_feed *feed, int64_t since_read_ns)
{
    size_t bytes = feed->options.hardware_buffer_bytes;
    bool is_mib = bytes % (1 << 20) == 0;
    gpufl_status cause = problem_set(
        &device->problem, GPUFL_E_LIMIT, "the hardware buffer of %zu %s was full %lld ms after the last read",
        is_mib ? bytes >> 20 : bytes, is_mib ? "MiB" : "bytes", (long long)(since_read_ns / 1000000));
    device_tell(device, feed);
    hurry(feed);
    device_rebuild(device, feed, cause);
}

void pm_device_decode(struct pm_device *device, struct pm_feed *feed)
{
    struct pm_decode decode;
    unsigned rounds = 0;
    do {
        int64_t begin_ns = clock_mono_ns(), since_read_ns = begin_ns - device->read_mono_ns;
        gpufl_status status = pm_sampling_decode(device->sampling, &decode, &device->problem);
        if (status == GPUFL_OK && decode.has_overflowed && !decode.sample_count) {
            device_revive(device, feed, since_read_ns);
            return;
        }
        if (status == GPUFL_OK)
            status = samples_take(device, feed, decode.sample_count);
        if (status != GPUFL_OK) {
            device_recover(device, feed, status);
            return;
        }
        device->read_mono_ns = begin_ns;
        if (decode.has_overflowed)
            pm_feed_lose(feed, &feed->overflows, LOSS_PM_OVERFLOW, 1);
        if (decode.has_overflowed || decode.is_full)
            hurry(feed);
        else
            calm(feed);
        device->may_reach_back |= decode.is_full;
        device->failures = 0;
        if (decode.sample_count)
            device->rebuilds = 0;
    } while (decode.is_full && decode.sample_count && ++rounds < full_rounds_max);
}
