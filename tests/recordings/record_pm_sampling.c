/* SPDX-License-Identifier: Apache-2.0 */
/* Records counters of PM sampling on a machine with a GPU, together with the
 * values they gave there. It is built with the tests, which run it against the
 * look-alike; on the machine with the GPU:
 *
 *   record_pm_sampling h200_pm.pmrec [metrics] [interval_us]
 *
 * metrics: as GPUFL_PM_METRICS, three by default, for the file's size. The
 * program keeps the memory of device 0 busy while it samples, for some seconds
 * at most. README.md describes the file. */
#include "driver/cuda.h"
#include "driver/metric_sets.h"
#include "driver/pm_sampling.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CAPACITY = 8, /* samples of an image */
    CAPACITY_MIN = 3,
    IMAGE_BYTES_MAX = 200 << 10, /* a sample takes up to 40 KiB, and the file is kept with the sources */
    WORK_BYTES = 256 << 20,
    HARDWARE_BUFFER_BYTES = 64 << 20,
    INTERVAL_US = 2000, /* decoding takes up to 0.7 ms a sample while the GPU is busy */
    LENGTH_MAX = 3,     /* intervals: a first sample reaches back */
    FORMAT_VERSION = 1,
    TRIES_MAX = 300,
    REOPENS_MAX = 5
};

#define PCT_ELAPSED ".avg.pct_of_peak_sustained_elapsed"
static const char metrics_default[] =
    "gr__cycles_active" PCT_ELAPSED ",sm__cycles_active" PCT_ELAPSED ",dram__write_throughput" PCT_ELAPSED;

/* What the decodes gave, for the message when none was good. */
struct tally {
    unsigned decodes, empty, full, overflowed, untimely, idle;
};

static atomic_bool is_over;

static _Noreturn void die(const char *what, const char *why)
{
    fprintf(stderr, "record_pm_sampling: %s: %s\n", what, why);
    exit(1);
}

/* Writes device memory over and over. */
static void *work(void *argument)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *context = NULL;
    int (*retain)(void **, int), (*set_current)(void *), (*allocate)(uint64_t *, size_t);
    int (*fill)(uint64_t, unsigned char, size_t, void *), (*synchronize)(void);
    (void)argument;
    *(void **)&retain = dlsym(driver, "cuDevicePrimaryCtxRetain");
    *(void **)&set_current = dlsym(driver, "cuCtxSetCurrent");
    *(void **)&allocate = dlsym(driver, "cuMemAlloc_v2");
    *(void **)&fill = dlsym(driver, "cuMemsetD8Async");
    *(void **)&synchronize = dlsym(driver, "cuCtxSynchronize");
    uint64_t memory = 0;
    if (retain(&context, 0) || set_current(context) || allocate(&memory, WORK_BYTES))
        die("device memory", "CUDA refused it");
    while (!atomic_load(&is_over))
        if (fill(memory, 1, WORK_BYTES, NULL) || synchronize())
            die("cuMemsetD8Async", "failed");
    return NULL;
}

static void put(FILE *out, const void *bytes, size_t size)
{
    if (fwrite(bytes, 1, size, out) != size)
        die("writing", "failed");
}

static void put_u32(FILE *out, size_t value)
{
    uint32_t narrow = (uint32_t)value;
    put(out, &narrow, sizeof narrow);
}

/* A row of the file; values only of the metrics that the GPU has. */
struct sample {
    struct pm_sample_time time;
    double values[METRICS_MAX];
};

static void samples_read(struct pm_sampling *sampling, struct sample *samples, size_t count)
{
    struct problem problem = {""};
    for (size_t i = 0; i < count; i++)
        if (pm_sampling_read(sampling, i, &samples[i].time, samples[i].values, &problem) != GPUFL_OK)
            die("sample", problem.text);
}

/* Whether they follow each other at the interval, and the GPU had work. */
static bool samples_are_good(const struct sample *samples, size_t count, const struct pm_sampling_options *options,
                             struct tally *tally)
{
    bool is_busy = false;
    for (size_t i = 0; i < count; i++) {
        const struct pm_sample_time *time = &samples[i].time;
        int64_t length_ns = time->end_ns - time->start_ns;
        if (time->start_ns <= 0 || length_ns <= 0 || length_ns > LENGTH_MAX * options->interval_ns ||
            (i && time->start_ns < samples[i - 1].time.end_ns)) {
            tally->untimely++;
            return false;
        }
        for (size_t m = 0; m < options->metric_count; m++)
            is_busy |= samples[i].values[m] > 0;
    }
    tally->idle += !is_busy;
    return is_busy;
}

static struct pm_sampling *sampling_open(struct cupti *cupti, struct pm_sampling_options *options)
{
    struct problem problem = {""};
    struct pm_sampling *sampling;
    if (pm_sampling_open(&sampling, cupti, options, &problem) != GPUFL_OK)
        die("PM sampling", problem.text);
    size_t image_bytes = pm_sampling_facts(sampling)->image_bytes;
    if (image_bytes > IMAGE_BYTES_MAX && options->sample_capacity > CAPACITY_MIN) {
        options->sample_capacity--;
        pm_sampling_close(sampling);
        return sampling_open(cupti, options);
    }
    if (pm_sampling_start(sampling, &problem) != GPUFL_OK)
        die("PM sampling", problem.text);
    return sampling;
}

