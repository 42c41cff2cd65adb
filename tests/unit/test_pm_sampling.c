/* SPDX-License-Identifier: Apache-2.0 */
/* PM sampling on the look-alike CUPTI, in child processes, because it is configured once per process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../fakes/fake_client.h"
#include "base/clock.h"
#include "driver/pm_sampling.h"
#include "driver/pm_sampling_abi.h"
#include "driver/metric_sets.h"

#include <math.h>

#define CUPTI_NOW "libcupti.so.13"
enum { SAMPLE_BYTES = 592 /* of the look-alike's hardware buffer */, INTERVAL_NS = 100000 };

static const char *const two_metrics[] = {"sm__cycles_active.avg", "dram__bytes_read.sum"};
static const char *many_metrics[17];
static char many_names[17][64];

static struct cupti *cupti_of_child(void)
{
    CHECK(cu.init(0) == FAKE_SUCCESS);
    struct cupti *loaded = NULL;
    CHECK(cupti_load(&loaded, NULL) == GPUFL_OK);
    return loaded;
}

static struct pm_sampling_options plain_options(void)
{
    return (struct pm_sampling_options){.metrics = two_metrics,
                                        .metric_count = 2,
                                        .interval_ns = INTERVAL_NS,
                                        .hardware_buffer_bytes = 4096 * SAMPLE_BYTES,
                                        .sample_capacity = 1024,
                                        .keeps_latest = true};
}

static void wait_ms(int64_t ms)
{
    int64_t until_ns = clock_mono_ns() + ms * 1000000;
    while (clock_mono_ns() < until_ns)
        usleep(200);
}

static void samples_body(void)
{
    struct cupti *loaded = cupti_of_child();
    struct pm_sampling_options options = plain_options();
    options.interval_ns = 1000000; /* buffers for 16 s: a busy machine may keep this thread waiting */
    options.sample_capacity = 16384;
    options.hardware_buffer_bytes = 16384 * SAMPLE_BYTES;
    struct pm_sampling *sampling;
    struct problem problem = {""};
    CHECK(pm_sampling_open(&sampling, loaded, &options, &problem) == GPUFL_OK);
    const struct pm_sampling_facts *facts = pm_sampling_facts(sampling);
    CHECK(!strcmp(facts->chip, "GH100") && facts->has_time_trigger && facts->keeps_latest && facts->image_bytes > 0);
    CHECK(pm_sampling_start(sampling, &problem) == GPUFL_OK);
    size_t total = 0;
    struct pm_sample_time last = {0};
    double last_value = 0;
    for (int round = 0; round < 3; round++) {
        struct pm_decode decode;
        wait_ms(10);
        if (round == 2)
            pm_sampling_stop(sampling);
        CHECK(pm_sampling_decode(sampling, &decode, &problem) == GPUFL_OK);
        CHECK(!decode.is_full && !decode.has_overflowed);
        for (size_t i = 0; i < decode.sample_count; i++, total++) {
            struct pm_sample_time time;
            double values[2];
            CHECK(pm_sampling_read(sampling, i, &time, values, &problem) == GPUFL_OK);
            CHECK(time.end_ns > time.start_ns);
            if (total > 1) {
                CHECK(time.start_ns == last.end_ns && time.end_ns - time.start_ns == options.interval_ns);
                CHECK(fabs(values[0] - last_value - 1) < 1e-9 || fabs(values[0] - last_value + 9) < 1e-9);
            }
            last = time;
            last_value = values[0];
        }
        struct pm_sample_time beyond;
        double none[2];
        CHECK(pm_sampling_read(sampling, decode.sample_count, &beyond, none, &problem) == GPUFL_E_INVALID);
    }
    CHECK(total > 20);
    pm_sampling_close(sampling);
}

static void samples_have_the_time_and_the_values_of_their_interval(void **state)
{
    (void)state;
    in_child(CUPTI_NOW, "", samples_body);
}

static void open_fails(const struct pm_sampling_options *options, gpufl_status status, const char *a, const char *b)
{
    struct problem problem = {""};
    struct pm_sampling *sampling = NULL;
    gpufl_status got = pm_sampling_open(&sampling, cupti_of_child(), options, &problem);
    if (got != status || !strstr(problem.text, a) || !strstr(problem.text, b))
        fprintf(stderr, "status %d: %s\n", got, problem.text);
    CHECK(got == status && sampling == NULL);
    CHECK(strstr(problem.text, a) && strstr(problem.text, b));
}

