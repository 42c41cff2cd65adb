/* SPDX-License-Identifier: Apache-2.0 */
/* The PM sampling engine with everything a session provides for it, in a child with the look-alike libraries, and
 * the content of its log afterwards. */
#ifndef GPUFL_TESTS_PM_WORLD_H
#define GPUFL_TESTS_PM_WORLD_H

#include "session_fixture.h"

#include "../fakes/fake_client.h"
#include "capture/pm_sampler.h"

#define INTERVAL_US 200
enum { SAMPLE_BYTES = 592 /* of the look-alike's hardware buffer */, WAIT_MS = 400000 };

static char directory[256]; /* removed after the test */
static int64_t interval_ns = INTERVAL_US * INT64_C(1000);

/* Everything that a session provides for the engine. */
struct world {
    struct log_writer *writer;
    struct recorder recorder;
    struct names names;
    struct metric_choice choice;
    struct pm_sampler_options options;
    struct pm_sampler *sampler;
    struct problem problem;
};

static const char *const two_metrics[] = {"sm__cycles_active.avg", "dram__bytes_read.sum"};

static inline void world_open(struct world *world, const char *const *metrics, size_t metric_count)
{
    memset(world, 0, sizeof *world);
    CHECK(cu.init(0) == FAKE_SUCCESS);
    CHECK(cupti_load(&world->options.cupti, NULL) == GPUFL_OK);
    world->writer = fixture_open(directory, 0, false);
    CHECK(recorder_open(&world->recorder, world->writer, FIXTURE_ID, "test") == GPUFL_OK);
    names_open(&world->names, &world->recorder);
    snprintf(world->choice.name, sizeof world->choice.name, "custom");
    for (size_t i = 0; i < metric_count; i++)
        snprintf(world->choice.metrics[i], sizeof world->choice.metrics[i], "%s", metrics[i]);
    world->choice.count = metric_count;
    world->options.recorder = &world->recorder;
    world->options.names = &world->names;
    world->options.choice = &world->choice;
    world->options.interval_us = INTERVAL_US;
}

static inline void world_make(struct world *world)
{
    CHECK(pm_sampler_make(&world->sampler, &world->options, &world->problem) == GPUFL_OK);
    CHECK(pm_sampler_bytes(world->sampler) > 1 << 20);
}

static inline void world_start(struct world *world)
{
    world_make(world);
    CHECK(pm_sampler_attach(world->sampler, 0, &world->problem) == GPUFL_OK);
    CHECK(pm_sampler_start(world->sampler, &world->problem) == GPUFL_OK);
}

static inline void world_begin(struct world *world)
{
    world_open(world, two_metrics, 2);
    world_start(world);
}

static inline void world_close(struct world *world)
{
    pm_sampler_free(world->sampler);
    recorder_flush(&world->recorder, 0);
    names_close(&world->names);
    recorder_close(&world->recorder);
    log_writer_close(world->writer, 1000);
}

static inline struct pm_sampler_totals totals(const struct world *world)
{
    return pm_sampler_totals(world->sampler);
}

/* Acts as the collector until the total is reached; the time limit only ends a broken run. */
#define RUN_UNTIL(world, claim)                    \
    do {                                           \
        for (int waited = 0; !(claim); waited++) { \
            CHECK(waited < WAIT_MS);               \
            usleep(1000);                          \
            pm_sampler_write((world)->sampler);    \
        }                                          \
    } while (0)

static inline void world_finish(struct world *world)
{
    pm_sampler_stop(world->sampler);
    pm_sampler_write(world->sampler);
    recorder_flush(&world->recorder, 0);
}

/* The content of the log. */
struct seen {
    uint64_t rows[2], missing; /* by device; intervals without a row, for all metrics */
    int64_t last_ns[2][METRICS_MAX + 1], next_index[2];
    uint64_t configs, rows_before_config, bad_rows;
    uint64_t losses, unknown_losses, lost;
    char metrics[512], cause[512]; /* of a loss */
    int64_t config_interval_us;
};

