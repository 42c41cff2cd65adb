/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"

enum { tags_max = 400 };

struct made {
    struct session_model model;
    struct analysis analysis;
    struct scope_instance scopes[tags_max];
    const char *paths[2], *tags[tags_max + 1];
    char texts[tags_max][16];
};

static struct made *made;

static int setup(void **state)
{
    (void)state;
    made = calloc(1, sizeof *made);
    made->paths[1] = "step";
    made->model.scopes = made->scopes;
    made->model.dictionaries[DICTIONARY_SCOPE_NAME] = (struct dictionary_table){made->paths, 2};
    made->model.dictionaries[DICTIONARY_TAG] = (struct dictionary_table){made->tags, tags_max + 1};
    struct job_info *job = &made->model.job;
    job->app = job->session_id = job->hostname = job->command = job->kind = job->requested_engine = "";
    job->engine = "Trace";
    job->driver_version = job->cuda_version = job->cupti_version = job->gpufl_version = "";
    job->start_ns = job->shutdown_ns = TIME_UNKNOWN;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    analysis_free(&made->analysis);
    free(made);
    return 0;
}

/* One call of "step" after the other, each twice as long as the one before for the first 20. */
static void call_add(const char *format, int number)
{
    size_t at = made->model.scope_count++;
    snprintf(made->texts[at], sizeof made->texts[at], format, number);
    made->tags[at + 1] = made->texts[at];
    made->scopes[at] = (struct scope_instance){.id = at + 1,
                                               .begin_ns = 0,
                                               .end_ns = INT64_C(1) << (at < 20 ? at : 20),
                                               .path_id = 1,
                                               .parent = ID_UNKNOWN,
                                               .tag_id = (uint32_t)at + 1};
    made->model.last_ns = INT64_C(1) << 20;
}

static const struct scope_tag *tags(size_t *count)
{
    assert_int_equal(analysis_make(&made->analysis, &made->model), GPUFL_OK);
    return scope_tags_of(&made->analysis, 1, count);
}

static void few_tags_have_separate_rows_longest_first(void **state)
{
    (void)state;
    size_t count;
    for (int i = 0; i < SCOPE_TAGS_MAX; i++)
        call_add("batch_%d", i);
    const struct scope_tag *rows = tags(&count);
    assert_int_equal(count, SCOPE_TAGS_MAX);
    assert_string_equal(rows[0].text, "batch_7");
    assert_int_equal(rows[0].wall_ns, 1 << 7);
    assert_int_equal(rows[7].calls, 1);
}

static void a_tag_for_each_call_makes_one_row(void **state)
{
    (void)state;
    size_t count;
    for (int i = 0; i < tags_max; i++)
        call_add("batch_%d", i);
    const struct scope_tag *rows = tags(&count);
    assert_int_equal(count, 1);
    assert_string_equal(rows[0].text, "batch_*");
    assert_int_equal(rows[0].tags, tags_max);
    assert_int_equal(rows[0].calls, tags_max);
}

static void many_tags_without_numbers_are_the_longest_ones_and_the_rest(void **state)
{
    (void)state;
    size_t count;
    for (int i = 0; i < 26; i++)
        call_add("kind %c", 'a' + i);
    const struct scope_tag *rows = tags(&count);
    assert_int_equal(count, SCOPE_TAGS_MAX + 1);
    assert_null(rows[SCOPE_TAGS_MAX].text);
    assert_int_equal(rows[SCOPE_TAGS_MAX].tags, 26 - SCOPE_TAGS_MAX);
    uint64_t calls = 0;
    for (size_t i = 0; i < count; i++)
        calls += rows[i].calls;
    assert_int_equal(calls, 26);
}

static void one_tag_of_all_calls_needs_no_row(void **state)
{
    (void)state;
    size_t count;
    for (int i = 0; i < 5; i++) {
        call_add("bf16", 0);
        made->scopes[i].tag_id = 1;
    }
    assert_null(tags(&count));
    assert_int_equal(count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(few_tags_have_separate_rows_longest_first, setup, teardown),
        cmocka_unit_test_setup_teardown(a_tag_for_each_call_makes_one_row, setup, teardown),
        cmocka_unit_test_setup_teardown(many_tags_without_numbers_are_the_longest_ones_and_the_rest, setup, teardown),
        cmocka_unit_test_setup_teardown(one_tag_of_all_calls_needs_no_row, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
