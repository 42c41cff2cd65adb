/* SPDX-License-Identifier: Apache-2.0 */
/* Each rule about code reports where it should, and only there. */
#include "analysis/report_page.h"
#include "golden_session.h"

#include <math.h>

static const struct insight *insight_find(const struct analysis *analysis, const char *rule)
{
    for (size_t i = 0; i < analysis->insight_count; i++)
        if (!strcmp(analysis->insights[i].rule, rule))
            return &analysis->insights[i];
    return NULL;
}

static void assert_insight(const struct analysis *analysis, const char *rule, const char *part)
{
    const struct insight *insight = insight_find(analysis, rule);
    if (!insight)
        fail_msg("no insight %s", rule);
    else if (!strstr(insight->text, part))
        fail_msg("'%s' is not in: %s", part, insight->text);
}

static void stalled_lines_are_named_with_reason_and_next_step(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("pc_sampling");
    assert_insight(&golden.analysis, "stalled_line", "vector_add.cu:6 (vector_add): 64.7 % of all samples");
    assert_insight(&golden.analysis, "stalled_line", "long_scoreboard");
    const struct insight *insight = insight_find(&golden.analysis, "stalled_line");
    assert_int_equal(insight->severity, INSIGHT_HIGH);
    /* 44,700 of 69,050 samples of 60 ms of kernels. */
    assert_true(insight->impact_ns > 38800000 && insight->impact_ns < 38900000);
    golden_unload(&golden);
}

static void counters_name_the_line_and_the_fix(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("sass_metrics");
    assert_insight(&golden.analysis, "uncoalesced_access", "vector_add.cu:6 (vector_add): global loads use 25.0 %");
    assert_insight(&golden.analysis, "uncoalesced_access", "neighbouring addresses");
    assert_insight(&golden.analysis, "bank_conflicts", "reduction.cu:12");
    assert_insight(&golden.analysis, "bank_conflicts", "8.0 times");
    assert_insight(&golden.analysis, "divergence", "vector_add.cu:5 (vector_add): 61.0 %");
    assert_insight(&golden.analysis, "local_traffic", "reduction.cu:12");
    assert_insight(&golden.analysis, "idle_threads", "of a warp's 32 threads");
    golden_unload(&golden);
}

static void accesses_without_instruction_text_are_not_called_loads(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("deep");
    assert_insight(&golden.analysis, "uncoalesced_access", "global accesses use 25.0 %");
    golden_unload(&golden);
}

static void sessions_without_deep_data_have_no_insight_about_code(void **state)
{
    (void)state;
    const char *const rules[] = {"stalled_line", "uncoalesced_access", "bank_conflicts",
                                 "divergence",   "local_traffic",      "idle_threads"};
    struct golden_session golden = golden_load("trace");
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        assert_null(insight_find(&golden.analysis, rules[i]));
    golden_unload(&golden);
}

/* True if the rule reports a session of one line with these counts. */
static bool rule_reports(const char *rule, const struct instruction_counts *counts)
{
    struct hot_function function = {.name = "kernel", .problem = "", .counts = *counts, .has_counts = true};
    struct code_place place = {.sass = "", .file = "", .called_from = "", .counts = *counts, .has_counts = true};
    struct hot_line line = {.file = "/a/kernel.cu", .line = 3, .counts = *counts, .has_counts = true, .place_count = 1};
    struct session_model *model = calloc(1, sizeof *model);
    struct analysis *analysis = calloc(1, sizeof *analysis);
    assert_non_null(model);
    assert_non_null(analysis);
    analysis->model = model;
    analysis->insights = calloc(64, sizeof *analysis->insights);
    assert_non_null(analysis->insights);
    analysis->code = (struct hot_code){.functions = &function,
                                       .places = &place,
                                       .lines = &line,
                                       .function_count = 1,
                                       .place_count = 1,
                                       .line_count = 1};
    code_insights_add(analysis);
    bool is_there = insight_find(analysis, rule) != NULL;
    for (size_t i = 0; i < analysis->insight_count; i++)
        free(analysis->insights[i].text);
    free(analysis->insights);
    free(analysis);
    free(model);
    return is_there;
}

static void rules_report_nothing_on_good_code(void **state)
{
    (void)state;
    struct instruction_counts good = {
        .inst_executed = 1000,
        .thread_inst = 32000,
        .thread_inst_pred_on = 32000,
        .branch_divergent = 10,
        .branch_uniform = 990,
        .sectors_global = 4000,
        .sectors_global_ideal = 4000,
        .wavefronts_shared = 1100,
        .wavefronts_shared_ideal = 1000,
        .sectors_local = 0,
        .global_executed = 1000,
    };
    const char *const rules[] = {"uncoalesced_access", "bank_conflicts", "divergence", "local_traffic", "idle_threads"};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        assert_false(rule_reports(rules[i], &good));
    struct instruction_counts bad = good;
    bad.sectors_global = 8000 + 1;
    assert_true(rule_reports("uncoalesced_access", &bad));
    bad = good;
    bad.wavefronts_shared = 2000;
    assert_true(rule_reports("bank_conflicts", &bad));
    bad = good;
    bad.branch_divergent = 250;
    assert_true(rule_reports("divergence", &bad));
    bad = good;
    bad.thread_inst_pred_on = 15000;
    assert_true(rule_reports("idle_threads", &bad));
    bad = good;
    bad.sectors_local = 1000;
    assert_true(rule_reports("local_traffic", &bad));
}

static void unmeasured_values_give_no_insight(void **state)
{
    (void)state;
    struct instruction_counts none = instruction_counts_none();
    none.inst_executed = 1000;
    const char *const rules[] = {"uncoalesced_access", "bank_conflicts", "divergence", "local_traffic", "idle_threads"};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        assert_false(rule_reports(rules[i], &none));
}

static void the_text_shows_the_first_eight_and_counts_the_rest(void **state)
{
    (void)state;
    struct insight insights[11];
    struct session_model *model = calloc(1, sizeof *model);
    struct analysis *analysis = calloc(1, sizeof *analysis);
    assert_non_null(model);
    assert_non_null(analysis);
    analysis->model = model;
    analysis->insights = insights;
    for (analysis->insight_count = 0; analysis->insight_count < 11; analysis->insight_count++)
        insights[analysis->insight_count] =
            (struct insight){.rule = "r", .severity = INSIGHT_LOW, .text = "look there"};
    struct bytes out = {0};
    struct page page = {.out = &out, .analysis = analysis, .columns = 100, .top = 10};
    section_insights(&page);
    assert_non_null(strstr(bytes_text(&out), " 8  look there"));
    assert_null(strstr(bytes_text(&out), " 9  look there"));
    assert_non_null(strstr(bytes_text(&out), "and 3 more"));
    bytes_free(&out);
    free(analysis);
    free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stalled_lines_are_named_with_reason_and_next_step),
        cmocka_unit_test(counters_name_the_line_and_the_fix),
        cmocka_unit_test(accesses_without_instruction_text_are_not_called_loads),
        cmocka_unit_test(sessions_without_deep_data_have_no_insight_about_code),
        cmocka_unit_test(rules_report_nothing_on_good_code),
        cmocka_unit_test(unmeasured_values_give_no_insight),
        cmocka_unit_test(the_text_shows_the_first_eight_and_counts_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