static void options_body(void)
{
    struct pm_sampling_options options = plain_options();
    options.interval_ns = PM_INTERVAL_NS_MIN - 1;
    open_fails(&options, GPUFL_E_INVALID, "interval", "999");
    options.interval_ns = (int64_t)PM_INTERVAL_NS_MAX + 1;
    open_fails(&options, GPUFL_E_INVALID, "interval", "1000000001");
    options = plain_options();
    options.metric_count = 0;
    open_fails(&options, GPUFL_E_INVALID, "metric", "");
    const char *const unknown[] = {"sm__cycles_active.avg", "sm__bogus.avg"};
    options = plain_options();
    options.metrics = unknown;
    open_fails(&options, GPUFL_E_INVALID, "sm__bogus", "GH100");
    options = plain_options();
    options.device_id = 7;
    struct pm_sampling *sampling;
    CHECK(pm_sampling_open(&sampling, cupti_of_child(), &options, NULL) != GPUFL_OK);
}

static void what_cannot_be_sampled_is_refused_with_its_name(void **state)
{
    (void)state;
    in_child(CUPTI_NOW, "", options_body);
}

static void passes_body(void)
{
    struct pm_sampling_options options = plain_options();
    for (int i = 0; i < 17; i++) {
        snprintf(many_names[i], sizeof many_names[i], "unit%d__a_counter_of_the_gpu.sum", i);
        many_metrics[i] = many_names[i];
    }
    options.metrics = many_metrics;
    options.metric_count = 17;
    open_fails(&options, GPUFL_E_LIMIT, "need 2 passes: unit0__a_counter_of_the_gpu.sum, unit1__", " more");
}

static void more_than_one_pass_is_refused_with_the_metrics_and_the_number(void **state)
{
    (void)state;
    in_child(CUPTI_NOW, "", passes_body);
}

static void busy_body(void)
{
    struct pm_sampling_options options = plain_options();
    open_fails(&options, GPUFL_E_BUSY, "cuptiPmSamplingEnable", "DCGM");
}

static void permission_body(void)
{
    struct pm_sampling_options options = plain_options();
    open_fails(&options, GPUFL_E_PERMISSION, "RmProfilingAdminOnly", "CAP_PERFMON");
}

static void vgpu_body(void)
{
    struct pm_sampling_options options = plain_options();
    open_fails(&options, GPUFL_E_UNSUPPORTED, "vGPU", "");
}

static void lacking_body(void)
{
    struct pm_sampling_options options = plain_options();
    open_fails(&options, GPUFL_E_UNSUPPORTED, "cuptiPmSampling", "newer");
}

static void a_refusal_names_who_refuses_and_what_helps(void **state)
{
    (void)state;
    in_child(CUPTI_NOW, "fail=cuptiPmSamplingEnable@1:26", busy_body);
    in_child(CUPTI_NOW, "fail=cuptiPmSamplingGetCounterAvailability@1:35", permission_body);
    in_child(CUPTI_NOW, "unsupported=vgpu", vgpu_body);
    in_child("cuda12/libcupti.so.12", "", lacking_body);
}

/* One start, a wait for more samples than fit, one decode. */
static struct pm_decode crowded_decode(const struct pm_sampling_options *options, size_t first_index,
                                       struct pm_sample_time *first)
{
    struct pm_sampling *sampling;
    struct pm_decode decode;
    double values[2];
    struct problem problem = {""};
    CHECK(pm_sampling_open(&sampling, cupti_of_child(), options, &problem) == GPUFL_OK);
    CHECK(pm_sampling_start(sampling, &problem) == GPUFL_OK);
    wait_ms(5);
    CHECK(pm_sampling_decode(sampling, &decode, &problem) == GPUFL_OK);
    CHECK(pm_sampling_read(sampling, first_index, first, values, &problem) == GPUFL_OK);
    pm_sampling_close(sampling);
    return decode;
}

static void crowded_body(void)
{
    struct pm_sampling_options options = plain_options();
    struct pm_sample_time first;
    options.hardware_buffer_bytes = 8 * SAMPLE_BYTES;
    int64_t begin_ns = clock_wall_ns();
    struct pm_decode decode = crowded_decode(&options, 0, &first);
    CHECK(decode.sample_count == 8 && !decode.has_overflowed && !decode.is_full);
    CHECK(first.start_ns > begin_ns + 3000000); /* the latest: earlier samples are lost */
    options.keeps_latest = false;
    decode = crowded_decode(&options, 1, &first);
    CHECK(decode.sample_count == 8 && decode.has_overflowed && !decode.is_full);
    options = plain_options();
    options.sample_capacity = 4;
    decode = crowded_decode(&options, 1, &first);
    CHECK(decode.sample_count == 4 && !decode.has_overflowed && decode.is_full);
}

