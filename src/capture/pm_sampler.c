/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/pm_sampler.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/own_thread.h"
#include "base/stages.h"
#include "base/watch.h"
#include "capture/pm_device.h"
#include "format/json.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

enum {
    interval_us_default = 1000,
    /* Allocated from process memory. Nine metrics at 1 ms fill it in 0.4 s; CUPTI does not recover from a full
     * buffer. */
    hardware_buffer_bytes_default = 64 << 20,
    ring_bytes = 8 << 20,
    wanted_max = 64 /* bits of a mask */
};

static const int64_t join_wait_ns =
    10 * INT64_C(1000000000); /* without a session's limit; a decode takes milliseconds */

/* What the collector writes about a device; filled in before is_ready. */
struct pm_config {
    uint32_t device_id;
    bool has_time_trigger;
    uint64_t left_out; /* bit i: this device does not support metric i */
    bool is_written;   /* the collector's */
    _Atomic bool is_ready;
};

struct pm_sampler {
    struct names *names; /* borrowed */
    struct metric_choice choice;
    uint64_t device_mask;

    pthread_mutex_t feed_mutex; /* guards feed and devices, except the collector's end of the ring */
    struct pm_feed feed;
    struct pm_device devices[PM_DEVICES_MAX];
    uint32_t device_count;
    struct pm_config configs[PM_DEVICES_MAX];

    pthread_mutex_t wake_mutex; /* guards wanted and is_stopping; held for moments only */
    pthread_cond_t wake;
    uint64_t wanted;
    bool is_stopping;

    pthread_t thread;
    bool has_thread, has_metric_ids, is_left;
    uint32_t metric_ids[METRICS_MAX]; /* the collector's */
    _Atomic uint32_t devices_used, devices_failed;
    _Atomic int64_t cpu_ns;
};

static struct pm_device *device_find(struct pm_sampler *sampler, uint32_t device_id)
{
    for (uint32_t i = 0; i < sampler->device_count; i++)
        if (sampler->devices[i].device_id == device_id)
            return &sampler->devices[i];
    return NULL;
}

/* Call with feed_mutex held and room for one more. */
static struct pm_device *device_add(struct pm_sampler *sampler, uint32_t device_id)
{
    uint32_t slot = sampler->device_count++;
    struct pm_device *device = &sampler->devices[slot];
    device->device_id = device_id;
    atomic_fetch_add(&sampler->devices_used, 1);
    if (pm_device_open(device, &sampler->feed) != GPUFL_OK) {
        atomic_fetch_add(&sampler->devices_failed, 1);
        return device;
    }
    const struct pm_sampling_facts *facts = pm_sampling_facts(device->sampling);
    pm_feed_pace(&sampler->feed, facts);
    sampler->configs[slot].device_id = device_id;
    sampler->configs[slot].has_time_trigger = facts->has_time_trigger;
    sampler->configs[slot].left_out = facts->left_out;
    atomic_store(&sampler->configs[slot].is_ready, true);
    return device;
}

gpufl_status pm_sampler_attach(struct pm_sampler *sampler, uint32_t device_id, struct problem *problem)
{
    if (sampler->device_mask && (device_id >= wanted_max || !(sampler->device_mask >> device_id & 1)))
        return GPUFL_OK;
    gpufl_status status;
    pthread_mutex_lock(&sampler->feed_mutex);
    struct pm_device *device = device_find(sampler, device_id);
    if (!device && sampler->device_count == PM_DEVICES_MAX)
        status = problem_set(problem, GPUFL_E_LIMIT, "PM sampling takes at most %d devices", PM_DEVICES_MAX);
    else {
        if (!device)
            device = device_add(sampler, device_id);
        status = device->status;
        if (status != GPUFL_OK && problem)
            *problem = device->problem;
    }
    pthread_mutex_unlock(&sampler->feed_mutex);
    return status;
}

void pm_sampler_want(struct pm_sampler *sampler, uint32_t device_id)
{
    if (device_id >= wanted_max)
        return;
    pthread_mutex_lock(&sampler->wake_mutex);
    sampler->wanted |= UINT64_C(1) << device_id;
    pthread_cond_signal(&sampler->wake);
    pthread_mutex_unlock(&sampler->wake_mutex);
}

static void complain(uint32_t device_id, const struct problem *problem)
{
    log_message(GPUFL_LOG_WARNING, "no PM sampling of device %u: %s", device_id, problem->text);
}

