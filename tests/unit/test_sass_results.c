/* SPDX-License-Identifier: Apache-2.0 */
/* Instruction counts between CUPTI and the collector: how much of the budget they use while they wait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "capture/sass_results.h"

#include <stdio.h>
#include <string.h>

enum { BUDGET_BYTES = 64 << 20, RESULTS_MAX = 400, INSTRUCTIONS = 31 };

static struct sass_metric metrics[] = {{.id = 7, .name = SASS_METRIC_EXECUTED}};
static struct sass_device device;

static struct sass_results *settled(struct sass_budget *budget)
{
    const struct gpu_context context = {.id = 1};
    struct sass_results *results = sass_results_make(budget, &device, &context);
    if (!results)
        return NULL;
    for (uint32_t i = 0; i < INSTRUCTIONS; i++)
        sass_results_add(results, &(struct sass_count){.symbol = "scale", .metric_id = 7, .pc_offset = i, .value = 1});
    assert_int_equal(results->refused, 0);
    sass_results_settle(results);
    return results;
}

static void results_that_wait_hold_only_what_they_need(void **state)
{
    (void)state;
    struct sass_budget budget = {.max = BUDGET_BYTES};
    struct sass_results *waiting[RESULTS_MAX];
    for (int i = 0; i < RESULTS_MAX; i++) {
        waiting[i] = settled(&budget);
        assert_non_null(waiting[i]);
        assert_int_equal(waiting[i]->executed, INSTRUCTIONS);
    }
    for (int i = 0; i < RESULTS_MAX; i++)
        sass_results_free(waiting[i]);
    assert_int_equal(atomic_load(&budget.used), 0);
}

static void results_without_counts_hold_nearly_nothing(void **state)
{
    (void)state;
    struct sass_budget budget = {.max = BUDGET_BYTES};
    const struct gpu_context context = {.id = 1};
    struct sass_results *results = sass_results_make(&budget, &device, &context);
    sass_results_settle(results);
    assert_int_equal(atomic_load(&budget.used), sizeof *results);
    sass_results_free(results);
    assert_int_equal(atomic_load(&budget.used), 0);
}

static void a_budget_that_is_used_up_refuses_and_recovers(void **state)
{
    (void)state;
    struct sass_budget budget = {.max = 4 << 20};
    const struct gpu_context context = {.id = 1};
    struct sass_results *first = sass_results_make(&budget, &device, &context);
    assert_non_null(first);
    assert_null(sass_results_make(&budget, &device, &context));
    sass_results_free(first);
    first = settled(&budget);
    assert_non_null(first);
    sass_results_free(first);
}

int main(void)
{
    device.list = (struct sass_metric_list){.metrics = metrics, .count = 1};
    device.choice.count = 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_that_wait_hold_only_what_they_need),
        cmocka_unit_test(results_without_counts_hold_nearly_nothing),
        cmocka_unit_test(a_budget_that_is_used_up_refuses_and_recovers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