static void full_buffers_are_distinguished(void **state)
{
    (void)state;
    in_child(CUPTI_NOW, "", crowded_body);
}

static void overflow_result_body(void)
{
    struct pm_sampling_options options = plain_options();
    struct pm_sampling *sampling;
    struct pm_decode decode;
    CHECK(pm_sampling_open(&sampling, cupti_of_child(), &options, NULL) == GPUFL_OK);
    CHECK(pm_sampling_start(sampling, NULL) == GPUFL_OK);
    CHECK(pm_sampling_decode(sampling, &decode, NULL) == GPUFL_OK);
    CHECK(decode.has_overflowed && decode.sample_count == 0);
    CHECK(pm_sampling_decode(sampling, &decode, NULL) == GPUFL_OK && !decode.has_overflowed);
    pm_sampling_close(sampling);
}

static void an_overflow_reported_by_the_result_is_an_overflow(void **state)
{
    (void)state;
    in_child(CUPTI_NOW, "fail=cuptiPmSamplingDecodeData@1:8", overflow_result_body);
}

static void dead_body(void)
{
    struct pm_sampling_options options = plain_options();
    struct cupti *loaded = cupti_of_child();
    struct pm_sampling *sampling;
    struct pm_decode decode = {0};
    options.hardware_buffer_bytes = 8 * SAMPLE_BYTES;
    CHECK(pm_sampling_open(&sampling, loaded, &options, NULL) == GPUFL_OK);
    CHECK(pm_sampling_start(sampling, NULL) == GPUFL_OK);
    wait_ms(5);
    for (int i = 0; i < 3; i++) {
        CHECK(pm_sampling_decode(sampling, &decode, NULL) == GPUFL_OK);
        CHECK(decode.has_overflowed && decode.sample_count == 0 && !decode.is_full);
    }
    pm_sampling_close(sampling);
    options.hardware_buffer_bytes = 64 << 20;
    CHECK(pm_sampling_open(&sampling, loaded, &options, NULL) == GPUFL_OK);
    CHECK(pm_sampling_start(sampling, NULL) == GPUFL_OK);
    wait_ms(5);
    CHECK(pm_sampling_decode(sampling, &decode, NULL) == GPUFL_OK && !decode.has_overflowed && decode.sample_count > 1);
    pm_sampling_close(sampling);
}

static void an_object_whose_hardware_buffer_was_full_is_dead_and_a_new_one_is_not(void **state)
{
    (void)state;
    in_child(CUPTI_NOW, "pm_dead_when_full=1", dead_body);
}

static void sysclk_body(void)
{
    struct pm_sampling_options options = plain_options();
    struct pm_sampling *sampling;
    struct pm_decode decode = {0};
    double values[2];
    struct pm_sample_time time;
    CHECK(pm_sampling_open(&sampling, cupti_of_child(), &options, NULL) == GPUFL_OK);
    CHECK(!pm_sampling_facts(sampling)->has_time_trigger && !pm_sampling_facts(sampling)->keeps_latest);
    CHECK(pm_sampling_start(sampling, NULL) == GPUFL_OK);
    wait_ms(2);
    CHECK(pm_sampling_decode(sampling, &decode, NULL) == GPUFL_OK && decode.sample_count > 1);
    CHECK(pm_sampling_read(sampling, 1, &time, values, NULL) == GPUFL_OK);
    /* Converted to cycles of 1,980 MHz and back, the look-alike's interval is the requested one. */
    CHECK(time.end_ns - time.start_ns == INTERVAL_NS);
    pm_sampling_close(sampling);
}

static void a_gpu_without_a_timer_samples_by_its_clock(void **state)
{
    (void)state;
    /* The major compute capability is the first query: without it the GPU counts as an old one. */
    in_child(CUPTI_NOW, "fail=cuDeviceGetAttribute@1:1", sysclk_body);
}

