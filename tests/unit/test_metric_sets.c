/* SPDX-License-Identifier: Apache-2.0 */
/* The named sets: parsing; and, with the machine's own CUPTI, that the chips support the metrics of the sets, and in
 * how many passes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/metric_sets.h"
#include "requirement.h"
#include "sanitizer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct metric_choice choice;

static void sets_are_unique_and_fit_a_choice(void **state)
{
    (void)state;
    static const char *const range_names[] = {"overview", "memory", "compute", "occupancy", "tensor"};
    static const char *const pm_names[] = {"overview", "sm", "memory", "tensor", "links"};
    for (size_t i = 0; i < 5; i++) {
        assert_non_null(metric_set_find(PROFILER_RANGE, range_names[i]));
        assert_non_null(metric_set_find(PROFILER_PM_SAMPLING, pm_names[i]));
    }
    assert_null(metric_set_find(PROFILER_RANGE, "links"));
    for (size_t i = 0; i < metric_set_count; i++) {
        const struct metric_set *set = &metric_sets[i];
        assert_ptr_equal(metric_set_find(set->kind, set->name), set);
        size_t count = 0;
        for (; set->metrics[count]; count++) {
            assert_non_null(strstr(set->metrics[count], "__"));
            assert_non_null(strchr(set->metrics[count], '.'));
            assert_true(strlen(set->metrics[count]) < METRIC_NAME_BYTES);
            for (size_t other = 0; other < count; other++)
                assert_string_not_equal(set->metrics[count], set->metrics[other]);
        }
        assert_int_equal(metric_choice_parse(&choice, set->kind, set->name, NULL), GPUFL_OK);
        assert_string_equal(choice.name, set->name);
        assert_int_equal(choice.count, count);
        for (size_t m = 0; m < count; m++)
            assert_string_equal(choice.list[m], set->metrics[m]);
    }
}

static void words_may_be_sets_and_metrics_in_one_line(void **state)
{
    (void)state;
    size_t set_count = 0;
    while (metric_set_find(PROFILER_RANGE, "tensor")->metrics[set_count])
        set_count++;
    assert_int_equal(metric_choice_parse(&choice, PROFILER_RANGE, " tensor ,, a__b.sum,sm__inst_executed.sum\n,", NULL),
                     GPUFL_OK);
    assert_string_equal(choice.name, "custom");
    assert_int_equal(choice.count, set_count + 1); /* the last one is in the set already */
    assert_string_equal(choice.list[set_count], "a__b.sum");
    assert_true(choice.is_named[set_count]);
    assert_false(choice.is_named[0]);
    size_t named = 0;
    for (size_t i = 0; i < choice.count; i++)
        named += choice.is_named[i];
    assert_int_equal(named, 2);
    assert_int_equal(metric_choice_parse(&choice, PROFILER_RANGE, "a__b.sum", NULL), GPUFL_OK);
    assert_string_equal(choice.name, "custom");
}

static void wrong_words_are_named_with_the_nearest_set(void **state)
{
    (void)state;
    struct problem problem = {""};
    assert_int_equal(metric_choice_parse(&choice, PROFILER_RANGE, "memory,overvew", &problem), GPUFL_E_INVALID);
    assert_string_equal(problem.text, "no metric set 'overvew'; did you mean 'overview'?");
    assert_int_equal(choice.count, 0);
    assert_int_equal(metric_choice_parse(&choice, PROFILER_PM_SAMPLING, "compute", &problem), GPUFL_E_INVALID);
    assert_non_null(strstr(problem.text, "'compute'"));
    assert_int_equal(metric_choice_parse(&choice, PROFILER_RANGE, " , ", &problem), GPUFL_E_INVALID);
    char text[METRICS_MAX * 16 + 64] = "";
    for (size_t i = 0; i <= METRICS_MAX; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "m__%zu.sum,", i);
    assert_int_equal(metric_choice_parse(&choice, PROFILER_RANGE, text, &problem), GPUFL_E_LIMIT);
    memset(text, 'x', METRIC_NAME_BYTES);
    text[METRIC_NAME_BYTES] = '\0';
    assert_int_equal(metric_choice_parse(&choice, PROFILER_RANGE, text, &problem), GPUFL_E_INVALID);
    assert_int_equal(metric_choice_parse(&choice, PROFILER_RANGE, "", &problem), GPUFL_E_INVALID);
}