/* Decodes until there is an image to keep; returns how many samples it has. */
static size_t sampling_wait(struct pm_sampling **sampling, struct cupti *cupti, struct pm_sampling_options *options,
                            struct sample *samples)
{
    struct problem problem = {""};
    struct tally tally = {0};
    unsigned reopens = 0;
    while (tally.decodes < TRIES_MAX && reopens <= REOPENS_MAX) {
        struct pm_decode decode;
        usleep((useconds_t)(options->sample_capacity * options->interval_ns / 2000));
        if (pm_sampling_decode(*sampling, &decode, &problem) != GPUFL_OK)
            die("decode", problem.text);
        tally.decodes++;
        tally.empty += decode.sample_count < 2;
        tally.full += decode.is_full;
        tally.overflowed += decode.has_overflowed;
        if (decode.has_overflowed && !decode.sample_count) { /* there will never be one again */
            pm_sampling_close(*sampling);
            *sampling = sampling_open(cupti, options);
            reopens++;
        }
        if (decode.sample_count < 2)
            continue;
        samples_read(*sampling, samples, decode.sample_count);
        if (samples_are_good(samples, decode.sample_count, options, &tally))
            return decode.sample_count;
    }
    snprintf(problem.text, sizeof problem.text,
             "none of %u was good: %u had less than two samples, %u filled the image, %u overflowed, %u had samples "
             "out of time, %u were of an idle GPU",
             tally.decodes, tally.empty, tally.full, tally.overflowed, tally.untimely, tally.idle);
    die("decode", problem.text);
}

static void write_recording(FILE *out, struct cupti *cupti, struct pm_sampling *sampling,
                            const struct metric_choice *choice, const struct sample *samples, size_t sample_count)
{
    const struct pm_sampling_facts *facts = pm_sampling_facts(sampling);
    size_t metrics[METRICS_MAX], metric_count = 0;
    for (size_t i = 0; i < choice->count; i++)
        if (!(facts->left_out >> i & 1))
            metrics[metric_count++] = i;
    put(out, "PMREC\0\0", 8);
    put_u32(out, FORMAT_VERSION);
    put_u32(out, cupti_version(cupti));
    put(out, facts->chip, PROFILER_CHIP_NAME_BYTES);
    put_u32(out, metric_count);
    put_u32(out, sample_count);
    for (size_t i = 0; i < metric_count; i++)
        put(out, choice->metrics[metrics[i]], METRIC_NAME_BYTES);
    for (const struct sample *sample = samples; sample < samples + sample_count; sample++) {
        put(out, &sample->time.start_ns, sizeof sample->time.start_ns);
        put(out, &sample->time.end_ns, sizeof sample->time.end_ns);
        printf("%lld ns +%lld:", (long long)sample->time.start_ns,
               (long long)(sample->time.end_ns - sample->time.start_ns));
        for (size_t i = 0; i < metric_count; i++) {
            put(out, &sample->values[metrics[i]], sizeof sample->values[0]);
            printf(" %g", sample->values[metrics[i]]);
        }
        printf("\n");
    }
    size_t image_bytes;
    const uint8_t *image = pm_sampling_image(sampling, &image_bytes);
    put(out, image, image_bytes);
}

int main(int argc, char **argv)
{
    struct problem problem = {""};
    struct cuda *cuda;
    struct cupti *cupti;
    static struct metric_choice choice;
    int64_t interval_us = argc > 3 ? strtoll(argv[3], NULL, 10) : INTERVAL_US;
    if (argc < 2 || interval_us <= 0 || interval_us > PM_INTERVAL_NS_MAX / 1000)
        die("usage", "record_pm_sampling FILE [METRICS] [INTERVAL_US]");
    if (cuda_load(&cuda, true, &problem) != GPUFL_OK || cuda_initialize(cuda, &problem) != GPUFL_OK ||
        cupti_load(&cupti, &problem) != GPUFL_OK)
        die("CUDA and CUPTI", problem.text);
    if (metric_choice_parse(&choice, PROFILER_PM_SAMPLING, argc > 2 ? argv[2] : metrics_default, &problem) != GPUFL_OK)
        die("metrics", problem.text);
    struct pm_sampling_options options = {.metrics = choice.list,
                                          .metric_count = choice.count,
                                          .is_named = choice.is_named,
                                          .interval_ns = interval_us * 1000,
                                          .hardware_buffer_bytes = HARDWARE_BUFFER_BYTES,
                                          .sample_capacity = CAPACITY,
                                          .keeps_latest = true};
    pthread_t worker;
    if (pthread_create(&worker, NULL, work, NULL) != 0)
        die("thread", "none");
    static struct sample samples[CAPACITY];
    struct pm_sampling *sampling = sampling_open(cupti, &options);
    size_t sample_count = sampling_wait(&sampling, cupti, &options, samples);
    FILE *out = fopen(argv[1], "wb");
    if (!out)
        die(argv[1], "cannot be written");
    write_recording(out, cupti, sampling, &choice, samples, sample_count);
    if (fclose(out) != 0)
        die(argv[1], "cannot be written");
    atomic_store(&is_over, true);
    pthread_join(worker, NULL);
    pm_sampling_close(sampling);
    return 0;
}
