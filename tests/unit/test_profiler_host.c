/* SPDX-License-Identifier: Apache-2.0 */
/* The profiler host with the real CUPTI, where installed (it needs no GPU), and with the look-alike while each call
 * fails in turn. Each runs in a separate child: libraries stay mapped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../fakes/fake_client.h"
#include "../fakes/profiler_image.h"
#include "driver/metric_sets.h"
#include "driver/profiler_host.h"
#include "driver/profiler_host_abi.h"
#include "driver/profiler_target.h"
#include "requirement.h"
#include "sanitizer.h"

#include <gpufl/profiler_host.h>
#include <malloc.h>
#include <math.h>
#include <signal.h>

#define CUPTI_NOW "libcupti.so.13"
#define THROUGHPUT "sm__throughput.avg.pct_of_peak_sustained_elapsed"
enum { CHILD_MISSES = 77, MEASURED_VERSION = 130001 };

static struct cupti *real;

/* Runs body with the machine's own CUPTI. */
static void with_real_cupti(void (*body)(void))
{
    if (IS_SANITIZED)
        skip();
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(600);
        signal(SIGABRT, SIG_DFL); /* cmocka's handlers would continue with the next test */
        signal(SIGSEGV, SIG_DFL);
        unsetenv("GPUFL_CUPTI_PATH");
        struct name_list chips;
        if (cupti_load(&real, NULL) != GPUFL_OK || profiler_host_chips(real, &chips, NULL) != GPUFL_OK)
            _exit(CHILD_MISSES);
        name_list_free(&chips);
        body();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    REQUIRE(WEXITSTATUS(status) != CHILD_MISSES, "libcupti with libnvperf_host");
    assert_int_equal(WEXITSTATUS(status), 0);
}

static struct profiler_host *open_host(struct cupti *of, const char *chip, enum profiler_kind kind)
{
    struct profiler_host *host = NULL;
    struct problem problem = {""};
    if (profiler_host_open(&host, of, chip, kind, NULL, 0, &problem) != GPUFL_OK)
        fprintf(stderr, "%s\n", problem.text);
    CHECK(host != NULL);
    return host;
}

static bool has_name(const struct name_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (!strcmp(list->names[i], name))
            return true;
    return false;
}

static size_t metric_count(struct profiler_host *host, enum metric_type type)
{
    struct name_list list;
    CHECK(profiler_host_base_metrics(host, type, &list, NULL) == GPUFL_OK);
    size_t count = list.count;
    CHECK(list.names[count] == NULL);
    name_list_free(&list);
    return count;
}

static void catalogue_body(void)
{
    struct name_list chips, suffixes;
    CHECK(profiler_host_chips(real, &chips, NULL) == GPUFL_OK);
    CHECK(chips.count >= 30);
    CHECK(has_name(&chips, "GH100") && has_name(&chips, "TU102") && has_name(&chips, "GB100"));
    name_list_free(&chips);
    struct profiler_host *host = open_host(real, "GH100", PROFILER_RANGE);
    CHECK(metric_count(host, METRIC_COUNTER) >= 3000);
    CHECK(metric_count(host, METRIC_RATIO) >= 200);
    CHECK(metric_count(host, METRIC_THROUGHPUT) >= 50);
    struct metric_properties properties;
    CHECK(profiler_host_properties(host, "dram__bytes_read.sum", &properties, NULL) == GPUFL_OK);
    CHECK(properties.type == METRIC_COUNTER && !strcmp(properties.unit, "byte") && properties.description[0]);
    metric_properties_free(&properties);
    CHECK(profiler_host_sub_metrics(host, "sm__throughput", METRIC_THROUGHPUT, &suffixes, NULL) == GPUFL_OK);
    CHECK(has_name(&suffixes, ".avg.pct_of_peak_sustained_elapsed"));
    name_list_free(&suffixes);
    profiler_host_close(host);
    host = open_host(real, "GH100", PROFILER_PM_SAMPLING);
    CHECK(metric_count(host, METRIC_COUNTER) >= 600);
    profiler_host_close(host);
}

static void real_cupti_lists_chips_and_metrics_without_a_gpu(void **state)
{
    (void)state;
    with_real_cupti(catalogue_body);
}