static void twice_body(void)
{
    struct pm_sampling_options options = plain_options();
    struct cupti *loaded = cupti_of_child();
    struct pm_sampling *one, *two = NULL;
    struct problem problem = {""};
    CHECK(pm_sampling_open(&one, loaded, &options, NULL) == GPUFL_OK);
    CHECK(pm_sampling_open(&two, loaded, &options, &problem) != GPUFL_OK && problem.text[0]);
    options.device_id = 1;
    CHECK(pm_sampling_open(&two, loaded, &options, &problem) == GPUFL_OK);
    pm_sampling_close(one);
    pm_sampling_close(two);
    for (int i = 0; i < 20; i++) {
        options.interval_ns = INTERVAL_NS * (i + 1);
        CHECK(pm_sampling_open(&one, loaded, &options, &problem) == GPUFL_OK);
        CHECK(pm_sampling_start(one, &problem) == GPUFL_OK);
        pm_sampling_close(one);
    }
    pm_sampling_close(NULL);
    CHECK(pm_sampling_open(&one, loaded, &options, &problem) == GPUFL_OK);
    pm_sampling_abandon(one);
}

static void another_configuration_is_another_object(void **state)
{
    (void)state;
    setenv("FAKE_GPU_COUNT", "2", 1);
    in_child(CUPTI_NOW, "", twice_body);
    unsetenv("FAKE_GPU_COUNT");
}

/* A complete use; every failure is a status with a text. Then another one, in which nothing fails any more. */
static void life(struct cupti *loaded, bool may_fail)
{
    struct pm_sampling_options options = plain_options();
    struct pm_sampling *sampling = NULL;
    struct pm_decode decode = {0};
    struct pm_sample_time time;
    double values[2];
    struct problem problem = {""};
    gpufl_status status = pm_sampling_open(&sampling, loaded, &options, &problem);
    if (status == GPUFL_OK)
        status = pm_sampling_start(sampling, &problem);
    if (status == GPUFL_OK) {
        wait_ms(1);
        status = pm_sampling_decode(sampling, &decode, &problem);
    }
    for (size_t i = 0; status == GPUFL_OK && i < decode.sample_count; i++)
        status = pm_sampling_read(sampling, i, &time, values, &problem);
    CHECK(status == GPUFL_OK || (may_fail && problem.text[0]));
    pm_sampling_close(sampling);
}

static void failing_body(void)
{
    struct cupti *loaded = cupti_of_child();
    life(loaded, true);
    const char *failed = cupti_first_failure(loaded);
    CHECK(strstr(getenv("FAKE_FAULTS"), "ProfilerHost") || strstr(failed, "cupti"));
    /* A device that could not be disabled cannot be enabled again. */
    life(loaded, strstr(failed, "cuptiPmSamplingDisable") != NULL);
}

static void every_call_that_fails_leaves_the_next_life_whole(void **state)
{
    (void)state;
#define FUNCTION_NAME(member, symbol, parameters) #symbol,
    static const char *const functions[] = {PM_SAMPLING_ABI_FUNCTIONS(FUNCTION_NAME) "cuptiProfilerInitialize",
                                            "cuptiProfilerDeviceSupported",
                                            "cuptiDeviceGetChipName",
                                            "cuptiProfilerHostInitialize",
                                            "cuptiProfilerHostConfigAddMetrics",
                                            "cuptiProfilerHostGetConfigImage",
                                            "cuptiProfilerHostEvaluateToGpuValues"};
#undef FUNCTION_NAME
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        /* The second call of functions that are called twice. */
        bool is_twice = strstr(functions[i], "Availability") || strstr(functions[i], "ImageInitialize") ||
                        strstr(functions[i], "Evaluate");
        for (int nth = 1; nth <= 1 + is_twice; nth++) {
            char faults[128];
            snprintf(faults, sizeof faults, "fail=%s@%d:999", functions[i], nth);
            in_child(CUPTI_NOW, faults, failing_body);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_have_the_time_and_the_values_of_their_interval),
        cmocka_unit_test(what_cannot_be_sampled_is_refused_with_its_name),
        cmocka_unit_test(more_than_one_pass_is_refused_with_the_metrics_and_the_number),
        cmocka_unit_test(a_refusal_names_who_refuses_and_what_helps),
        cmocka_unit_test(full_buffers_are_distinguished),
        cmocka_unit_test(an_overflow_reported_by_the_result_is_an_overflow),
        cmocka_unit_test(an_object_whose_hardware_buffer_was_full_is_dead_and_a_new_one_is_not),
        cmocka_unit_test(a_gpu_without_a_timer_samples_by_its_clock),
        cmocka_unit_test(another_configuration_is_another_object),
        cmocka_unit_test(every_call_that_fails_leaves_the_next_life_whole),
    };
    environment_clear();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
