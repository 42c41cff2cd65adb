/* SPDX-License-Identifier: Apache-2.0 */
/* The range profiler's calls against the look-alike CUPTI, and a counter-data
 * image recorded on a real GPU evaluated by the real profiler host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "range_fixture.h"
#include "requirement.h"

#include "driver/cupti_table.h"
#include "driver/metric_sets.h"
#include "driver/profiler_target.h"
#include "driver/range_profiler.h"
#include "sanitizer.h"
#include "recording.h"

#include <math.h>
#include <zstd.h>

static struct {
    struct cupti *library;
    struct fake_context *context;
    struct profiler_host *host;
    struct metric_plan plan;
    struct range_profiler *profiler;
    uint8_t *image;
    size_t image_bytes;
    struct problem problem;
} at;

static void profiler_start(size_t ranges_max)
{
    CHECK(cu.init(0) == FAKE_SUCCESS && launch(SHORT_KERNEL, NULL) == FAKE_SUCCESS);
    CHECK(cupti_load(&at.library, &at.problem) == GPUFL_OK);
    at.context = primary_context(0);
    CHECK(profiler_target_acquire(at.library, &at.problem) == GPUFL_OK);
    CHECK(profiler_host_open(&at.host, at.library, "GH100", PROFILER_RANGE, NULL, 0, &at.problem) == GPUFL_OK);
    CHECK(profiler_host_plan(at.host, range_metrics, METRIC_COUNT, &at.plan, &at.problem) == GPUFL_OK);
    CHECK(at.plan.passes == PASSES);
    CHECK(range_profiler_open(&at.profiler, at.library, at.context, &at.problem) == GPUFL_OK);
    CHECK(range_profiler_image_bytes(at.profiler, range_metrics, METRIC_COUNT, ranges_max, &at.image_bytes,
                                     &at.problem) == GPUFL_OK);
    at.image = malloc(at.image_bytes);
    CHECK(range_profiler_image_reset(at.profiler, at.image, at.image_bytes, &at.problem) == GPUFL_OK);
}

static void profiler_end(void)
{
    range_profiler_close(at.profiler);
    metric_plan_free(&at.plan);
    profiler_host_close(at.host);
    profiler_target_release(at.library);
    free(at.image);
}

static struct range_config config_of(enum range_kind kind, size_t ranges_max, size_t pass_index)
{
    return (struct range_config){kind, &at.plan, at.image, at.image_bytes, ranges_max, {pass_index, 1}};
}

static struct range_pass one_pass(void)
{
    struct range_pass pass;
    CHECK(range_profiler_start(at.profiler, &at.problem) == GPUFL_OK);
    CHECK(range_profiler_push(at.profiler, "step", &at.problem) == GPUFL_OK);
    launches(2);
    CHECK(range_profiler_pop(at.profiler, &at.problem) == GPUFL_OK);
    CHECK(range_profiler_stop(at.profiler, &pass, &at.problem) == GPUFL_OK);
    return pass;
}

static void check_one_range(const char *expected_name, size_t known_values)
{
    size_t dropped = 9, count, known = 0;
    char name[32];
    double values[METRIC_COUNT];
    CHECK(range_profiler_decode(at.profiler, &dropped, &at.problem) == GPUFL_OK && dropped == 0);
    CHECK(range_image_count(at.library, at.image, at.image_bytes, &count, &at.problem) == GPUFL_OK && count == 1);
    CHECK(range_image_name(at.library, at.image, at.image_bytes, 0, name, sizeof name, &at.problem) == GPUFL_OK);
    CHECK(!strcmp(name, expected_name));
    CHECK(profiler_host_evaluate(at.host, at.image, at.image_bytes, 0, range_metrics, METRIC_COUNT, values,
                                 &at.problem) == GPUFL_OK);
    for (size_t i = 0; i < METRIC_COUNT; i++)
        known += isfinite(values[i]);
    CHECK(known == known_values);
}

static void named_body(void)
{
    profiler_start(1);
    struct range_config config = config_of(RANGE_NAMED, 1, 0);
    CHECK(range_profiler_configure(at.profiler, &config, &at.problem) == GPUFL_OK);
    struct range_pass pass = one_pass();
    CHECK(!pass.is_last && pass.next.pass_index == 1 && pass.next.nesting_level == 1);
    CHECK(!one_pass().is_last);
    CHECK(one_pass().is_last);
    check_one_range("step", METRIC_COUNT);
    profiler_end();
}

static void a_named_range_is_complete_after_all_passes(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", named_body);
}

static void resumed_body(void)
{
    profiler_start(1);
    for (size_t pass_index = 0; pass_index < PASSES; pass_index++) {
        struct range_config config = config_of(RANGE_NAMED, 1, pass_index);
        CHECK(range_profiler_configure(at.profiler, &config, &at.problem) == GPUFL_OK);
        CHECK(one_pass().is_last == (pass_index == PASSES - 1));
        check_one_range("step", pass_index == PASSES - 1 ? METRIC_COUNT : 4 * (pass_index + 1));
    }
    profiler_end();
}

static void a_named_range_goes_on_where_it_was_interrupted(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", resumed_body);
}

static void kernels_body(void)
{
    size_t dropped, count;
    char name[2];
    struct range_pass pass;
    profiler_start(3);
    struct range_config config = config_of(RANGE_KERNELS, 3, 0);
    CHECK(range_profiler_configure(at.profiler, &config, &at.problem) == GPUFL_OK);
    CHECK(range_profiler_start(at.profiler, &at.problem) == GPUFL_OK);
    launches(5);
    CHECK(range_profiler_stop(at.profiler, &pass, &at.problem) == GPUFL_OK && pass.is_last);
    CHECK(range_profiler_decode(at.profiler, &dropped, &at.problem) == GPUFL_OK && dropped == 2);
    CHECK(range_image_count(at.library, at.image, at.image_bytes, &count, &at.problem) == GPUFL_OK && count == 3);
    CHECK(range_image_name(at.library, at.image, at.image_bytes, 2, name, sizeof name, &at.problem) == GPUFL_OK);
    CHECK(!strcmp(name, "2"));
    CHECK(range_image_name(at.library, at.image, at.image_bytes, 3, name, sizeof name, &at.problem) != GPUFL_OK);
    profiler_end();
}

static void kernels_beyond_the_image_are_reported_as_dropped(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", kernels_body);
}

static void refused_body(void)
{
    CHECK(cu.init(0) == FAKE_SUCCESS && launch(SHORT_KERNEL, NULL) == FAKE_SUCCESS);
    CHECK(cupti_load(&at.library, &at.problem) == GPUFL_OK);
    at.context = primary_context(0);
    CHECK(range_profiler_open(&at.profiler, at.library, at.context, &at.problem) == GPUFL_E_PERMISSION);
    CHECK(strstr(at.problem.text, "cuptiRangeProfilerEnable") && strstr(at.problem.text, "CAP_PERFMON"));
    CHECK(!at.profiler);
}

static void a_refusal_names_the_call_and_the_way_out(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "fail=cuptiRangeProfilerEnable@1:35", refused_body);
}

static void a_library_without_the_functions_has_a_separate_status(void **state)
{
    (void)state;
    static struct cupti old; /* no library: no symbol is found */
    struct problem problem = {""};
    struct range_profiler *profiler = NULL;
    size_t count;
    old.library.handle = dlopen("libm.so.6", RTLD_NOW);
    assert_int_equal(range_profiler_open(&profiler, &old, &old, &problem), GPUFL_E_UNSUPPORTED);
    assert_non_null(strstr(problem.text, "cuptiRangeProfilerEnable"));
    assert_null(profiler);
    assert_int_equal(range_image_count(&old, (const uint8_t *)"x", 1, &count, &problem), GPUFL_E_UNSUPPORTED);
}

