/* SPDX-License-Identifier: Apache-2.0 */
#include "golden_session.h"

#include "analysis/compare.h"
#include "analysis/quantity.h"

#include <math.h>

/* A kernel of a handmade session: name, duration, spread, count. */
struct made_kernel {
    const char *name;
    int64_t duration_ns, spread_ns;
    size_t count;
};

struct made_session {
    struct session_model *model;
    struct analysis analysis;
};

static struct made_session session_make(const struct made_kernel *made, size_t made_count)
{
    struct made_session session = {.model = calloc(1, sizeof *session.model)};
    struct session_model *model = session.model;
    assert_non_null(model);
    size_t count = 0;
    for (size_t i = 0; i < made_count; i++)
        count += made[i].count;
    struct kernel_columns *kernels = &model->kernels;
    kernels->start_ns = calloc(count + 1, sizeof *kernels->start_ns);
    kernels->duration_ns = calloc(count + 1, sizeof *kernels->duration_ns);
    kernels->api_start_ns = calloc(count + 1, sizeof *kernels->api_start_ns);
    kernels->api_duration_ns = calloc(count + 1, sizeof *kernels->api_duration_ns);
    kernels->kernel_id = calloc(count + 1, sizeof *kernels->kernel_id);
    kernels->launch_id = calloc(count + 1, sizeof *kernels->launch_id);
    kernels->stream_id = calloc(count + 1, sizeof *kernels->stream_id);
    kernels->thread_id = calloc(count + 1, sizeof *kernels->thread_id);
    kernels->corr_id = calloc(count + 1, sizeof *kernels->corr_id);
    kernels->scope = calloc(count + 1, sizeof *kernels->scope);
    kernels->device = calloc(count + 1, sizeof *kernels->device);
    struct dictionary_table *names = &model->dictionaries[DICTIONARY_KERNEL];
    names->texts = calloc(made_count + 1, sizeof *names->texts);
    names->count = (uint32_t)made_count + 1;
    int64_t at_ns = 1000;
    for (size_t i = 0; i < made_count; i++) {
        names->texts[i + 1] = made[i].name;
        for (size_t k = 0; k < made[i].count; k++) {
            size_t row = kernels->count++;
            kernels->start_ns[row] = at_ns;
            kernels->duration_ns[row] =
                made[i].duration_ns + (made[i].spread_ns ? (int64_t)(k * 7919 % 101) * made[i].spread_ns / 50 : 0);
            kernels->api_start_ns[row] = TIME_UNKNOWN;
            kernels->api_duration_ns[row] = API_DURATION_UNKNOWN;
            kernels->kernel_id[row] = (uint32_t)i + 1;
            kernels->scope[row] = ID_UNKNOWN;
            at_ns += kernels->duration_ns[row] + 10;
        }
    }
    model->first_ns = 1000;
    model->last_ns = at_ns;
    model->summary.has_shutdown = true;
    struct job_info *job = &model->job;
    job->app = job->session_id = job->hostname = job->command = job->kind = job->requested_engine = "";
    job->engine = "Trace";
    job->driver_version = job->cuda_version = job->cupti_version = job->gpufl_version = "";
    job->start_ns = job->shutdown_ns = TIME_UNKNOWN;
    assert_int_equal(analysis_make(&session.analysis, model), GPUFL_OK);
    return session;
}

static void session_drop(struct made_session *session)
{
    analysis_free(&session->analysis);
    session_free(session->model);
}

static gpufl_status compare(struct comparison *comparison, const struct analysis *base, const struct analysis *fresh,
                            double threshold)
{
    return compare_make(comparison, base, fresh, &(struct compare_options){.threshold = threshold});
}

static const struct compared_row *row_find(const struct comparison *comparison, const char *name)
{
    for (size_t i = 0; i < comparison->kernel_count; i++)
        if (comparison->kernels[i].name && !strcmp(comparison->kernels[i].name, name))
            return &comparison->kernels[i];
    fail_msg("no row for %s", name);
    return NULL;
}

static void a_session_compared_with_itself_has_no_change(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("trace");
    struct comparison comparison;
    assert_int_equal(compare(&comparison, &golden.analysis, &golden.analysis, 0), GPUFL_OK);
    assert_int_equal(comparison.regressions, 0);
    assert_true(comparison.kernel_count > 0 && comparison.scope_count > 0);
    for (size_t i = 0; i < comparison.kernel_count; i++) {
        assert_int_equal(comparison.kernels[i].verdict, CHANGE_NONE);
        assert_int_equal(comparison.kernels[i].change_ns, 0);
    }
    for (size_t i = 0; i < comparison.scope_count; i++)
        assert_int_equal(comparison.scopes[i].verdict, CHANGE_NONE);
    compare_free(&comparison);
    golden_unload(&golden);
}

