/* SPDX-License-Identifier: Apache-2.0 */
/* The PM sampling engine, from the look-alike CUPTI to the lines of the log. Each test runs in a child, since faults
 * are read once per process. */
#include "pm_world.h"

#include "driver/pm_sampling_abi.h"

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
    /* Every interval without a row is counted once; the last sample may be one without a time. */
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
    world_start(&world);
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
    CHECK(total.overflows == 0 && total.no_values == 2); /* its decode had hundreds of other samples */
    struct seen seen = see_log(&world);
    CHECK(seen.rows[0] == total.values && seen.lost == total.no_values + total.missed);
    CHECK(seen.missing == 2 * (total.missed + 1));
}

/* A run in which any call may fail: it ends, and the log shows what is missing. */
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

IN_CHILD(every_sample_becomes_a_row_per_metric, "", rows_body)
IN_CHILD(devices_are_taken_once_and_while_running, "", several_devices_body)
IN_CHILD(a_device_outside_of_the_mask_is_left_alone, "", masked_body)
IN_CHILD(a_refusal_stays_and_says_why, "fail=cuptiPmSamplingEnable@1:26", refused_body)
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
    in_directory("fail=cuptiProfilerHostConfigAddMetrics@*:999", failing_body); /* a single failure is retried */
    in_directory("fail=cuptiPmSamplingCounterDataImageInitialize@3:999", failing_body);
    in_directory("fail=cuptiPmSamplingDecodeData@2:8", failing_body);
}

IN_CHILD(an_evaluation_that_fails_once_is_repeated_and_costs_no_sample,
         "fail=cuptiProfilerHostEvaluateToGpuValues@30:999", rows_body)

IN_CHILD(a_sample_that_cannot_be_read_does_not_cost_the_others_their_place,
         "fail=cuptiPmSamplingCounterDataGetSampleInfo@100:999", unread_body)

IN_CHILD(a_device_that_cannot_be_read_fails_with_a_reason, "fail=cuptiPmSamplingDecodeData@*:999", broken_body)
IN_CHILD(a_device_whose_samples_cannot_be_evaluated_fails, "fail=cuptiProfilerHostEvaluateToGpuValues@*:999",
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
        cmocka_unit_test(a_metric_without_a_value_has_no_row_and_is_counted),
        cmocka_unit_test(a_sample_without_a_time_is_dropped_and_counted),
        cmocka_unit_test(what_the_collector_does_not_take_in_time_is_counted),
        cmocka_unit_test(every_call_that_fails_leaves_a_truthful_log),
        cmocka_unit_test(an_evaluation_that_fails_once_is_repeated_and_costs_no_sample),
        cmocka_unit_test(a_sample_that_cannot_be_read_does_not_cost_the_others_their_place),
        cmocka_unit_test(a_device_that_cannot_be_read_fails_with_a_reason),
        cmocka_unit_test(a_device_whose_samples_cannot_be_evaluated_fails),
        cmocka_unit_test(a_device_that_fails_for_a_while_is_opened_anew),
        cmocka_unit_test(a_forked_child_forgets_and_the_parent_goes_on),
    };
    environment_clear();
    setenv("FAKE_GPU_COUNT", "2", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
