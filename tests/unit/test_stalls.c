/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of PC samples compared with figures worked out by hand from tests/golden/make_deep_sessions.py. */
#include "golden_session.h"

static const struct stall_profile *function_profile(const struct stalls *stalls, uint32_t function_id)
{
    for (size_t i = 0; i < stalls->function_count; i++)
        if (stalls->functions[i].function_id == function_id)
            return &stalls->functions[i].profile;
    fail_msg("no function %u", function_id);
    return NULL;
}

static uint64_t kind_samples(const struct stalls *stalls, const struct stall_profile *profile, const char *name)
{
    for (unsigned i = 0; i < stalls->kind_count; i++)
        if (!strcmp(stalls->kinds[i].name, name))
            return profile->by_kind[i];
    fail_msg("no kind %s", name);
    return 0;
}

static void samples_add_up_to_the_total_by_function_scope_and_instruction(void **state)
{
    (void)state;
    const char *const names[] = {"pc_sampling", "deep", "deep_v1"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        struct golden_session golden = golden_load(names[n]);
        const struct stalls *stalls = &golden.analysis.stalls;
        uint64_t functions = 0, scopes = 0, pcs = 0, kinds = 0;
        for (size_t i = 0; i < stalls->function_count; i++)
            functions += stalls->functions[i].profile.samples;
        for (size_t i = 0; i < stalls->scope_count; i++)
            scopes += stalls->scopes[i].profile.samples;
        for (size_t i = 0; i < stalls->pc_count; i++)
            pcs += stalls->pcs[i].samples;
        for (unsigned i = 0; i < stalls->kind_count; i++)
            kinds += stalls->total.by_kind[i];
        assert_int_equal(functions, stalls->total.samples);
        assert_int_equal(scopes, stalls->total.samples);
        assert_int_equal(pcs, stalls->total.samples);
        assert_int_equal(kinds, stalls->total.samples);
        golden_unload(&golden);
    }
}

static void samples_without_an_issue_are_a_part_of_the_others(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("pc_sampling");
    const struct stalls *stalls = &golden.analysis.stalls;
    const struct stall_profile *add = function_profile(stalls, 1);
    assert_int_equal(add->samples, 42000 + 900 + 1800 + 700 + 400);
    assert_int_equal(add->not_issued, 39000 + 650);
    assert_int_equal(kind_samples(stalls, add, "long_scoreboard"), 42000);
    assert_int_equal(kind_samples(stalls, add, "selected"), 900);
    golden_unload(&golden);
}

static void the_hottest_instruction_comes_first_with_its_reason(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("pc_sampling");
    const struct stalls *stalls = &golden.analysis.stalls;
    assert_int_equal(stalls->pcs[0].pc_offset, 0xe0);
    assert_int_equal(stalls->pcs[0].samples, 42900);
    assert_int_equal(stalls->pcs[0].stall_samples, 42000);
    assert_string_equal(stalls->kinds[stalls->pcs[0].stall].name, "long_scoreboard");
    for (size_t i = 1; i < stalls->pc_count; i++)
        assert_true(stalls->pcs[i].samples <= stalls->pcs[i - 1].samples);
    golden_unload(&golden);
}

static void certainty_counts_only_samples_with_one_possible_execution(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("pc_sampling");
    const struct stalls *stalls = &golden.analysis.stalls;
    uint64_t certain = 42000 + 900 + 1800 + 2100 + 1100 + 50;
    assert_int_equal(stalls->certain, certain);
    assert_int_equal(stalls->undecided, 400);
    assert_true(stalls->weighted > (double)certain + 0.9 * 700 + 0.6 * 20000 - 1);
    assert_true(stalls->weighted < (double)certain + 0.9 * 700 + 0.6 * 20000 + 1);
    golden_unload(&golden);
}

static void without_confidences_no_sample_is_certain(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("deep_v1");
    assert_int_equal(golden.analysis.stalls.certain, 0);
    assert_int_equal(golden.analysis.stalls.undecided, 100);
    golden_unload(&golden);
}