static void totals_of_a_comparison_are_those_of_the_report(void **state)
{
    (void)state;
    struct golden_session base = golden_load("trace"), fresh = golden_load("two_gpus");
    struct comparison comparison;
    assert_int_equal(compare(&comparison, &base.analysis, &fresh.analysis, 0.05), GPUFL_OK);
    for (size_t i = 0; i < base.analysis.hotspot_count; i++) {
        const struct hotspot *hotspot = &base.analysis.hotspots[i];
        if (!hotspot->name)
            continue;
        const struct compared_row *row = row_find(&comparison, hotspot->name);
        assert_int_equal(row->base.duration.count, hotspot->duration.count);
        assert_int_equal(row->base.duration.total, hotspot->duration.total);
        assert_int_equal(row->base.duration.p50, hotspot->duration.p50);
    }
    double shares = 0;
    for (size_t i = 0; i < comparison.kernel_count; i++)
        shares += fabs(comparison.kernels[i].share_of_change);
    assert_true(fabs(shares - 1) < 1e-9);
    compare_free(&comparison);
    golden_unload(&base);
    golden_unload(&fresh);
}

static void a_kernel_that_ran_once_must_differ_by_a_factor_of_two(void **state)
{
    (void)state;
    const struct made_kernel before[] = {{"same", 10000, 0, 1}, {"double", 10000, 0, 1}, {"half", 10000, 0, 3}};
    const struct made_kernel after[] = {{"same", 19000, 0, 1}, {"double", 21000, 0, 4}, {"half", 4000, 0, 1}};
    struct made_session base = session_make(before, 3), fresh = session_make(after, 3);
    struct comparison comparison;
    assert_int_equal(compare(&comparison, &base.analysis, &fresh.analysis, 0.05), GPUFL_OK);
    assert_int_equal(row_find(&comparison, "same")->verdict, CHANGE_NONE);
    assert_int_equal(row_find(&comparison, "double")->verdict, CHANGE_SLOWER);
    assert_int_equal(row_find(&comparison, "half")->verdict, CHANGE_FASTER);
    compare_free(&comparison);
    session_drop(&base);
    session_drop(&fresh);
}

static void slower_new_and_vanished_kernels_are_distinguished(void **state)
{
    (void)state;
    const struct made_kernel before[] = {{"gemm", 10000, 100, 200}, {"axpy", 2000, 20, 300}, {"gone", 5000, 0, 10}};
    const struct made_kernel after[] = {{"gemm", 12000, 100, 200}, {"axpy", 1500, 20, 300}, {"fresh", 800, 0, 10}};
    struct made_session base = session_make(before, 3), fresh = session_make(after, 3);
    struct comparison comparison;
    assert_int_equal(compare(&comparison, &base.analysis, &fresh.analysis, 0.05), GPUFL_OK);
    assert_int_equal(row_find(&comparison, "gemm")->verdict, CHANGE_SLOWER);
    assert_true(row_find(&comparison, "gemm")->is_regression);
    assert_int_equal(row_find(&comparison, "axpy")->verdict, CHANGE_FASTER);
    assert_int_equal(row_find(&comparison, "gone")->verdict, CHANGE_VANISHED);
    assert_int_equal(row_find(&comparison, "fresh")->verdict, CHANGE_NEW);
    assert_string_equal(comparison.kernels[0].name, "gemm");
    assert_true(comparison.regressions >= 1);
    compare_free(&comparison);
    session_drop(&base);
    session_drop(&fresh);
}

static void a_difference_within_the_noise_is_ignored(void **state)
{
    (void)state;
    /* The medians differ by 8 %, the durations of each side by more than a factor of two. */
    const struct made_kernel before[] = {{"noisy", 10000, 8000, 20}};
    const struct made_kernel after[] = {{"noisy", 11500, 8000, 20}};
    struct made_session base = session_make(before, 1), fresh = session_make(after, 1);
    struct comparison comparison;
    assert_int_equal(compare(&comparison, &base.analysis, &fresh.analysis, 0.05), GPUFL_OK);
    const struct compared_row *row = row_find(&comparison, "noisy");
    assert_true(row->median_ratio > 1.05);
    assert_int_equal(row->verdict, CHANGE_NONE);
    compare_free(&comparison);
    session_drop(&base);
    session_drop(&fresh);
}

