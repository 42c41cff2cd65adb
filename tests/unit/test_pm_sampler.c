/* SPDX-License-Identifier: Apache-2.0 */
/* The PM sampling engine from the look-alike CUPTI to the lines of the log. Each
 * test runs in a child, since faults are read once per process. */
#include "session_fixture.h"

#include "../fakes/fake_client.h"
#include "capture/pm_sampler.h"
#include "driver/pm_sampling_abi.h"

#define INTERVAL_US 200
#define INTERVAL_NS (INTERVAL_US * INT64_C(1000))
enum { SAMPLE_BYTES = 592 /* of the look-alike's hardware buffer */, WAIT_MS = 20000 };

static char directory[256]; /* the test's own */

/* Everything that a session has around the engine. */
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

static void world_open(struct world *world, const char *const *metrics, size_t metric_count)
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

static void world_make(struct world *world)
{
    CHECK(pm_sampler_make(&world->sampler, &world->options, &world->problem) == GPUFL_OK);
    CHECK(pm_sampler_bytes(world->sampler) > 1 << 20);
}

static void world_begin(struct world *world)
{
    world_open(world, two_metrics, 2);
    world_make(world);
    CHECK(pm_sampler_attach(world->sampler, 0, &world->problem) == GPUFL_OK);
    CHECK(pm_sampler_start(world->sampler, &world->problem) == GPUFL_OK);
}

static void world_close(struct world *world)
{
    pm_sampler_free(world->sampler);
    recorder_flush(&world->recorder, 0);
    names_close(&world->names);
    recorder_close(&world->recorder);
    log_writer_close(world->writer, 1000);
}

static struct pm_sampler_totals totals(const struct world *world)
{
    return pm_sampler_totals(world->sampler);
}

/* Plays the collector until the total is reached; time is only a net. */
#define RUN_UNTIL(world, claim)                    \
    do {                                           \
        for (int waited = 0; !(claim); waited++) { \
            CHECK(waited < WAIT_MS);               \
            usleep(1000);                          \
            pm_sampler_write((world)->sampler);    \
        }                                          \
    } while (0)

static void world_finish(struct world *world)
{
    pm_sampler_stop(world->sampler);
    pm_sampler_write(world->sampler);
    recorder_flush(&world->recorder, 0);
}

/* What the log holds. */
struct seen {
    uint64_t rows[2], missing; /* by device; intervals without a row, of all metrics */
    int64_t last_ns[2][METRICS_MAX + 1], next_index[2];
    uint64_t configs, rows_before_config, bad_rows;
    uint64_t losses, unknown_losses, lost;
    char metrics[512];
    int64_t config_interval_us;
};

static void see_row(struct seen *seen, const struct batch_view *batch, uint32_t row)
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
    seen->missing += *last_ns ? (uint64_t)((time_ns - *last_ns) / INTERVAL_NS - 1) : 0;
    *last_ns = time_ns;
    int64_t index = batch->columns[PM_SAMPLE_SAMPLE_INDEX].cells[row];
    seen->bad_rows += index < seen->next_index[device] - 1;
    seen->next_index[device] = index + 1;
    seen->rows[device]++;
}

static bool see_line(void *user, const struct log_line *line)
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
        seen->lost += (uint64_t)json_get_int(line->object, "count", 0);
    }
    return true;
}

static void see_issue(void *user, const struct log_issue *issue)
{
    (void)user;
    CHECK(issue->kind == LOG_ISSUE_UNFINISHED);
}

/* Ends the world first: its files are complete then. */
static struct seen see_log(struct world *world)
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

static void rows_body(void)
{
    struct world world;
    world_begin(&world);
    RUN_UNTIL(&world, totals(&world).samples >= 50);
    world_finish(&world);
    struct pm_sampler_totals total = totals(&world);
    CHECK(total.values == 2 * total.samples && total.no_values == 0 && total.queue_lost == 0);
    CHECK(total.first_dropped == 1 && total.bad_time == 0 && total.overflows == 0);
    CHECK(total.devices == 1 && total.devices_failed == 0 && total.cpu_ns > 0);
    CHECK(!pm_sampler_trouble(world.sampler, &world.problem));
    struct seen seen = see_log(&world);
    CHECK(seen.rows[0] == 2 * total.samples && seen.next_index[0] == (int64_t)total.samples);
    CHECK(seen.configs == 1 && seen.config_interval_us == INTERVAL_US);
    CHECK(!strcmp(seen.metrics, "sm__cycles_active.avg dram__bytes_read.sum "));
    CHECK(seen.missing == 2 * total.missed && seen.lost == total.missed);
}

