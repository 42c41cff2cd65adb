/* SPDX-License-Identifier: Apache-2.0 */
/* Records counters of PM sampling on a machine with a GPU, together with the
 * values they gave there; not part of the build:
 *
 *   cc -std=c17 -D_GNU_SOURCE -O2 -Isrc -Iinclude -o record_pm_sampling \
 *      tests/recordings/record_pm_sampling.c src/driver/[a-z]*.c src/base/[a-z]*.c -ldl -lpthread -lm
 *   ./record_pm_sampling tests/recordings/h200_pm.pmrec [metrics] [interval_us]
 *
 * metrics: as GPUFL_PM_METRICS, "overview" by default. The program keeps the
 * memory of device 0 busy while it samples. README.md describes the file. */
#include "driver/cuda.h"
#include "driver/metric_sets.h"
#include "driver/pm_sampling.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SAMPLE_COUNT = 16,
    WORK_BYTES = 256 << 20,
    HARDWARE_BUFFER_BYTES = 32 << 20,
    FORMAT_VERSION = 1,
    TRIES_MIN = 5,
    TRIES_MAX = 200
};

static atomic_bool is_over;

static void die(const char *what, const char *why)
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

static void write_recording(FILE *out, struct cupti *cupti, struct pm_sampling *sampling,
                            const struct metric_choice *choice, size_t sample_count)
{
    struct problem problem = {""};
    put(out, "PMREC\0\0", 8);
    put_u32(out, FORMAT_VERSION);
    put_u32(out, cupti_version(cupti));
    put(out, pm_sampling_facts(sampling)->chip, PROFILER_CHIP_NAME_BYTES);
    put_u32(out, choice->count);
    put_u32(out, sample_count);
    for (size_t i = 0; i < choice->count; i++)
        put(out, choice->metrics[i], METRIC_NAME_BYTES);
    for (size_t i = 0; i < sample_count; i++) {
        struct pm_sample_time time;
        double values[METRICS_MAX];
        if (pm_sampling_read(sampling, i, &time, values, &problem) != GPUFL_OK)
            die("sample", problem.text);
        put(out, &time.start_ns, sizeof time.start_ns);
        put(out, &time.end_ns, sizeof time.end_ns);
        put(out, values, choice->count * sizeof *values);
        printf("%lld ns +%lld:", (long long)time.start_ns, (long long)(time.end_ns - time.start_ns));
        for (size_t m = 0; m < choice->count; m++)
            printf(" %g", values[m]);
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
    struct pm_sampling *sampling;
    static struct metric_choice choice;
    int64_t interval_ns = (argc > 3 ? atoll(argv[3]) : 100) * 1000;
    if (argc < 2)
        die("usage", "record_pm_sampling FILE [METRICS] [INTERVAL_US]");
    if (cuda_load(&cuda, true, &problem) != GPUFL_OK || cuda_initialize(cuda, &problem) != GPUFL_OK ||
        cupti_load(&cupti, &problem) != GPUFL_OK)
        die("CUDA and CUPTI", problem.text);
    if (metric_choice_parse(&choice, PROFILER_PM_SAMPLING, argc > 2 ? argv[2] : "overview", &problem) != GPUFL_OK)
        die("metrics", problem.text);
    const struct pm_sampling_options options = {.metrics = choice.list,
                                                .metric_count = choice.count,
                                                .is_named = choice.is_named,
                                                .interval_ns = interval_ns,
                                                .hardware_buffer_bytes = HARDWARE_BUFFER_BYTES,
                                                .sample_capacity = SAMPLE_COUNT};
    pthread_t worker;
    struct pm_decode decode = {0};
    if (pthread_create(&worker, NULL, work, NULL) != 0)
        die("thread", "none");
    if (pm_sampling_open(&sampling, cupti, &options, &problem) != GPUFL_OK ||
        pm_sampling_start(sampling, &problem) != GPUFL_OK)
        die("PM sampling", problem.text);
    /* The first samples are not typical, and how many a decode gives is for CUPTI to say. */
    for (int tries = 0; tries < TRIES_MAX && (tries < TRIES_MIN || decode.sample_count < SAMPLE_COUNT / 2); tries++) {
        usleep((useconds_t)(2 * SAMPLE_COUNT * interval_ns / 1000));
        if (pm_sampling_decode(sampling, &decode, &problem) != GPUFL_OK)
            die("decode", problem.text);
    }
    if (decode.sample_count < SAMPLE_COUNT / 2)
        die("decode", "too few samples");
    FILE *out = fopen(argv[1], "wb");
    if (!out)
        die(argv[1], "cannot be written");
    write_recording(out, cupti, sampling, &choice, decode.sample_count);
    if (fclose(out) != 0)
        die(argv[1], "cannot be written");
    atomic_store(&is_over, true);
    pthread_join(worker, NULL);
    pm_sampling_close(sampling);
    return 0;
}