static void a_small_kernel_is_never_a_regression(void **state)
{
    (void)state;
    const struct made_kernel before[] = {{"large", 1000000, 0, 100}, {"small", 1000, 0, 100}};
    const struct made_kernel after[] = {{"large", 1000000, 0, 100}, {"small", 2000, 0, 100}};
    struct made_session base = session_make(before, 2), fresh = session_make(after, 2);
    struct comparison comparison;
    assert_int_equal(compare(&comparison, &base.analysis, &fresh.analysis, 0.05), GPUFL_OK);
    assert_int_equal(row_find(&comparison, "small")->verdict, CHANGE_SLOWER);
    assert_int_equal(comparison.regressions, 0);
    compare_free(&comparison);
    session_drop(&base);
    session_drop(&fresh);
}

static void more_calls_of_the_same_speed_are_a_regression_of_the_total(void **state)
{
    (void)state;
    const struct made_kernel before[] = {{"step", 1000, 0, 100}}, after[] = {{"step", 1000, 0, 120}};
    struct made_session base = session_make(before, 1), fresh = session_make(after, 1);
    struct comparison comparison;
    assert_int_equal(compare(&comparison, &base.analysis, &fresh.analysis, 0.05), GPUFL_OK);
    assert_int_equal(row_find(&comparison, "step")->verdict, CHANGE_NONE);
    assert_true(comparison.is_total_regression);
    assert_int_equal(comparison.regressions, 1);
    compare_free(&comparison);
    session_drop(&base);
    session_drop(&fresh);
}

static void text_and_json_of_hostile_names_are_harmless(void **state)
{
    (void)state;
    struct golden_session base = golden_load("trace"), fresh = golden_load("hostile");
    struct comparison comparison;
    struct report_options options = {.is_wide = true, .top = 1000};
    struct bytes text = {0}, json = {0};
    struct json_document document;
    assert_int_equal(compare(&comparison, &base.analysis, &fresh.analysis, 0.05), GPUFL_OK);
    compare_text(&comparison, &options, &text);
    for (size_t i = 0; i < text.size; i++)
        assert_true(text.data[i] == '\n' || (unsigned char)text.data[i] >= ' ');
    compare_json(&comparison, &json);
    assert_int_equal(json_parse(&document, json.data, json.size, NULL), GPUFL_OK);
    const struct json_value *kernels = json_member(document.root, "kernels");
    assert_int_equal(kernels->count, comparison.kernel_count);
    json_free(&document);
    bytes_free(&text);
    bytes_free(&json);
    compare_free(&comparison);
    golden_unload(&base);
    golden_unload(&fresh);
}

/* One ended scope whose path is `path`; NULL: its id is not in the dictionary. */
static struct made_session scoped_session_make(const char *path)
{
    struct made_session session = session_make(NULL, 0);
    struct session_model *model = session.model;
    struct dictionary_table *paths = &model->dictionaries[DICTIONARY_SCOPE_NAME];
    paths->texts = calloc(2, sizeof *paths->texts);
    model->scopes = calloc(1, sizeof *model->scopes);
    assert_non_null(paths->texts);
    assert_non_null(model->scopes);
    paths->texts[1] = path;
    paths->count = 2;
    model->scopes[0] =
        (struct scope_instance){.id = 1, .begin_ns = 1000, .end_ns = 2000, .path_id = 1, .parent = ID_UNKNOWN};
    model->scope_count = 1;
    analysis_free(&session.analysis);
    assert_int_equal(analysis_make(&session.analysis, model), GPUFL_OK);
    return session;
}

static void a_scope_without_a_name_has_the_path_null(void **state)
{
    (void)state;
    const char *const paths[] = {NULL, ""};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct made_session session = scoped_session_make(paths[i]);
        struct comparison comparison;
        struct report_options options = {0};
        struct bytes text = {0}, json = {0};
        struct json_document document;
        assert_int_equal(compare(&comparison, &session.analysis, &session.analysis, 0.05), GPUFL_OK);
        compare_json(&comparison, &json);
        assert_int_equal(json_parse(&document, json.data, json.size, NULL), GPUFL_OK);
        const struct json_value *scopes = json_member(document.root, "scopes");
        assert_int_equal(scopes->count, 1);
        assert_non_null(strstr(bytes_text(&json), "\"path\":null"));
        compare_text(&comparison, &options, &text);
        assert_non_null(strstr(bytes_text(&text), "(name not recorded)"));
        json_free(&document);
        bytes_free(&text);
        bytes_free(&json);
        compare_free(&comparison);
        session_drop(&session);
    }
}