static void overview_and_memory_fill_the_columns_of_wire_v1(void **state)
{
    (void)state;
    static const char *const columns[] = {"sm_throughput_pct",
                                          "l1_hit_rate_pct",
                                          "l2_hit_rate_pct",
                                          "dram_read_bytes",
                                          "dram_write_bytes",
                                          "tensor_active_pct",
                                          "achieved_occupancy_pct",
                                          "shared_load_bank_conflicts",
                                          "shared_store_bank_conflicts",
                                          "shared_bank_conflicts",
                                          "shared_wavefronts"};
    assert_int_equal(metric_choice_parse(&choice, PROFILER_RANGE, "overview,memory", NULL), GPUFL_OK);
    for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++) {
        size_t found = 0;
        for (size_t i = 0; i < choice.count; i++) {
            const char *column = metric_wire_name(choice.list[i]);
            found += column && !strcmp(column, columns[c]);
        }
        assert_int_equal(found, 1);
    }
    assert_null(metric_wire_name("sm__cycles_active.avg"));
}

/* Metrics that a chip is known to lack; all others must exist. */
static const struct absence {
    const char *chip;
    enum profiler_kind kind;
    const char *start;
} absences[] = {
    {"GB100", PROFILER_RANGE, "sm__pipe_tensor_op_"},
    {"AD102", PROFILER_PM_SAMPLING, "nvl"},
    {"GB100", PROFILER_PM_SAMPLING, "pcie__read_"},
    {"GB100", PROFILER_PM_SAMPLING, "pcie__write_"},
    {"TU102", PROFILER_PM_SAMPLING, "sm__pipe_tensor_cycles_active_realtime"},
    {"TU102", PROFILER_RANGE, "sm__ops_path_tensor_src_bf16_dst_fp32"},
    {"TU102", PROFILER_RANGE, "sm__ops_path_tensor_src_tf32_dst_fp32"},
    {"TU102", PROFILER_RANGE, "sm__ops_path_tensor_src_fp16.sum"},
    {"TU102", PROFILER_RANGE, "sm__ops_path_tensor_src_fp16_dst_fp32"},
    {"TU102", PROFILER_RANGE, "sm__ops_path_tensor_src_fp8"},
    {"TU102", PROFILER_RANGE, "sm__ops_path_tensor_src_fp64"},
    {"GA100", PROFILER_RANGE, "sm__ops_path_tensor_src_fp16.sum"},
    {"GA100", PROFILER_RANGE, "sm__ops_path_tensor_src_fp16_bf16"},
    {"GA100", PROFILER_RANGE, "sm__ops_path_tensor_src_fp8"},
    {"AD102", PROFILER_RANGE, "sm__ops_path_tensor_src_fp16.sum"},
    {"AD102", PROFILER_RANGE, "sm__ops_path_tensor_src_fp16_bf16"},
    {"GH100", PROFILER_RANGE, "sm__ops_path_tensor_src_fp16_"},
    {"GB100", PROFILER_RANGE, "sm__ops_path_tensor_src_fp16.sum"},
    {"GB100", PROFILER_RANGE, "sm__ops_path_tensor_src_fp16_bf16"},
    {"GB100", PROFILER_RANGE, "sm__ops_path_tensor_src_fp8"},
};

static bool is_known_absence(const char *chip, enum profiler_kind kind, const char *metric)
{
    for (size_t i = 0; i < sizeof absences / sizeof absences[0]; i++)
        if (absences[i].kind == kind && !strcmp(absences[i].chip, chip) &&
            !strncmp(absences[i].start, metric, strlen(absences[i].start)))
            return true;
    return false;
}

