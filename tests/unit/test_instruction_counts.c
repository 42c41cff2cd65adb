/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analysis/instruction_counts.h"

#include <math.h>
#include <stdio.h>

#define assert_near(value, expected) assert_true(fabs((value) - (expected)) < 1e-12)

static void set(struct instruction_counts *counts, const char *metric, uint64_t value)
{
    char name[96];
    snprintf(name, sizeof name, "smsp__sass_%s", metric);
    assert_true(instruction_counts_set(counts, name, value));
}

/* A load that uses one byte in four: 10 warps, 16 sectors each where 4 would suffice. */
static struct instruction_counts strided_load(void)
{
    struct instruction_counts counts = instruction_counts_none();
    set(&counts, "inst_executed", 10);
    set(&counts, "thread_inst_executed", 320);
    set(&counts, "thread_inst_executed_pred_on", 160);
    set(&counts, "sectors_mem_global", 160);
    set(&counts, "sectors_mem_global_ideal", 40);
    return counts;
}

static void without_measurements_there_are_no_figures(void **state)
{
    (void)state;
    struct instruction_counts counts = instruction_counts_none();
    assert_true(isnan(counts.inst_executed) && isnan(counts.sectors_local) && isnan(counts.global_executed));
    assert_true(isnan(instruction_coalescing(&counts)));
    assert_true(isnan(instruction_sectors_per_request(&counts)));
    assert_true(isnan(instruction_branch_efficiency(&counts)));
    assert_true(isnan(instruction_thread_efficiency(&counts)));
    assert_true(isnan(instruction_bank_conflicts(&counts)));
}

static void an_unknown_metric_is_reported(void **state)
{
    (void)state;
    struct instruction_counts counts = instruction_counts_none();
    assert_false(instruction_counts_set(&counts, "smsp__sass_inst_executed_op_ld", 5));
    assert_false(instruction_counts_set(&counts, "inst_executed", 5));
    assert_true(isnan(counts.inst_executed));
}

static void a_strided_load_is_a_quarter_efficient(void **state)
{
    (void)state;
    struct instruction_counts counts = strided_load();
    assert_near(instruction_coalescing(&counts), 0.25);
    assert_near(instruction_sectors_per_request(&counts), 16);
    assert_near(instruction_thread_efficiency(&counts), 0.5);
    assert_true(isnan(instruction_bank_conflicts(&counts)));
    assert_true(isnan(instruction_branch_efficiency(&counts)));
}

static void a_ratio_needs_both_counts(void **state)
{
    (void)state;
    struct instruction_counts counts = instruction_counts_none();
    set(&counts, "sectors_mem_global", 160);
    assert_true(isnan(instruction_coalescing(&counts)));
    set(&counts, "branch_targets_threads_uniform", 3);
    assert_true(isnan(instruction_branch_efficiency(&counts)));
    set(&counts, "branch_targets_threads_divergent", 0);
    assert_near(instruction_branch_efficiency(&counts), 1);
}

static void a_measured_zero_is_not_a_ratio_but_stays_a_count(void **state)
{
    (void)state;
    struct instruction_counts counts = instruction_counts_none();
    set(&counts, "sectors_mem_global", 0);
    set(&counts, "sectors_mem_global_ideal", 0);
    set(&counts, "l1tex_pipe_lsu_wavefronts_mem_shared", 64);
    set(&counts, "l1tex_pipe_lsu_wavefronts_mem_shared_ideal", 2);
    assert_true(counts.sectors_global == 0);
    assert_true(isnan(instruction_coalescing(&counts)));
    assert_near(instruction_bank_conflicts(&counts), 32);
}

static void values_of_one_metric_add_up(void **state)
{
    (void)state;
    struct instruction_counts counts = strided_load();
    set(&counts, "inst_executed", 30);
    assert_near(counts.inst_executed, 40);
}

static void a_line_counts_only_its_memory_instructions_as_requests(void **state)
{
    (void)state;
    struct instruction_counts line = instruction_counts_none(), load = strided_load(),
                              plain = instruction_counts_none();
    set(&plain, "inst_executed", 1000);
    instruction_counts_add(&line, &load);
    instruction_counts_add(&line, &plain);
    instruction_counts_add(&line, &load);
    assert_near(line.inst_executed, 1020);
    assert_near(instruction_sectors_per_request(&line), 16);
    assert_near(instruction_coalescing(&line), 0.25);
    struct instruction_counts function = instruction_counts_none();
    instruction_counts_add(&function, &line);
    assert_near(instruction_sectors_per_request(&function), 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_measurements_there_are_no_figures),
        cmocka_unit_test(an_unknown_metric_is_reported),
        cmocka_unit_test(a_strided_load_is_a_quarter_efficient),
        cmocka_unit_test(a_ratio_needs_both_counts),
        cmocka_unit_test(a_measured_zero_is_not_a_ratio_but_stays_a_count),
        cmocka_unit_test(values_of_one_metric_add_up),
        cmocka_unit_test(a_line_counts_only_its_memory_instructions_as_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