static void no_kernels_and_kernels_that_were_not_recorded_are_distinguished(void **state)
{
    (void)state;
    struct made_session session = session_make(NULL, 0);
    struct bytes why = {0};
    assert_false(kernel_times_missing(&session.analysis, &why));
    assert_int_equal(why.size, 0);
    struct session_capability *refusal = calloc(1, sizeof *refusal);
    assert_non_null(refusal);
    *refusal = (struct session_capability){
        .feature = "kernel_events", .status = "skipped", .reason_code = "refused", .message = "too\nold", true};
    session.model->capabilities = refusal;
    session.model->capability_count = 1;
    assert_true(kernel_times_missing(&session.analysis, &why));
    assert_string_equal(bytes_text(&why), "not recorded (too\\x0aold)");
    refusal->status = "collected";
    assert_false(kernel_times_missing(&session.analysis, NULL));
    session.model->job.engine = "";
    analysis_free(&session.analysis);
    assert_int_equal(analysis_make(&session.analysis, session.model), GPUFL_OK);
    bytes_clear(&why);
    assert_true(kernel_times_missing(&session.analysis, &why));
    assert_string_equal(bytes_text(&why), "not recorded (engine unknown)");
    bytes_free(&why);
    session_drop(&session);
}

static void the_text_fits_into_100_columns_whatever_is_missing(void **state)
{
    (void)state;
    const char *const names[] = {"trace", "monitor", "sass_metrics", "empty"};
    enum { count = sizeof names / sizeof *names };
    for (size_t i = 0; i < count * count; i++) {
        struct golden_session base = golden_load(names[i / count]), fresh = golden_load(names[i % count]);
        struct comparison comparison;
        struct report_options options = {.columns = 100};
        struct bytes text = {0};
        assert_int_equal(compare(&comparison, &base.analysis, &fresh.analysis, 0.05), GPUFL_OK);
        compare_text(&comparison, &options, &text);
        for (const char *line = bytes_text(&text); *line; line += strcspn(line, "\n") + 1)
            if (text_columns(line, strcspn(line, "\n")) > 100)
                fail_msg("%s and %s: %.*s", names[i / count], names[i % count], (int)strcspn(line, "\n"), line);
        bytes_free(&text);
        compare_free(&comparison);
        golden_unload(&base);
        golden_unload(&fresh);
    }
}

static void a_slower_scope_gives_no_verdict_if_kernels_were_timed_on_one_side(void **state)
{
    (void)state;
    struct made_session base = scoped_session_make("step"), fresh = scoped_session_make("step");
    struct comparison comparison;
    fresh.model->scopes[0].end_ns = 9000;
    assert_int_equal(compare(&comparison, &base.analysis, &fresh.analysis, 0.05), GPUFL_OK);
    assert_int_equal(comparison.verdict, COMPARE_JUDGED);
    assert_int_equal(comparison.regressions, 1);
    compare_free(&comparison);
    fresh.model->job.engine = "Monitor";
    analysis_free(&fresh.analysis);
    assert_int_equal(analysis_make(&fresh.analysis, fresh.model), GPUFL_OK);
    assert_int_equal(compare(&comparison, &base.analysis, &fresh.analysis, 0.05), GPUFL_OK);
    assert_int_equal(comparison.verdict, COMPARE_TIMES_MISSING);
    assert_int_equal(comparison.scopes[0].verdict, CHANGE_SLOWER);
    assert_true(comparison.scopes[0].fresh.gpu_ns == TIME_UNKNOWN);
    compare_free(&comparison);
    /* Neither session timed kernels: the scopes decide. */
    assert_int_equal(compare(&comparison, &fresh.analysis, &fresh.analysis, 0.05), GPUFL_OK);
    assert_true(comparison.verdict == COMPARE_JUDGED && !comparison.has_kernel_times);
    compare_free(&comparison);
    session_drop(&base);
    session_drop(&fresh);
}

static enum compare_verdict verdict_of_made(const struct made_kernel *before, const struct made_kernel *after,
                                            size_t count, const struct compare_options *options, const char *refusal)
{
    struct made_session base = session_make(before, count), fresh = session_make(after, count);
    struct comparison comparison;
    struct bytes why = {0}, json = {0};
    assert_int_equal(compare_make(&comparison, &base.analysis, &fresh.analysis, options), GPUFL_OK);
    compare_refusal(&comparison, &why);
    assert_string_equal(bytes_text(&why), refusal);
    compare_json(&comparison, &json);
    assert_int_equal(strstr(bytes_text(&json), "\"regressions\":null") != NULL, *refusal != 0);
    enum compare_verdict verdict = comparison.verdict;
    bytes_free(&why);
    bytes_free(&json);
    compare_free(&comparison);
    session_drop(&base);
    session_drop(&fresh);
    return verdict;
}

