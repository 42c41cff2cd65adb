/* SPDX-License-Identifier: Apache-2.0 */
/* The SassMetrics engine on the look-alike CUPTI, for tests that each run in a child process (fake_client.h).
 * Include after cmocka.h. */
#ifndef GPUFL_TESTS_SASS_FIXTURE_H
#define GPUFL_TESTS_SASS_FIXTURE_H

#include "../fakes/fake_client.h"
#include "../fakes/gpu_timeline.h"

#include "capture/sass_counters.h"
#include "driver/pc_sampling_abi.h"
#include "session_fixture.h"

/* launch() of fake_client.h: 4 blocks of 128 threads */
enum { WARPS = 16, THREADS = 512, LAUNCHES = 3, INSTRUCTIONS_EXECUTED = 7, DEFAULT_ROWS = 28 };

static char dir[256];
static struct log_writer *writer;
static struct recorder recorder;
static struct names names;
static struct sass_counters *counters;
static struct sass_window_summary summary;
static struct problem problem;

static inline struct gpu_context context_of(struct fake_context *context)
{
    return (struct gpu_context){context, context->id, (uint32_t)context->device};
}

static inline struct fake_context *primary_context(int device)
{
    struct fake_context *(*get)(int) = NULL;
    *(void **)&get = dlsym(RTLD_DEFAULT, "fake_primary_context");
    CHECK(get != NULL);
    return get(device);
}

static inline gpufl_status engine_make(const struct sass_counters_options *given)
{
    struct sass_counters_options options = *given;
    CHECK(cu.init(0) == FAKE_SUCCESS);
    CHECK(cupti_load(&options.cupti, &problem) == GPUFL_OK);
    snprintf(dir, sizeof dir, "%s", fixture_dir());
    const struct log_writer_options log = {.base_dir = dir, .session_id = FIXTURE_ID};
    CHECK(log_writer_open(&writer, &log, &problem) == GPUFL_OK);
    CHECK(recorder_open(&recorder, writer, FIXTURE_ID, "test") == GPUFL_OK);
    names_open(&names, &recorder);
    options.recorder = &recorder;
    options.names = &names;
    return sass_counters_make(&counters, &options, &problem);
}

/* Without it CUPTI counts the first function only. */
static inline void pc_sampling_set(struct fake_context *context, bool is_on)
{
    int (*set)(struct pc_sampling_abi_context_params *) = NULL;
    struct pc_sampling_abi_context_params params = {.size = sizeof params, .context = context};
    *(void **)&set = dlsym(RTLD_DEFAULT, is_on ? "cuptiPCSamplingEnable" : "cuptiPCSamplingDisable");
    CHECK(set != NULL && set(&params) == CUPTI_ABI_SUCCESS);
}

static inline void engine_start(const struct sass_counters_options *options)
{
    CHECK(engine_make(options) == GPUFL_OK);
    struct gpu_context context = context_of(primary_context(0));
    CHECK(sass_counters_attach(counters, &context, &problem) == GPUFL_OK);
    pc_sampling_set(context.handle, true);
}

static inline void engine_end(void)
{
    if (counters)
        sass_counters_stop(counters, 9000);
    sass_counters_free(counters);
    names_close(&names);
    recorder_close(&recorder);
    log_writer_close(writer, 1000);
    fixture_remove(dir);
}

static inline gpufl_status window(uint32_t id, int count)
{
    memset(&summary, 0, sizeof summary);
    gpufl_status status = sass_counters_open(counters, id, 1000 * id, &problem);
    launches(count);
    if (status == GPUFL_OK)
        sass_counters_close(counters, 1000 * id + 500, (uint64_t)count, &summary);
    sass_counters_write(counters);
    return status;
}

static inline const struct batch *rows(void)
{
    return &recorder.batches[RECORD_PROFILE_SAMPLE_BATCH];
}

static inline const int64_t *row_at(uint32_t i)
{
    return rows()->cells + (size_t)i * PROFILE_SAMPLE_COLUMN_COUNT;
}

/* The value of a metric at a pc in a window; -1: no row. More than one row is a failure. */
static inline int64_t value_of(uint32_t window_id, uint32_t pc_offset, const char *metric)
{
    int64_t value = -1;
    for (uint32_t i = 0; i < rows()->row_count; i++) {
        const int64_t *row = row_at(i);
        if (row[PROFILE_SAMPLE_WINDOW_ID] != window_id || row[PROFILE_SAMPLE_PC_OFFSET] != pc_offset ||
            strcmp(intern_text(&names.metrics.table, (uint32_t)row[PROFILE_SAMPLE_METRIC_ID]), metric) != 0)
            continue;
        CHECK(value == -1);
        value = row[PROFILE_SAMPLE_METRIC_VALUE];
    }
    return value;
}

static inline uint64_t lost(enum loss_reason reason)
{
    return atomic_load(&recorder.lost[reason]);
}

#define P "smsp__sass_"

static inline int environment_setup(void **state)
{
    (void)state;
    environment_clear();
    unsetenv("FAKE_SASS_RECORDING");
    setenv("LD_LIBRARY_PATH", FAKES_DIR, 1);
    return 0;
}

#endif