/* ---- a recording, see tests/recordings/record_range.cu ---- */

static const char *recording_text(struct recording *recording)
{
    uint32_t size = recording_u32(recording);
    const char *text = recording_take(recording, size);
    assert_true(size && !text[size - 1]);
    return text;
}

static void recording_check(struct recording *recording, struct cupti *library)
{
    struct problem problem = {""};
    struct profiler_host *host;
    const char *names[METRICS_MAX];
    struct metric_plan plan;
    double values[METRICS_MAX], expected;
    assert_memory_equal(recording_take(recording, 8), "RANGEREC", 8);
    assert_int_equal(recording_u32(recording), 1);
    const char *chip = recording_text(recording);
    uint32_t passes = recording_u32(recording), metric_count = recording_u32(recording);
    assert_in_range(metric_count, 1, METRICS_MAX);
    for (uint32_t i = 0; i < metric_count; i++)
        names[i] = recording_text(recording);
    uint32_t range_count = recording_u32(recording), image_bytes = recording_u32(recording);
    uint8_t *image = malloc(image_bytes); /* aligned, as CUPTI wants it */
    memcpy(image, recording_take(recording, image_bytes), image_bytes);
    if (profiler_host_open(&host, library, chip, PROFILER_RANGE, NULL, 0, &problem) != GPUFL_OK)
        fail_msg("%s", problem.text);
    assert_int_equal(profiler_host_plan(host, names, metric_count, &plan, &problem), GPUFL_OK);
    assert_int_equal(plan.passes, passes);
    size_t count;
    assert_int_equal(range_image_count(library, image, image_bytes, &count, &problem), GPUFL_OK);
    assert_int_equal(count, range_count);
    for (uint32_t range = 0; range < range_count; range++) {
        char name[128];
        assert_int_equal(range_image_name(library, image, image_bytes, range, name, sizeof name, &problem), GPUFL_OK);
        assert_string_equal(name, recording_text(recording));
        assert_int_equal(profiler_host_evaluate(host, image, image_bytes, range, names, metric_count, values, &problem),
                         GPUFL_OK);
        for (uint32_t i = 0; i < metric_count; i++) {
            memcpy(&expected, recording_take(recording, sizeof expected), sizeof expected);
            if (isfinite(expected) ? fabs(values[i] - expected) > 1e-9 * fabs(expected) : isfinite(values[i]))
                fail_msg("range %u: %s is %g, was %g", range, names[i], values[i], expected);
        }
    }
    metric_plan_free(&plan);
    profiler_host_close(host);
    free(image);
}

