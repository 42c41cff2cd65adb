/* SPDX-License-Identifier: Apache-2.0 */
/* Names are in the log once, before the rows that use them, both demangled and mangled. */
#include "recorder_fixture.h"

#include "capture/names.h"

struct fixture {
    char dir[256];
    struct log_writer *writer;
    struct recorder recorder;
    struct names names;
};

static int open_fixture(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    recorder_fixture_open(fixture->dir, &fixture->writer, &fixture->recorder);
    names_open(&fixture->names, &fixture->recorder);
    *state = fixture;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *fixture = *state;
    names_close(&fixture->names);
    recorder_fixture_close(fixture->dir, fixture->writer, &fixture->recorder);
    free(fixture);
    return 0;
}

/* Pending entries, as JSON members. */
static const char *entries(struct fixture *fixture, enum dictionary dictionary)
{
    struct bytes *text = &fixture->recorder.entries[dictionary];
    return text->size ? bytes_text(text) : "";
}

static void a_function_is_defined_once_with_both_of_its_names(void **state)
{
    struct fixture *fixture = *state;
    uint32_t id = names_function(&fixture->names, "_Z9vectorAddPKfS0_Pfi");
    assert_int_not_equal(id, 0);
    assert_int_equal(names_function(&fixture->names, "_Z9vectorAddPKfS0_Pfi"), id);
    assert_string_equal(entries(fixture, DICTIONARY_FUNC_SYMBOL), "\"1\":\"_Z9vectorAddPKfS0_Pfi\"");
    assert_string_equal(entries(fixture, DICTIONARY_FUNCTION),
                        "\"1\":\"vectorAdd(float const*, float const*, float*, int)\"");
}

static void functions_and_stacks_share_one_space_of_ids(void **state)
{
    struct fixture *fixture = *state;
    uint32_t function = names_function(&fixture->names, "plain_c_kernel");
    uint32_t stack = names_stack(&fixture->names, "main@a.out|f", 10, 0);
    assert_int_not_equal(stack, function);
    assert_int_equal(names_stack(&fixture->names, "main@a.out", 10, 0), stack);
    assert_string_equal(entries(fixture, DICTIONARY_FUNCTION), "\"1\":\"plain_c_kernel\",\"2\":\"main@a.out\"");
    assert_string_equal(entries(fixture, DICTIONARY_FUNC_SYMBOL), "\"1\":\"plain_c_kernel\""); /* a stack has none */
}

static void metrics_have_separate_ids(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(names_function(&fixture->names, "f"), 1);
    assert_int_equal(names_metric(&fixture->names, "sm__throughput.avg"), 1);
    assert_int_equal(names_metric(&fixture->names, "sm__warps_active.avg"), 2);
    assert_int_equal(names_metric(&fixture->names, "sm__throughput.avg"), 1);
    assert_string_equal(entries(fixture, DICTIONARY_METRIC),
                        "\"1\":\"sm__throughput.avg\",\"2\":\"sm__warps_active.avg\"");
    assert_true(names_bytes(&fixture->names) > 0);
}

static void a_name_larger_than_the_table_is_0_and_a_loss(void **state)
{
    struct fixture *fixture = *state;
    fixture->names.functions.bytes_max = 48;
    assert_int_not_equal(names_function(&fixture->names, "short"), 0);
    assert_int_equal(names_function(&fixture->names, "a_name_that_does_not_fit"), 0);
    assert_int_equal(atomic_load(&fixture->recorder.lost[LOSS_FUNCTION_NAMES]), 1);
    assert_null(strstr(entries(fixture, DICTIONARY_FUNCTION), "a_name"));
}

static void more_names_than_are_kept_are_all_written_and_none_twice_with_one_id(void **state)
{
    struct fixture *fixture = *state;
    fixture->names.functions.bytes_max = 4096;
    for (int i = 0; i < 1000; i++) {
        char name[32];
        snprintf(name, sizeof name, "kernel_%d", i);
        assert_int_equal(names_function(&fixture->names, name), i + 1);
    }
    assert_int_equal(names_function(&fixture->names, "kernel_0"), 1001);
    assert_non_null(strstr(entries(fixture, DICTIONARY_FUNCTION), "\"1001\":\"kernel_0\""));
    assert_int_equal(recorder_lost_total(&fixture->recorder), 0);
}

#define HOUR_NS (INT64_C(3600) * 1000000000)

static void stacks_beyond_their_share_of_the_log_are_a_loss_until_the_hour_is_over(void **state)
{
    struct fixture *fixture = *state;
    fixture->names.stack_bytes_max = 20;
    uint32_t first = names_stack(&fixture->names, "main@a.c:1|f@a.c:2", 18, HOUR_NS);
    assert_int_not_equal(first, 0);
    assert_int_equal(names_stack(&fixture->names, "main@a.c:1|f@a.c:3", 18, 2 * HOUR_NS - 1), 0);
    assert_int_equal(names_stack(&fixture->names, "main@a.c:1|f@a.c:2", 18, 2 * HOUR_NS - 1), first);
    assert_int_equal(atomic_load(&fixture->recorder.lost[LOSS_STACK_TEXTS]), 1);
    assert_string_equal(entries(fixture, DICTIONARY_FUNCTION), "\"1\":\"main@a.c:1|f@a.c:2\"");
    assert_int_equal(names_stack(&fixture->names, "main@a.c:1|f@a.c:3", 18, 2 * HOUR_NS), 2);
}

#define test_of(body) cmocka_unit_test_setup_teardown(body, open_fixture, close_fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_of(a_function_is_defined_once_with_both_of_its_names),
        test_of(functions_and_stacks_share_one_space_of_ids),
        test_of(metrics_have_separate_ids),
        test_of(a_name_larger_than_the_table_is_0_and_a_loss),
        test_of(more_names_than_are_kept_are_all_written_and_none_twice_with_one_id),
        test_of(stacks_beyond_their_share_of_the_log_are_a_loss_until_the_hour_is_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