static void attach_wanted(struct pm_sampler *sampler, uint64_t wanted)
{
    for (uint32_t device_id = 0; wanted; device_id++, wanted >>= 1) {
        struct problem problem = {""};
        if (wanted & 1 && pm_sampler_attach(sampler, device_id, &problem) != GPUFL_OK)
            complain(device_id, &problem);
    }
}

/* Sleeps for a period, or until a device is wanted; false: stop. */
static bool wait_for_work(struct pm_sampler *sampler, int64_t period_ns, uint64_t *wanted)
{
    int64_t deadline_ns = clock_mono_ns() + period_ns;
    struct timespec deadline = {deadline_ns / 1000000000, deadline_ns % 1000000000};
    pthread_mutex_lock(&sampler->wake_mutex);
    while (!sampler->is_stopping && !sampler->wanted &&
           pthread_cond_timedwait(&sampler->wake, &sampler->wake_mutex, &deadline) == 0) {
    }
    *wanted = sampler->wanted;
    sampler->wanted = 0;
    bool goes_on = !sampler->is_stopping;
    pthread_mutex_unlock(&sampler->wake_mutex);
    return goes_on;
}

/* One round over all devices; returns how long to wait for the next one. */
static int64_t decode_all(struct pm_sampler *sampler, bool is_last)
{
    pthread_mutex_lock(&sampler->feed_mutex);
    bool was_running = sampler->feed.is_running;
    sampler->feed.is_running &= !is_last;
    for (uint32_t i = 0; i < sampler->device_count; i++) {
        struct pm_device *device = &sampler->devices[i];
        if (!device->sampling)
            continue;
        if (is_last)
            pm_sampling_stop(device->sampling);
        if (was_running)
            pm_device_decode(device, &sampler->feed);
        if (is_last)
            pm_device_close(device);
        if (device->status != GPUFL_OK) {
            atomic_fetch_add(&sampler->devices_failed, 1);
            complain(device->device_id, &device->problem);
        }
    }
    int64_t period_ns = sampler->feed.period_ns;
    pthread_mutex_unlock(&sampler->feed_mutex);
    return period_ns;
}

static void *sampler_main(void *argument)
{
    struct pm_sampler *sampler = argument;
    uint64_t wanted = 0;
    int64_t period_ns = 0;
    while (wait_for_work(sampler, period_ns, &wanted)) {
        attach_wanted(sampler, wanted);
        period_ns = decode_all(sampler, false);
        atomic_store(&sampler->cpu_ns, clock_thread_cpu_ns());
    }
    (void)decode_all(sampler, true);
    atomic_store(&sampler->cpu_ns, clock_thread_cpu_ns());
    return NULL;
}