static size_t passes_of(struct profiler_host *host, const char *const *metrics, size_t count)
{
    struct metric_plan plan;
    struct problem problem = {""};
    if (profiler_host_plan(host, metrics, count, &plan, &problem) != GPUFL_OK)
        fprintf(stderr, "%s\n", problem.text);
    CHECK(!problem.text[0]);
    CHECK(plan.image && plan.image_bytes);
    size_t passes, again = 0;
    passes = plan.passes;
    CHECK(profiler_host_passes(host, plan.image, plan.image_bytes, &again, NULL) == GPUFL_OK && again == passes);
    metric_plan_free(&plan);
    return passes;
}

static void plan_body(void)
{
    static const char *const busy[] = {THROUGHPUT};
    static const char *const compute_memory[] = {"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"};
    static const char *const light[] = {"sm__warps_active.avg.pct_of_peak_sustained_active", "dram__bytes.sum"};
    static const char *const dram[] = {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"};
    struct profiler_host *host = open_host(real, "GH100", PROFILER_RANGE);
    struct profiler_host *sampler = open_host(real, "GH100", PROFILER_PM_SAMPLING);
    /* Twice: plans of one host must not add up. */
    for (int i = 0; i < 2; i++) {
        size_t busy_passes = passes_of(host, busy, 1);
        CHECK(busy_passes > 1);
        CHECK(passes_of(host, light, 2) == 1);
        size_t compute_passes = passes_of(host, compute_memory, 1);
        CHECK(compute_passes > 1);
        CHECK(passes_of(sampler, dram, 1) == 1);
        if (cupti_version(real) == MEASURED_VERSION) {
            CHECK(busy_passes == 8);
            CHECK(compute_passes == 5);
            CHECK(passes_of(sampler, busy, 1) == 19);
        }
    }
    size_t per_pass = 0;
    CHECK(profiler_host_metrics_per_pass(host, &per_pass, NULL) == GPUFL_OK && per_pass >= 16);
    uint8_t garbage[64] = "this is not a configuration image";
    size_t passes = 77;
    CHECK(profiler_host_passes(host, garbage, sizeof garbage, &passes, NULL) == GPUFL_E_DAMAGED && passes == 77);
    CHECK(profiler_host_passes(host, garbage, 0, &passes, NULL) == GPUFL_E_DAMAGED && passes == 77);
    profiler_host_close(sampler);
    profiler_host_close(host);
}

static void real_cupti_plans_passes_as_measured(void **state)
{
    (void)state;
    with_real_cupti(plan_body);
}

static void check_refused(struct profiler_host *host, const char *metric, const char *part)
{
    static const char good[] = "sm__cycles_active.avg";
    const char *metrics[] = {good, metric};
    struct metric_plan plan = {0};
    struct problem problem = {""};
    CHECK(profiler_host_plan(host, metrics, 2, &plan, &problem) == GPUFL_E_INVALID);
    if (!strstr(problem.text, part))
        fprintf(stderr, "'%s' does not say '%s'\n", problem.text, part);
    CHECK(strstr(problem.text, part) != NULL && plan.image == NULL);
    CHECK(passes_of(host, metrics, 1) == 1); /* the host still works */
}

static void refusal_body(void)
{
    struct problem problem = {""};
    struct profiler_host *host = NULL;
    CHECK(profiler_host_open(&host, real, "GH10", PROFILER_RANGE, NULL, 0, &problem) == GPUFL_E_INVALID);
    CHECK(strstr(problem.text, "'GH10'") && strstr(problem.text, "did you mean 'GH100'") && host == NULL);
    CHECK(profiler_host_open(&host, real, "Pentium", PROFILER_RANGE, NULL, 0, &problem) == GPUFL_E_INVALID);
    CHECK(strstr(problem.text, "gpufl metrics chips") != NULL);
    CHECK(profiler_host_open(&host, real, "", PROFILER_RANGE, NULL, 0, &problem) == GPUFL_E_INVALID);
    host = open_host(real, "GH100", PROFILER_RANGE);
    check_refused(host, "sm__warps_actve.avg",
                  "'sm__warps_actve' for the range profiler; did you mean 'sm__warps_active'");
    check_refused(host, "sm__warps_active.avrg", "did you mean 'sm__warps_active.avg'");
    check_refused(host, "sm__warps_active", "needs a suffix, for example 'sm__warps_active.");
    check_refused(host, "frobnicate", "gpufl metrics list --chip GH100");
    check_refused(host, "", "not a metric name");
    struct metric_properties properties;
    CHECK(profiler_host_properties(host, "dram__bytez", &properties, &problem) == GPUFL_E_INVALID);
    CHECK(strstr(problem.text, "did you mean 'dram__bytes'") != NULL);
    struct name_list list;
    CHECK(profiler_host_sub_metrics(host, "dram__bytez", METRIC_COUNTER, &list, &problem) == GPUFL_E_INVALID);
    CHECK(strstr(problem.text, "did you mean 'dram__bytes'") != NULL);
    profiler_host_close(host);
    host = open_host(real, "GB100", PROFILER_PM_SAMPLING);
    check_refused(host, "pcie__read_bytes.sum", "for the range profiler only, not for PM sampling");
    profiler_host_close(host);
    if (cupti_version(real) < 130200) {
        CHECK(profiler_host_single_pass_sets(real, "GH100", &list, &problem) == GPUFL_E_UNSUPPORTED);
        CHECK(strstr(problem.text, "13.2") != NULL);
    } else {
        CHECK(profiler_host_single_pass_sets(real, "GH100", &list, &problem) == GPUFL_OK && list.count);
        name_list_free(&list);
    }
    /* CUPTI itself would crash here. */
    char chip[PROFILER_CHIP_NAME_BYTES];
    CHECK(profiler_target_chip(real, 0, chip, &problem) == GPUFL_E_NO_DRIVER);
}

static void a_wrong_chip_metric_or_suffix_is_named_with_the_nearest(void **state)
{
    (void)state;
    with_real_cupti(refusal_body);
}

static void hundred_body(void)
{
    static const char *const metrics[] = {THROUGHPUT};
    size_t used_early = 0;
    for (int i = 0; i < 100; i++) {
        struct profiler_host *host = open_host(real, i % 2 ? "GH100" : "AD102", (enum profiler_kind)(i / 2 % 2));
        CHECK(passes_of(host, metrics, 1) > 1);
        profiler_host_close(host);
        if (i == 20)
            used_early = (unsigned)mallinfo().uordblks; /* mallinfo2 needs glibc 2.33 */
    }
    CHECK((unsigned)mallinfo().uordblks < used_early + (256 << 10));
}

static void a_hundred_hosts_leave_nothing_behind(void **state)
{
    (void)state;
    with_real_cupti(hundred_body);
}

static struct cupti *cupti_of_child(void)
{
    struct cupti *loaded = NULL;
    CHECK(cupti_load(&loaded, NULL) == GPUFL_OK);
    return loaded;
}

static struct counter_data_image *two_ranges(const char *first, const char *second, size_t *bytes)
{
    *bytes = counter_data_image_bytes(2);
    struct counter_data_image *image = calloc(1, *bytes);
    CHECK(image != NULL);
    image->magic = COUNTER_DATA_IMAGE_MAGIC;
    image->count = image->capacity = image->metric_count = 2;
    snprintf(image->metrics[0], sizeof image->metrics[0], "%s", first);
    snprintf(image->metrics[1], sizeof image->metrics[1], "%s", second);
    image->ranges[1].values[0] = 2.5;
    image->ranges[1].values[1] = 7;
    return image;
}

static void evaluate_body(void)
{
    static const char *const metrics[] = {"a__a.sum", "b__b.sum", "c__c.sum", "d__d.sum", "e__e.sum"};
    struct profiler_host *host = open_host(cupti_of_child(), "GH100", PROFILER_RANGE);
    CHECK(passes_of(host, metrics, 5) == 2);
    CHECK(passes_of(host, metrics, 4) == 1);
    size_t bytes;
    struct counter_data_image *image = two_ranges(metrics[1], metrics[0], &bytes);
    double values[3] = {0};
    struct problem problem = {""};
    CHECK(profiler_host_evaluate(host, (uint8_t *)image, bytes, 1, metrics, 3, values, &problem) == GPUFL_OK);
    CHECK(values[0] == 7 && values[1] == 2.5 && isnan(values[2]));
    CHECK(profiler_host_evaluate(host, (uint8_t *)image, bytes, 2, metrics, 3, values, &problem) != GPUFL_OK);
    CHECK(isnan(values[0]) && strstr(problem.text, "cuptiProfilerHostEvaluateToGpuValues") != NULL);
    free(image);
    profiler_host_close(host);
}

static void unevaluable_body(void)
{
    static const char *const metrics[] = {"a__a.sum", "b__b.sum"};
    struct profiler_host *host = open_host(cupti_of_child(), "GH100", PROFILER_RANGE);
    size_t bytes;
    struct counter_data_image *image = two_ranges(metrics[0], metrics[1], &bytes);
    double values[2] = {0};
    struct problem problem = {""};
    CHECK(profiler_host_evaluate(host, (uint8_t *)image, bytes, 1, metrics, 2, values, &problem) == GPUFL_OK);
    CHECK(isnan(values[0]) && values[1] == 7);
    CHECK(profiler_host_evaluate(host, (uint8_t *)image, bytes, 1, metrics, 1, values, &problem) != GPUFL_OK);
    free(image);
    profiler_host_close(host);
}

static void values_come_out_of_counter_data_and_unknown_is_nan(void **state)
{
    (void)state;
    in_child(CUPTI_NOW, "", evaluate_body);
}

static void single_pass_body(void)
{
    struct cupti *loaded = cupti_of_child();
    struct name_list list;
    struct problem problem = {""};
    CHECK(profiler_host_single_pass_sets(loaded, "GH100", &list, &problem) == GPUFL_OK);
    CHECK(list.count == 1 && has_name(&list, "TriageCompute"));
    name_list_free(&list);
    CHECK(profiler_host_single_pass_metrics(loaded, "GH100", "TriageCompute", &list, &problem) == GPUFL_OK);
    CHECK(list.count == 2 && has_name(&list, "sm__cycles_active.avg") && has_name(&list, "sm__warps_active.avg"));
    name_list_free(&list);
    CHECK(profiler_host_single_pass_metrics(loaded, "GH100", "TriageCompte", &list, &problem) == GPUFL_E_INVALID);
    CHECK(strstr(problem.text, "did you mean 'TriageCompute'") != NULL);
    CHECK(profiler_host_single_pass_sets(loaded, "GH1000", &list, &problem) == GPUFL_E_INVALID);
}

static void single_pass_sets_are_read_where_cupti_has_them(void **state)
{
    (void)state;
    in_child(CUPTI_NOW, "", single_pass_body);
}

/* Uses every function of a host; returns the number of reported failures. */
static int use_everything(void)
{
    static const char *const metrics[] = {"sm__warps_active.avg"};
    struct cupti *loaded = cupti_of_child();
    struct problem problem = {""};
    struct name_list list;
    int failures = 0;
    gpufl_status status = profiler_host_chips(loaded, &list, &problem);
    if (status == GPUFL_OK)
        name_list_free(&list);
    failures += status != GPUFL_OK;
    struct profiler_host *host = NULL;
    if (profiler_host_open(&host, loaded, "GH100", PROFILER_RANGE, NULL, 0, &problem) != GPUFL_OK)
        return failures + 1;
    struct metric_properties properties;
    struct metric_plan plan;
    size_t per_pass;
    double value;
    struct counter_data_image image = {COUNTER_DATA_IMAGE_MAGIC, 0, 0, 0, {{0}}};
    status = profiler_host_base_metrics(host, METRIC_RATIO, &list, &problem);
    if (status == GPUFL_OK)
        name_list_free(&list);
    failures += status != GPUFL_OK;
    status = profiler_host_sub_metrics(host, metrics[0], METRIC_COUNTER, &list, &problem);
    if (status == GPUFL_OK)
        name_list_free(&list);
    failures += status != GPUFL_OK;
    status = profiler_host_properties(host, metrics[0], &properties, &problem);
    if (status == GPUFL_OK)
        metric_properties_free(&properties);
    failures += status != GPUFL_OK;
    status = profiler_host_plan(host, metrics, 1, &plan, &problem);
    if (status == GPUFL_OK)
        metric_plan_free(&plan);
    failures += status != GPUFL_OK;
    failures += profiler_host_metrics_per_pass(host, &per_pass, &problem) != GPUFL_OK;
    /* An invalid range: always fails, and is not counted. */
    CHECK(profiler_host_evaluate(host, (const uint8_t *)&image, sizeof image, 0, metrics, 1, &value, NULL) != GPUFL_OK);
    profiler_host_close(host);
    return failures;
}

static void a_metric_that_cannot_be_evaluated_does_not_cost_the_others_their_values(void **state)
{
    (void)state;
    in_child(CUPTI_NOW, "unevaluable_metric=a__a", unevaluable_body);
}

static int failures_expected;

static void everything_body(void)
{
    int failures = use_everything();
    if (failures != failures_expected)
        fprintf(stderr, "%s: %d failures, not %d\n", getenv("FAKE_FAULTS"), failures, failures_expected);
    CHECK(failures == failures_expected);
    CHECK(use_everything() == 0); /* once only, and nothing is left broken */
}

static void each_call_of_cupti_may_fail(void **state)
{
    (void)state;
    failures_expected = 0;
    in_child(CUPTI_NOW, "", everything_body);
    static const char *const functions[] = {
#define FUNCTION_NAME(member, symbol, parameter) #symbol,
        PROFILER_HOST_ABI_FUNCTIONS(FUNCTION_NAME)
#undef FUNCTION_NAME
    };
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        /* Not called here, or its failure has no effect, or it is retried. */
        bool is_silent = strstr(functions[i], "SinglePass") || strstr(functions[i], "Evaluate") ||
                         strstr(functions[i], "Deinitialize") || strstr(functions[i], "AddMetrics");
        char faults[128];
        snprintf(faults, sizeof faults, "fail=%s@1:999", functions[i]);
        failures_expected = !is_silent;
        in_child(CUPTI_NOW, faults, everything_body);
    }
}