static void scopes_are_found_by_instance_and_by_name(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("pc_sampling");
    const struct stalls *stalls = &golden.analysis.stalls;
    assert_int_equal(stalls->scope_count, 3);
    assert_string_equal(session_text(golden.model, DICTIONARY_SCOPE_NAME, stalls->scopes[0].path_id), "step|add");
    assert_int_equal(stalls->scopes[0].profile.samples, 45400);
    assert_string_equal(session_text(golden.model, DICTIONARY_SCOPE_NAME, stalls->scopes[1].path_id), "step|reduce");
    assert_int_equal(stalls->scopes[2].path_id, 0);
    golden_unload(&golden);
}

static void an_unknown_reason_keeps_its_name(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("pc_sampling");
    const struct stalls *stalls = &golden.analysis.stalls;
    assert_int_equal(kind_samples(stalls, &stalls->total, "fresh_reason"), 50);
    golden_unload(&golden);
}

static void issuing_is_the_top_reason_only_where_there_is_no_other(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("pc_sampling");
    const struct stalls *stalls = &golden.analysis.stalls;
    struct stall_profile profile = {.samples = 12, .by_kind = {[0] = 10, [1] = 1, [2] = 1}};
    uint64_t count;
    assert_string_equal(stalls->kinds[stall_profile_top(stalls, &profile, &count)].name, stalls->kinds[2].name);
    assert_int_equal(count, 1);
    profile.by_kind[2] = 0;
    assert_string_equal(stalls->kinds[stall_profile_top(stalls, &profile, &count)].name, "not_selected");
    profile.by_kind[1] = 0;
    assert_string_equal(stalls->kinds[stall_profile_top(stalls, &profile, &count)].name, "selected");
    assert_int_equal(count, 10);
    golden_unload(&golden);
}

static void reasons_beyond_the_limit_are_counted_together(void **state)
{
    (void)state;
    enum { reasons = 200 };
    static struct session_model model;
    const char *texts[reasons + 1] = {NULL};
    static char names[reasons + 1][16];
    static struct code_sample samples[reasons];
    for (unsigned i = 1; i <= reasons; i++) {
        snprintf(names[i], sizeof names[i], "stall_r%u", i);
        texts[i] = names[i];
        samples[i - 1] = (struct code_sample){.metric_id = i, .value = 1, .function_id = 1};
    }
    model.dictionaries[DICTIONARY_METRIC] = (struct dictionary_table){texts, reasons + 1};
    model.deep.samples = samples;
    model.deep.sample_count = reasons;
    struct stalls stalls;
    assert_int_equal(stalls_make(&stalls, &model), GPUFL_OK);
    assert_int_equal(stalls.total.samples, reasons);
    assert_int_equal(stalls.kind_count, STALL_KINDS_MAX);
    assert_int_equal(kind_samples(&stalls, &stalls.total, "(reason not recorded)"),
                     reasons - (STALL_KINDS_MAX - stalls_metric_kind(&stalls, 1)));
    stalls_free(&stalls);
}

static void a_session_without_samples_has_no_stalls(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("trace");
    assert_int_equal(golden.analysis.stalls.row_count, 0);
    assert_int_equal(golden.analysis.code.line_count, 0);
    assert_false(golden.analysis.has_deep);
    golden_unload(&golden);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_add_up_to_the_total_by_function_scope_and_instruction),
        cmocka_unit_test(samples_without_an_issue_are_a_part_of_the_others),
        cmocka_unit_test(the_hottest_instruction_comes_first_with_its_reason),
        cmocka_unit_test(certainty_counts_only_samples_with_one_possible_execution),
        cmocka_unit_test(without_confidences_no_sample_is_certain),
        cmocka_unit_test(scopes_are_found_by_instance_and_by_name),
        cmocka_unit_test(an_unknown_reason_keeps_its_name),
        cmocka_unit_test(issuing_is_the_top_reason_only_where_there_is_no_other),
        cmocka_unit_test(reasons_beyond_the_limit_are_counted_together),
        cmocka_unit_test(a_session_without_samples_has_no_stalls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