gpufl_status pm_sampler_make(struct pm_sampler **out, const struct pm_sampler_options *options, struct problem *problem)
{
    struct pm_sampler *sampler = calloc(1, sizeof *sampler);
    uint8_t *ring_data = malloc(ring_bytes);
    if (!sampler || !ring_data) {
        free(sampler);
        free(ring_data);
        return problem_set(problem, GPUFL_E_NO_MEMORY, "not enough memory for PM sampling");
    }
    int64_t interval_ns = (int64_t)(options->interval_us ? options->interval_us : interval_us_default) * 1000;
    metric_choice_copy(&sampler->choice, options->choice);
    sampler->names = options->names;
    sampler->device_mask = options->device_mask;
    sampler->feed.cupti = options->cupti;
    sampler->feed.recorder = options->recorder;
    sampler->feed.options = (struct pm_sampling_options){
        .metrics = sampler->choice.list,
        .metric_count = sampler->choice.count,
        .is_named = sampler->choice.is_named,
        .interval_ns = interval_ns,
        .hardware_buffer_bytes =
            options->hardware_buffer_bytes ? options->hardware_buffer_bytes : hardware_buffer_bytes_default,
        .sample_capacity = pm_feed_capacity(interval_ns),
        .keeps_latest = !options->keeps_oldest,
    };
    sampler->feed.ring.data = ring_data;
    sampler->feed.ring.capacity = ring_bytes;
    sampler->feed.period_ns = PM_PERIOD_NS_MAX;
    pthread_mutex_init(&sampler->feed_mutex, NULL);
    pthread_mutex_init(&sampler->wake_mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&sampler->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    *out = sampler;
    return GPUFL_OK;
}

static void start_devices(struct pm_sampler *sampler)
{
    pthread_mutex_lock(&sampler->feed_mutex);
    sampler->feed.is_running = true;
    for (uint32_t i = 0; i < sampler->device_count; i++) {
        struct pm_device *device = &sampler->devices[i];
        if (!device->sampling || pm_device_start(device) == GPUFL_OK)
            continue;
        atomic_fetch_add(&sampler->devices_failed, 1);
        complain(device->device_id, &device->problem);
    }
    pthread_mutex_unlock(&sampler->feed_mutex);
}

gpufl_status pm_sampler_start(struct pm_sampler *sampler, struct problem *problem)
{
    start_devices(sampler);
    sampler->has_thread = own_thread_start(&sampler->thread, "gpufl-pm", OWN_THREAD_STACK_LARGE, sampler_main, sampler);
    if (!sampler->has_thread) {
        (void)decode_all(sampler, true);
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no thread for PM sampling");
    }
    return GPUFL_OK;
}

/* Appends the names whose bit is set. */
static void append_metrics(const struct pm_sampler *sampler, uint64_t wanted, struct bytes *line)
{
    size_t count = 0;
    bytes_append_char(line, '[');
    for (size_t i = 0; i < sampler->choice.count; i++) {
        if (!(wanted >> i & 1))
            continue;
        if (count++)
            bytes_append_char(line, ',');
        json_text(line, sampler->choice.list[i]);
    }
    bytes_append_char(line, ']');
}

static void write_config(struct pm_sampler *sampler, const struct pm_config *config)
{
    struct recorder *recorder = sampler->feed.recorder;
    const struct pm_sampling_options *options = &sampler->feed.options;
    struct bytes *line = recorder_begin(recorder, RECORD_PM_SAMPLING_CONFIG);
    bytes_append_format(line, ",\"ts_ns\":%lld,\"device_id\":%u,\"interval_us\":%lld,\"max_samples\":%u",
                        (long long)clock_log_ns(), config->device_id, (long long)(options->interval_ns / 1000),
                        options->sample_capacity);
    json_key(line, "preset");
    json_text(line, sampler->choice.name);
    json_key(line, "metrics");
    append_metrics(sampler, ~config->left_out, line);
    json_key(line, "skipped_metrics");
    append_metrics(sampler, config->left_out, line);
    bytes_append_format(line, ",\"hardware_buffer_bytes\":%zu,\"trigger\":\"%s\"", options->hardware_buffer_bytes,
                        config->has_time_trigger ? "time" : "sysclk");
    recorder_end(recorder, RECORD_PM_SAMPLING_CONFIG);
}

static void write_sample(struct pm_sampler *sampler, const struct pm_ring_sample *sample)
{
    struct pm_feed *feed = &sampler->feed;
    for (size_t i = 0; i < sampler->choice.count; i++) {
        if (sample->left_out >> i & 1)
            continue;
        if (!isfinite(sample->values[i])) {
            pm_feed_lose(feed, &feed->no_values, LOSS_PM_NO_VALUE, 1);
            continue;
        }
        int64_t *row = recorder_row(feed->recorder, RECORD_PM_SAMPLE_BATCH, sample->start_ns);
        row[PM_SAMPLE_SAMPLE_INDEX] = sample->index;
        row[PM_SAMPLE_DEVICE_ID] = sample->device_id;
        row[PM_SAMPLE_METRIC_ID] = sampler->metric_ids[i];
        memcpy(&row[PM_SAMPLE_VALUE], &sample->values[i], sizeof row[PM_SAMPLE_VALUE]);
        atomic_fetch_add_explicit(&feed->values, 1, memory_order_relaxed);
    }
}

void pm_sampler_write(struct pm_sampler *sampler)
{
    for (size_t i = 0; !sampler->has_metric_ids && i < sampler->choice.count; i++)
        sampler->metric_ids[i] = names_metric(sampler->names, sampler->choice.list[i]);
    sampler->has_metric_ids = true;
    for (uint32_t i = 0; i < PM_DEVICES_MAX; i++) {
        struct pm_config *config = &sampler->configs[i];
        if (config->is_written || !atomic_load(&config->is_ready))
            continue;
        write_config(sampler, config);
        config->is_written = true;
    }
    const struct ring_record *record;
    while ((record = ring_peek(&sampler->feed.ring))) {
        write_sample(sampler, (const struct pm_ring_sample *)(const void *)record);
        ring_release(&sampler->feed.ring, record);
    }
}

void pm_sampler_stop(struct pm_sampler *sampler)
{
    if (sampler->is_left)
        return;
    if (!sampler->has_thread) {
        (void)decode_all(sampler, true);
        return;
    }
    pthread_mutex_lock(&sampler->wake_mutex);
    sampler->is_stopping = true;
    pthread_cond_signal(&sampler->wake);
    pthread_mutex_unlock(&sampler->wake_mutex);
    const char *call;
    int64_t until_ns = stages_until_ns(join_wait_ns);
    sampler->has_thread = false;
    if (watch_join(sampler->thread, until_ns, until_ns, &call) == WATCH_ENDED)
        return;
    sampler->is_left = true; /* its thread may still use it */
    cupti_trace_damaged(CUPTI_STUCK);
    pm_feed_lose(&sampler->feed, &sampler->feed.overflows, LOSS_PM_OVERFLOW, 1);
}

bool pm_sampler_is_left(const struct pm_sampler *sampler)
{
    return sampler && sampler->is_left;
}

static void release(struct pm_sampler *sampler)
{
    free(sampler->feed.ring.data);
    free(sampler);
}

void pm_sampler_free(struct pm_sampler *sampler)
{
    if (!sampler)
        return;
    pm_sampler_stop(sampler);
    if (sampler->is_left)
        return;
    pthread_cond_destroy(&sampler->wake);
    pthread_mutex_destroy(&sampler->wake_mutex);
    pthread_mutex_destroy(&sampler->feed_mutex);
    release(sampler);
}

void pm_sampler_abandon(struct pm_sampler *sampler)
{
    if (!sampler)
        return;
    for (uint32_t i = 0; i < PM_DEVICES_MAX; i++)
        pm_sampling_abandon(sampler->devices[i].sampling);
    release(sampler);
}

bool pm_sampler_trouble(struct pm_sampler *sampler, struct problem *problem)
{
    bool is_found = false;
    if (pthread_mutex_trylock(&sampler->feed_mutex)) /* its thread is in CUPTI, perhaps forever: try again later */
        return false;
    for (uint32_t i = 0; i < sampler->device_count && !is_found; i++) {
        is_found = sampler->devices[i].status != GPUFL_OK || sampler->devices[i].has_failed;
        if (is_found)
            *problem = sampler->devices[i].problem;
    }
    pthread_mutex_unlock(&sampler->feed_mutex);
    return is_found;
}

gpufl_status pm_sampler_outcome(struct pm_sampler *sampler, struct problem *problem)
{
    if (atomic_load(&sampler->feed.samples))
        return GPUFL_OK;
    if (pm_sampler_trouble(sampler, problem))
        return GPUFL_E_UNSUPPORTED;
    const struct pm_feed *feed = &sampler->feed;
    uint64_t unusable = atomic_load(&feed->bad_time) + atomic_load(&feed->queue_lost);
    if (unusable)
        return problem_set(problem, GPUFL_E_UNSUPPORTED, "none of the %llu samples could be used",
                           (unsigned long long)unusable);
    return problem_set(problem, GPUFL_E_NOT_RUNNING, "the program ended before the first sample");
}

size_t pm_sampler_bytes(struct pm_sampler *sampler)
{
    size_t bytes = sizeof *sampler + ring_bytes;
    if (pthread_mutex_trylock(&sampler->feed_mutex)) /* a brief error is better than waiting for CUPTI */
        return bytes;
    for (uint32_t i = 0; i < sampler->device_count; i++)
        if (sampler->devices[i].sampling)
            bytes += pm_sampling_facts(sampler->devices[i].sampling)->image_bytes +
                     sampler->feed.options.hardware_buffer_bytes;
    pthread_mutex_unlock(&sampler->feed_mutex);
    return bytes;
}

struct pm_sampler_totals pm_sampler_totals(const struct pm_sampler *sampler)
{
    const struct pm_feed *feed = &sampler->feed;
    return (struct pm_sampler_totals){
        .samples = atomic_load(&feed->samples),
        .values = atomic_load(&feed->values),
        .first_dropped = atomic_load(&feed->first_dropped),
        .bad_time = atomic_load(&feed->bad_time),
        .missed = atomic_load(&feed->missed),
        .overflows = atomic_load(&feed->overflows),
        .queue_lost = atomic_load(&feed->queue_lost),
        .no_values = atomic_load(&feed->no_values),
        .devices = atomic_load(&sampler->devices_used),
        .devices_failed = atomic_load(&sampler->devices_failed),
        .cpu_ns = atomic_load(&sampler->cpu_ns),
    };
}