static void sessions_with_few_kernels_in_common_are_not_comparable(void **state)
{
    (void)state;
    const struct compare_options strict = {.threshold = 0.05}, lax = {.threshold = 0.05, .allow_unrelated = true};
    const struct made_kernel before[] = {{"gemm", 9000, 0, 100}, {"fill", 1000, 0, 100}};
    const struct made_kernel other[] = {{"sort", 8000, 0, 10}, {"fill", 1000, 0, 20}};
    const char refusal[] =
        "the sessions are not comparable: the kernels in both take 10 % of the kernel time of base and "
        "20 % of new";
    assert_int_equal(verdict_of_made(before, other, 2, &strict, refusal), COMPARE_UNRELATED);
    assert_int_equal(verdict_of_made(before, other, 2, &lax, ""), COMPARE_JUDGED);
    /* A kernel replaced the heaviest one: the rest of the program is unchanged. */
    const struct made_kernel fused[] = {{"fused", 1000, 0, 100}, {"fill", 1000, 0, 100}};
    assert_int_equal(verdict_of_made(before, fused, 2, &strict, ""), COMPARE_JUDGED);
    /* Kernels whose names were not recorded cannot be assumed to be the same. */
    const struct made_kernel nameless[] = {{NULL, 9000, 0, 100}};
    assert_int_equal(
        verdict_of_made(nameless, nameless, 1, &strict,
                        "the sessions are not comparable: the kernels in both take 0 % of the kernel time of "
                        "base and 0 % of new"),
        COMPARE_UNRELATED);
}

static void an_incomplete_session_has_no_verdict_unless_allowed(void **state)
{
    (void)state;
    struct golden_session whole = golden_load("trace"), killed = golden_load("killed");
    const struct compare_options strict = {.threshold = 0.05, .allow_unrelated = true};
    const struct compare_options lax = {.threshold = 0.05, .allow_unrelated = true, .allow_incomplete = true};
    struct {
        const struct analysis *base, *fresh;
        const char *refusal;
    } cases[] = {{&whole.analysis, &killed.analysis, "new is not complete"},
                 {&killed.analysis, &whole.analysis, "base is not complete"},
                 {&killed.analysis, &killed.analysis, "base and new are not complete"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct comparison comparison;
        struct bytes why = {0};
        assert_int_equal(compare_make(&comparison, cases[i].base, cases[i].fresh, &strict), GPUFL_OK);
        assert_int_equal(comparison.verdict, COMPARE_INCOMPLETE);
        compare_refusal(&comparison, &why);
        assert_string_equal(bytes_text(&why), cases[i].refusal);
        bytes_free(&why);
        compare_free(&comparison);
        assert_int_equal(compare_make(&comparison, cases[i].base, cases[i].fresh, &lax), GPUFL_OK);
        assert_int_equal(comparison.verdict, COMPARE_JUDGED);
        compare_free(&comparison);
    }
    golden_unload(&whole);
    golden_unload(&killed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_compared_with_itself_has_no_change),
        cmocka_unit_test(sessions_with_few_kernels_in_common_are_not_comparable),
        cmocka_unit_test(an_incomplete_session_has_no_verdict_unless_allowed),
        cmocka_unit_test(totals_of_a_comparison_are_those_of_the_report),
        cmocka_unit_test(a_kernel_that_ran_once_must_differ_by_a_factor_of_two),
        cmocka_unit_test(slower_new_and_vanished_kernels_are_distinguished),
        cmocka_unit_test(a_difference_within_the_noise_is_ignored),
        cmocka_unit_test(a_small_kernel_is_never_a_regression),
        cmocka_unit_test(more_calls_of_the_same_speed_are_a_regression_of_the_total),
        cmocka_unit_test(text_and_json_of_hostile_names_are_harmless),
        cmocka_unit_test(a_scope_without_a_name_has_the_path_null),
        cmocka_unit_test(no_kernels_and_kernels_that_were_not_recorded_are_distinguished),
        cmocka_unit_test(the_text_fits_into_100_columns_whatever_is_missing),
        cmocka_unit_test(a_slower_scope_gives_no_verdict_if_kernels_were_timed_on_one_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