static void several_devices_body(void)
{
    struct world world;
    world_open(&world, two_metrics, 2);
    world_make(&world);
    CHECK(pm_sampler_attach(world.sampler, 0, &world.problem) == GPUFL_OK);
    CHECK(pm_sampler_attach(world.sampler, 0, &world.problem) == GPUFL_OK);
    CHECK(pm_sampler_start(world.sampler, &world.problem) == GPUFL_OK);
    RUN_UNTIL(&world, totals(&world).samples >= 5);
    pm_sampler_want(world.sampler, 1);
    pm_sampler_want(world.sampler, 1);
    RUN_UNTIL(&world, totals(&world).devices == 2 && totals(&world).first_dropped == 2);
    uint64_t samples = totals(&world).samples;
    RUN_UNTIL(&world, totals(&world).samples >= samples + 200);
    world_finish(&world);
    struct pm_sampler_totals total = totals(&world);
    CHECK(total.devices == 2 && total.devices_failed == 0);
    struct seen seen = see_log(&world);
    CHECK(seen.configs == 2 && seen.rows[0] > 0 && seen.rows[1] > 0);
    CHECK(seen.rows[0] + seen.rows[1] == total.values);
}

static void masked_body(void)
{
    struct world world;
    world_open(&world, two_metrics, 2);
    world.options.device_mask = 2;
    world_make(&world);
    CHECK(pm_sampler_attach(world.sampler, 0, &world.problem) == GPUFL_OK);
    CHECK(pm_sampler_attach(world.sampler, 70, &world.problem) == GPUFL_OK);
    CHECK(totals(&world).devices == 0);
    CHECK(pm_sampler_attach(world.sampler, 1, &world.problem) == GPUFL_OK);
    CHECK(totals(&world).devices == 1);
    world_close(&world); /* never started: only closes */
}

static void refused_body(void)
{
    struct world world;
    struct problem again = {""};
    world_open(&world, two_metrics, 2);
    world_make(&world);
    CHECK(pm_sampler_attach(world.sampler, 0, &world.problem) == GPUFL_E_BUSY);
    CHECK(pm_sampler_attach(world.sampler, 0, &again) == GPUFL_E_BUSY && !strcmp(again.text, world.problem.text));
    CHECK(pm_sampler_start(world.sampler, &world.problem) == GPUFL_OK);
    pm_sampler_want(world.sampler, 0);
    world_finish(&world);
    CHECK(pm_sampler_trouble(world.sampler, &again) && strstr(again.text, "DCGM"));
    CHECK(totals(&world).devices_failed == 1 && totals(&world).samples == 0);
    struct seen seen = see_log(&world);
    CHECK(seen.configs == 0 && seen.rows[0] == 0);
}

/* Until a decode has seen trouble of the kind. */
static struct seen crowded(bool keeps_oldest, struct pm_sampler_totals *total)
{
    struct world world;
    world_open(&world, two_metrics, 2);
    world.options.hardware_buffer_bytes = 2 * SAMPLE_BYTES;
    world.options.keeps_oldest = keeps_oldest;
    world_make(&world);
    CHECK(pm_sampler_attach(world.sampler, 0, &world.problem) == GPUFL_OK);
    CHECK(pm_sampler_start(world.sampler, &world.problem) == GPUFL_OK);
    RUN_UNTIL(&world, totals(&world).missed >= 10 && (!keeps_oldest || totals(&world).overflows >= 3));
    world_finish(&world);
    *total = totals(&world);
    return see_log(&world);
}

static void overwritten_body(void)
{
    struct pm_sampler_totals total;
    struct seen seen = crowded(false, &total);
    CHECK(total.overflows == 0 && seen.missing == 2 * total.missed);
    CHECK(seen.losses > 0 && seen.unknown_losses == 0 && seen.lost == total.missed);
}

static void overflow_body(void)
{
    struct pm_sampler_totals total;
    struct seen seen = crowded(true, &total);
    CHECK(seen.unknown_losses > 0 && seen.lost == total.missed && seen.missing == 2 * total.missed);
}

static void blind_body(void)
{
    struct world world;
    world_begin(&world);
    RUN_UNTIL(&world, totals(&world).samples >= 50);
    world_finish(&world);
    struct pm_sampler_totals total = totals(&world);
    CHECK(total.values == total.samples && total.no_values == total.samples);
    struct seen seen = see_log(&world);
    CHECK(seen.rows[0] == total.samples && seen.lost == total.samples + total.missed);
}

static void timeless_body(void)
{
    struct world world;
    world_begin(&world);
    RUN_UNTIL(&world, totals(&world).bad_time >= 5);
    world_finish(&world);
    struct pm_sampler_totals total = totals(&world);
    CHECK(total.first_dropped == 1);
    struct seen seen = see_log(&world);
    CHECK(seen.lost == total.bad_time + total.missed && seen.rows[0] == total.values);
    /* Every interval without a row is counted once; the last sample of all may be one without a time. */
    CHECK(seen.lost - seen.missing / 2 <= 1);
}