static void no_nvperf_body(void)
{
    struct profiler_host *host;
    struct problem problem = {""};
    CHECK(profiler_host_open(&host, cupti_of_child(), "GH100", PROFILER_RANGE, NULL, 0, &problem) == GPUFL_E_NOT_FOUND);
    CHECK(strstr(problem.text, "libnvperf_host.so") && strstr(problem.text, FAKES_DIR));
}

static void a_missing_libnvperf_is_named_with_its_place(void **state)
{
    (void)state;
    in_child(CUPTI_NOW, "fail=cuptiProfilerHostInitialize@1:15", no_nvperf_body);
}

static void public_api_body(void)
{
    static const char *const metrics[] = {"sm__warps_active.avg", NULL};
    gpufl_name_list list = GPUFL_NAME_LIST_INIT, uninitialized = {0};
    gpufl_profiler_host *host = NULL;
    CHECK(gpufl_profiler_host_chips(NULL) == GPUFL_E_INVALID && strstr(gpufl_last_error(), "profiler host"));
    CHECK(gpufl_profiler_host_chips(&uninitialized) == GPUFL_E_INVALID && strstr(gpufl_last_error(), "LIST_INIT"));
    CHECK(gpufl_profiler_host_chips(&list) == GPUFL_OK && list.count == 5 && !strcmp(list.names[2], "GH100"));
    gpufl_name_list_free(&list);
    CHECK(list.names == NULL && list.count == 0 && list.struct_size == sizeof list);
    CHECK(gpufl_profiler_host_open(&host, "GH10", GPUFL_PROFILER_RANGE, NULL, 0) == GPUFL_E_INVALID);
    CHECK(strstr(gpufl_last_error(), "GH100") && host == NULL);
    CHECK(gpufl_profiler_host_open(&host, "GH100", (gpufl_profiler_kind)7, NULL, 0) == GPUFL_E_INVALID);
    CHECK(gpufl_profiler_host_open(&host, "GH100", GPUFL_PROFILER_RANGE, NULL, 0) == GPUFL_OK);
    CHECK(gpufl_profiler_host_base_metrics(host, (gpufl_metric_type)3, &list) == GPUFL_E_INVALID);
    CHECK(gpufl_profiler_host_base_metrics(host, GPUFL_METRIC_THROUGHPUT, &list) == GPUFL_OK && list.count == 2);
    gpufl_name_list_free(&list);
    CHECK(gpufl_profiler_host_sub_metrics(host, "sm__throughput", GPUFL_METRIC_THROUGHPUT, &list) == GPUFL_OK);
    gpufl_name_list_free(&list);
    gpufl_metric_properties properties = GPUFL_METRIC_PROPERTIES_INIT;
    CHECK(gpufl_profiler_host_metric_properties(host, "dram__bytes_read.sum", &properties) == GPUFL_OK);
    CHECK(properties.type == GPUFL_METRIC_COUNTER && !strcmp(properties.unit, "byte"));
    gpufl_metric_properties_free(&properties);
    gpufl_config_image image = GPUFL_CONFIG_IMAGE_INIT;
    CHECK(gpufl_profiler_host_config_image(host, metrics, 0, &image) == GPUFL_E_INVALID);
    CHECK(gpufl_profiler_host_config_image(host, metrics, 2, &image) == GPUFL_E_INVALID);
    CHECK(gpufl_profiler_host_config_image(host, metrics, 1, &image) == GPUFL_OK && image.passes == 1);
    size_t passes = 0, per_pass = 0;
    CHECK(gpufl_profiler_host_passes(host, image.bytes, image.size, &passes) == GPUFL_OK && passes == 1);
    CHECK(gpufl_profiler_host_metrics_per_pass(host, &per_pass) == GPUFL_OK && per_pass == 4);
    double value;
    CHECK(gpufl_profiler_host_evaluate(host, image.bytes, image.size, 0, metrics, 1, &value) != GPUFL_OK);
    gpufl_config_image_free(&image);
    gpufl_profiler_host_close(host);
    gpufl_profiler_host_close(NULL);
    CHECK(gpufl_profiler_host_single_pass_sets("GH100", &list) == GPUFL_OK && list.count == 1);
    gpufl_name_list_free(&list);
    char chip[4];
    CHECK(gpufl_profiler_host_device_chip(0, chip, sizeof chip) == GPUFL_E_NO_DRIVER);
    CHECK(cu.init(0) == FAKE_SUCCESS);
    CHECK(gpufl_profiler_host_device_chip(0, chip, sizeof chip) == GPUFL_E_INVALID);
    char long_chip[16];
    CHECK(gpufl_profiler_host_device_chip(0, long_chip, sizeof long_chip) == GPUFL_OK && !strcmp(long_chip, "GH100"));
    CHECK(gpufl_profiler_host_device_chip(9, long_chip, sizeof long_chip) == GPUFL_E_INVALID);
    setenv("GPUFL_DISABLED", "1", 1);
    CHECK(gpufl_profiler_host_chips(&list) == GPUFL_E_DISABLED);
}

static void the_c_api_checks_its_arguments_and_keeps_the_reason(void **state)
{
    (void)state;
    in_child(CUPTI_NOW, "", public_api_body);
}

int main(void)
{
    environment_clear();
    unsetenv("GPUFL_DISABLED");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_cupti_lists_chips_and_metrics_without_a_gpu),
        cmocka_unit_test(real_cupti_plans_passes_as_measured),
        cmocka_unit_test(a_wrong_chip_metric_or_suffix_is_named_with_the_nearest),
        cmocka_unit_test(a_hundred_hosts_leave_nothing_behind),
        cmocka_unit_test(values_come_out_of_counter_data_and_unknown_is_nan),
        cmocka_unit_test(single_pass_sets_are_read_where_cupti_has_them),
        cmocka_unit_test(a_metric_that_cannot_be_evaluated_does_not_cost_the_others_their_values),
        cmocka_unit_test(each_call_of_cupti_may_fail),
        cmocka_unit_test(a_missing_libnvperf_is_named_with_its_place),
        cmocka_unit_test(the_c_api_checks_its_arguments_and_keeps_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