static void check_set(struct cupti *cupti, const char *chip, const struct metric_set *set)
{
    struct problem problem = {""}, left_out;
    struct profiler_host *host;
    assert_int_equal(profiler_host_open(&host, cupti, chip, set->kind, NULL, 0, &problem), GPUFL_OK);
    for (const char *const *metric = set->metrics; *metric; metric++) {
        bool is_there = profiler_host_check(host, *metric, &problem) == GPUFL_OK;
        if (is_there == is_known_absence(chip, set->kind, *metric))
            fail_msg("%s, set %s: %s is %s", chip, set->name, *metric, is_there ? "there now" : problem.text);
    }
    assert_int_equal(metric_choice_parse(&choice, set->kind, set->name, NULL), GPUFL_OK);
    struct metric_plan plan = {0};
    if (metric_choice_plan(&choice, host, &plan, &left_out, &problem) != GPUFL_OK)
        fail_msg("%s, set %s: %s", chip, set->name, problem.text);
    for (size_t i = 0; i < choice.count; i++)
        assert_string_equal(choice.list[i], set->metrics[choice.origin[i]]);
    bool is_pm = set->kind == PROFILER_PM_SAMPLING;
    print_message("%s %s %-10s %zu passes%s%s\n", chip, is_pm ? "PM   " : "range", set->name, plan.passes,
                  left_out.text[0] ? ", without " : "", left_out.text);
    assert_true(plan.passes >= 1);
    /* PM sampling takes one pass; Turing's DRAM percentages need two. */
    if (is_pm && strcmp(chip, "TU102"))
        assert_int_equal(plan.passes, 1);
    metric_plan_free(&plan);
    profiler_host_close(host);
}

static void the_chips_have_what_the_sets_name(void **state)
{
    (void)state;
    if (IS_SANITIZED)
        skip();
    static const char *const chips[] = {"GH100", "GA100", "AD102", "GB100", "TU102"};
    struct cupti *cupti;
    struct name_list known;
    unsetenv("GPUFL_CUPTI_PATH");
    REQUIRE(cupti_load(&cupti, NULL) == GPUFL_OK, "libcupti");
    REQUIRE(profiler_host_chips(cupti, &known, NULL) == GPUFL_OK, "libnvperf_host");
    name_list_free(&known);
    for (size_t c = 0; c < sizeof chips / sizeof chips[0]; c++)
        for (size_t i = 0; i < metric_set_count; i++)
            check_set(cupti, chips[c], &metric_sets[i]);
    /* Metrics that the user requested by name are never left out silently. */
    struct profiler_host *host;
    struct problem left_out, problem;
    assert_int_equal(profiler_host_open(&host, cupti, "AD102", PROFILER_PM_SAMPLING, NULL, 0, NULL), GPUFL_OK);
    assert_int_equal(metric_choice_parse(&choice, PROFILER_PM_SAMPLING, "links,nvlrx__bytes.sum.per_second", NULL),
                     GPUFL_OK);
    assert_int_equal(metric_choice_fit(&choice, host, &left_out, &problem), GPUFL_OK);
    assert_null(strstr(left_out.text, "nvlrx__bytes.sum"));
    assert_non_null(strstr(left_out.text, "nvltx__bytes.sum"));
    struct metric_plan plan;
    assert_int_equal(profiler_host_plan(host, choice.list, choice.count, &plan, &problem), GPUFL_E_INVALID);
    assert_non_null(strstr(problem.text, "nvlrx__bytes"));
    profiler_host_close(host);
}

static void values_go_back_to_the_places_that_were_asked_for(void **state)
{
    (void)state;
    static struct metric_choice fitted;
    const double values[] = {1, 2};
    double spread[3];
    assert_int_equal(metric_choice_parse(&choice, PROFILER_RANGE, "a__a.sum,b__b.sum,c__c.sum", NULL), GPUFL_OK);
    metric_choice_copy(&fitted, &choice);
    assert_string_equal(fitted.list[1], "b__b.sum");
    assert_ptr_not_equal(fitted.list[1], choice.list[1]);
    fitted.count = 2; /* as metric_choice_fit leaves it without b */
    fitted.origin[1] = 2;
    metric_choice_spread(&fitted, values, 3, spread);
    assert_true(spread[0] == 1 && isnan(spread[1]) && spread[2] == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_are_unique_and_fit_a_choice),
        cmocka_unit_test(words_may_be_sets_and_metrics_in_one_line),
        cmocka_unit_test(wrong_words_are_named_with_the_nearest_set),
        cmocka_unit_test(overview_and_memory_fill_the_columns_of_wire_v1),
        cmocka_unit_test(the_chips_have_what_the_sets_name),
        cmocka_unit_test(values_go_back_to_the_places_that_were_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