static inline void see_row(struct seen *seen, const struct batch_view *batch, uint32_t row)
{
    int64_t device = batch->columns[PM_SAMPLE_DEVICE_ID].cells[row];
    int64_t metric = batch->columns[PM_SAMPLE_METRIC_ID].cells[row];
    int64_t time_ns = batch->base_time_ns + batch->columns[PM_SAMPLE_DT_NS].cells[row];
    double value;
    memcpy(&value, &batch->columns[PM_SAMPLE_VALUE].cells[row], sizeof value);
    seen->rows_before_config += !seen->configs;
    if (device < 0 || device > 1 || metric < 1 || metric > METRICS_MAX || !(value >= 0 && value < 200)) {
        seen->bad_rows++;
        return;
    }
    int64_t *last_ns = &seen->last_ns[device][metric];
    seen->bad_rows += time_ns <= *last_ns;
    /* a reopened device samples at other moments */
    seen->missing += *last_ns ? (uint64_t)((time_ns - *last_ns + interval_ns / 2) / interval_ns - 1) : 0;
    *last_ns = time_ns;
    int64_t index = batch->columns[PM_SAMPLE_SAMPLE_INDEX].cells[row];
    seen->bad_rows += index < seen->next_index[device] - 1;
    seen->next_index[device] = index + 1;
    seen->rows[device]++;
}

static inline bool see_line(void *user, const struct log_line *line)
{
    struct seen *seen = user;
    if (line->type == RECORD_PM_SAMPLE_BATCH)
        for (uint32_t row = 0; row < line->batch->row_count; row++)
            see_row(seen, line->batch, row);
    if (line->type == RECORD_PM_SAMPLING_CONFIG) {
        seen->configs++;
        seen->config_interval_us = json_get_int(line->object, "interval_us", -1);
        const struct json_value *metric = json_member(line->object, "metrics");
        size_t used = 0;
        for (metric = metric ? metric->child : NULL; metric; metric = metric->next)
            used += (size_t)snprintf(seen->metrics + used, sizeof seen->metrics - used, "%s ", metric->text);
        seen->bad_rows += strcmp(json_get_text(line->object, "trigger", ""), "time") != 0;
    }
    if (line->type == RECORD_LOSS) {
        const struct json_value *count = json_member(line->object, "count");
        CHECK(count && !strncmp(json_get_text(line->object, "reason", ""), "pm_", 3));
        seen->losses++;
        seen->unknown_losses += count->kind == JSON_NULL;
        if (json_member(line->object, "cause"))
            snprintf(seen->cause, sizeof seen->cause, "%s", json_get_text(line->object, "cause", ""));
        seen->lost += (uint64_t)json_get_int(line->object, "count", 0);
    }
    return true;
}

static inline void see_issue(void *user, const struct log_issue *issue)
{
    (void)user;
    CHECK(issue->kind == LOG_ISSUE_UNFINISHED);
}

/* Ends the world first, so that its files are complete. */
static inline struct seen see_log(struct world *world)
{
    struct seen seen = {0};
    struct log_summary summary;
    struct problem problem = {""};
    char path[512];
    world_close(world);
    fixture_path(path, directory, FIXTURE_ID);
    CHECK(log_read(path, see_line, see_issue, &seen, &summary, &problem) == GPUFL_OK);
    CHECK(seen.bad_rows == 0 && seen.rows_before_config == 0);
    return seen;
}

/* In a child with a separate directory. */
static inline void in_directory(const char *faults, void (*body)(void))
{
    snprintf(directory, sizeof directory, "%s", fixture_dir());
    in_child("libcupti.so.13", faults, body);
    fixture_remove(directory);
}

#define IN_CHILD(test, faults, body) \
    static void test(void **state)   \
    {                                \
        (void)state;                 \
        in_directory(faults, body);  \
    }

#endif