static void slow_collector_body(void)
{
    static char names[16][32];
    const char *metrics[16];
    struct world world;
    for (int i = 0; i < 16; i++) {
        snprintf(names[i], sizeof names[i], "unit%d__counter.sum", i);
        metrics[i] = names[i];
    }
    world_open(&world, metrics, 16);
    world.options.interval_us = 1;
    world_make(&world);
    CHECK(pm_sampler_attach(world.sampler, 0, &world.problem) == GPUFL_OK);
    CHECK(pm_sampler_start(world.sampler, &world.problem) == GPUFL_OK);
    for (int waited = 0; !totals(&world).queue_lost; waited++) {
        CHECK(waited < WAIT_MS);
        usleep(1000);
    }
    pm_sampler_stop(world.sampler);
    struct pm_sampler_totals total = totals(&world);
    CHECK(total.samples > 1000 && total.queue_lost > 0);
    CHECK(atomic_load(&world.recorder.lost[LOSS_PM_QUEUE]) == total.queue_lost);
    world_close(&world);
}

static void unread_body(void)
{
    struct world world;
    world_begin(&world);
    RUN_UNTIL(&world, totals(&world).samples >= 200);
    world_finish(&world);
    struct pm_sampler_totals total = totals(&world);
    CHECK(total.overflows == 0 && total.no_values == 2); /* it was not alone in its decode, which has hundreds */
    struct seen seen = see_log(&world);
    CHECK(seen.rows[0] == total.values && seen.lost == total.no_values + total.missed);
    CHECK(seen.missing == 2 * (total.missed + 1));
}

/* A life in which any call may fail: it ends, and the log says what is missing. */
static void failing_body(void)
{
    struct world world;
    world_open(&world, two_metrics, 2);
    world_make(&world);
    bool is_attached = pm_sampler_attach(world.sampler, 0, &world.problem) == GPUFL_OK;
    CHECK(is_attached || world.problem.text[0]);
    CHECK(pm_sampler_start(world.sampler, &world.problem) == GPUFL_OK);
    struct problem trouble = {""};
    if (!pm_sampler_trouble(world.sampler, &trouble))
        RUN_UNTIL(&world, totals(&world).samples >= 60);
    world_finish(&world);
    struct pm_sampler_totals total = totals(&world);
    bool has_trouble = pm_sampler_trouble(world.sampler, &trouble); /* also of a device that recovered */
    CHECK(has_trouble ? trouble.text[0] != '\0' : !total.devices_failed);
    bool is_hurt = total.devices_failed || total.overflows || total.no_values;
    bool is_at_end = strstr(getenv("FAKE_FAULTS"), "Stop@") || strstr(getenv("FAKE_FAULTS"), "Disable@");
    CHECK(is_hurt || is_at_end);
    struct seen seen = see_log(&world);
    CHECK(seen.rows[0] == total.values && seen.configs == is_attached);
    CHECK((seen.unknown_losses > 0) == (total.overflows > 0));
}

static void broken_body(void)
{
    struct world world;
    world_begin(&world);
    RUN_UNTIL(&world, totals(&world).devices_failed == 1);
    struct problem trouble = {""};
    CHECK(pm_sampler_trouble(world.sampler, &trouble) &&
          (strstr(trouble.text, "cuptiPmSamplingDecodeData") || strstr(trouble.text, "cuptiProfilerHostEvaluate")));
    /* Twelve decodes: three for the first object and for each of three more. */
    CHECK(totals(&world).overflows == 12 && totals(&world).samples == 0);
    world_finish(&world);
    struct seen seen = see_log(&world);
    CHECK(seen.unknown_losses > 0 && seen.rows[0] == 0);
}

static void reopened_body(void)
{
    struct world world;
    world_begin(&world);
    RUN_UNTIL(&world, totals(&world).overflows == 3 && totals(&world).first_dropped >= 1);
    uint64_t samples = totals(&world).samples;
    RUN_UNTIL(&world, totals(&world).samples >= samples + 50);
    world_finish(&world);
    CHECK(totals(&world).devices_failed == 0);
    struct seen seen = see_log(&world);
    CHECK(seen.configs == 1 && seen.rows[0] >= 100);
}

static void forked_body(void)
{
    struct world world;
    world_begin(&world);
    RUN_UNTIL(&world, totals(&world).samples >= 1);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        pm_sampler_abandon(world.sampler);
        pm_sampler_abandon(NULL);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    uint64_t samples = totals(&world).samples;
    RUN_UNTIL(&world, totals(&world).samples > samples);
    world_close(&world);
}