static void counters_recorded_on_an_h200_evaluate_to_the_same_values(void **state)
{
    (void)state;
    static uint8_t packed[1 << 20];
    struct recording recording = {0};
    struct cupti *library;
    if (IS_SANITIZED)
        skip();
    FILE *file = fopen(SOURCE_DIR "/tests/recordings/h200_range.rangerec.zst", "rb");
    REQUIRE(file, "tests/recordings/h200_range.rangerec.zst");
    size_t packed_bytes = fread(packed, 1, sizeof packed, file);
    fclose(file);
    recording.size = (size_t)ZSTD_getFrameContentSize(packed, packed_bytes);
    assert_in_range(recording.size, 1, 64 << 20);
    recording.data = malloc(recording.size);
    assert_int_equal(ZSTD_decompress(recording.data, recording.size, packed, packed_bytes), recording.size);
    REQUIRE(cupti_load(&library, NULL) == GPUFL_OK, "libcupti");
    recording_check(&recording, library);
    free(recording.data);
}

int main(void)
{
    environment_clear();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_named_range_is_complete_after_all_passes),
        cmocka_unit_test(a_named_range_goes_on_where_it_was_interrupted),
        cmocka_unit_test(kernels_beyond_the_image_are_reported_as_dropped),
        cmocka_unit_test(a_refusal_names_the_call_and_the_way_out),
        cmocka_unit_test(a_library_without_the_functions_has_a_separate_status),
        cmocka_unit_test(counters_recorded_on_an_h200_evaluate_to_the_same_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