/* In a child with a directory of its own. */
static void in_directory(const char *faults, void (*body)(void))
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

IN_CHILD(every_sample_becomes_a_row_per_metric, "", rows_body)
IN_CHILD(devices_are_taken_once_and_while_running, "", several_devices_body)
IN_CHILD(a_device_outside_of_the_mask_is_left_alone, "", masked_body)
IN_CHILD(a_refusal_stays_and_says_why, "fail=cuptiPmSamplingEnable@1:26", refused_body)
IN_CHILD(what_ring_mode_overwrites_is_counted_by_its_gap, "", overwritten_body)
IN_CHILD(a_hardware_overflow_is_a_loss_of_unknown_size, "", overflow_body)
IN_CHILD(a_metric_without_a_value_has_no_row_and_is_counted, "pm_blind=dram__bytes_read.sum", blind_body)
IN_CHILD(a_sample_without_a_time_is_dropped_and_counted, "pm_zero_every=5", timeless_body)
IN_CHILD(what_the_collector_does_not_take_in_time_is_counted, "", slow_collector_body)

static void every_call_that_fails_leaves_a_truthful_log(void **state)
{
    (void)state;
#define FUNCTION_NAME(member, symbol, parameters) #symbol,
    static const char *const functions[] = {PM_SAMPLING_ABI_FUNCTIONS(FUNCTION_NAME) "cuptiProfilerInitialize",
                                            "cuptiProfilerDeviceSupported", "cuptiDeviceGetChipName",
                                            "cuptiProfilerHostInitialize"};
#undef FUNCTION_NAME
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        char faults[128];
        snprintf(faults, sizeof faults, "fail=%s@1:999", functions[i]);
        in_directory(faults, failing_body);
    }
    in_directory("fail=cuptiProfilerHostConfigAddMetrics@*:999", failing_body); /* a single one is asked again */
    in_directory("fail=cuptiPmSamplingCounterDataImageInitialize@3:999", failing_body);
    in_directory("fail=cuptiPmSamplingDecodeData@2:8", failing_body);
}

IN_CHILD(an_evaluation_that_fails_once_is_repeated_and_costs_no_sample,
         "fail=cuptiProfilerHostEvaluateToGpuValues@30:999", rows_body)

IN_CHILD(a_sample_that_cannot_be_read_does_not_cost_the_others_their_place,
         "fail=cuptiPmSamplingCounterDataGetSampleInfo@100:999", unread_body)

IN_CHILD(a_device_that_cannot_be_read_is_given_up_with_its_reason, "fail=cuptiPmSamplingDecodeData@*:999", broken_body)
IN_CHILD(a_device_whose_samples_cannot_be_evaluated_is_given_up, "fail=cuptiProfilerHostEvaluateToGpuValues@*:999",
         broken_body)

static void a_device_that_fails_for_a_while_is_opened_anew(void **state)
{
    (void)state;
    in_directory("fail=cuptiPmSamplingDecodeData@2:999; fail=cuptiPmSamplingDecodeData@3:999; "
                 "fail=cuptiPmSamplingDecodeData@4:999",
                 reopened_body);
}

IN_CHILD(a_forked_child_forgets_and_the_parent_goes_on, "", forked_body)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sample_becomes_a_row_per_metric),
        cmocka_unit_test(devices_are_taken_once_and_while_running),
        cmocka_unit_test(a_device_outside_of_the_mask_is_left_alone),
        cmocka_unit_test(a_refusal_stays_and_says_why),
        cmocka_unit_test(what_ring_mode_overwrites_is_counted_by_its_gap),
        cmocka_unit_test(a_hardware_overflow_is_a_loss_of_unknown_size),
        cmocka_unit_test(a_metric_without_a_value_has_no_row_and_is_counted),
        cmocka_unit_test(a_sample_without_a_time_is_dropped_and_counted),
        cmocka_unit_test(what_the_collector_does_not_take_in_time_is_counted),
        cmocka_unit_test(every_call_that_fails_leaves_a_truthful_log),
        cmocka_unit_test(an_evaluation_that_fails_once_is_repeated_and_costs_no_sample),
        cmocka_unit_test(a_sample_that_cannot_be_read_does_not_cost_the_others_their_place),
        cmocka_unit_test(a_device_that_cannot_be_read_is_given_up_with_its_reason),
        cmocka_unit_test(a_device_whose_samples_cannot_be_evaluated_is_given_up),
        cmocka_unit_test(a_device_that_fails_for_a_while_is_opened_anew),
        cmocka_unit_test(a_forked_child_forgets_and_the_parent_goes_on),
    };
    environment_clear();
    setenv("FAKE_GPU_COUNT", "2", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
