/* SPDX-License-Identifier: Apache-2.0 */
/* The program is not a library, so its parser is compiled in here. */
#include "cli/arguments.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const char *const engines[] = {"Monitor", "Trace", "PcSampling", NULL};
static const struct option_info options[] = {{"engine", 'e', OPTION_CHOICE, "ENGINE", "", engines, 0, 0},
                                             {"output", 'o', OPTION_TEXT, "DIR", "", NULL, 0, 0},
                                             {"sample-ms", 0, OPTION_NUMBER, "N", "", NULL, 0, 1000},
                                             {"quiet", 'q', OPTION_FLAG, NULL, "", NULL, 0, 0},
                                             {"wide", 'w', OPTION_FLAG, NULL, "", NULL, 0, 0},
                                             {0}};

static struct arguments parsed;
static struct problem problem;

/* The words after argv[0]. */
#define PARSE(stops, ...) parse(stops, (char *[]){"trace", __VA_ARGS__, NULL})
static gpufl_status parse(bool stops_at_operand, char **argv)
{
    int argc = 0;
    while (argv[argc])
        argc++;
    problem.text[0] = '\0';
    return arguments_parse(&parsed, options, stops_at_operand, argc, argv, &problem);
}

static void long_and_short_options_take_their_values_in_every_spelling(void **state)
{
    (void)state;
    char *spellings[][3] = {
        {"--output", "d", NULL}, {"--output=d", NULL, NULL}, {"-o", "d", NULL}, {"-od", NULL, NULL}};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(PARSE(false, spellings[i][0], spellings[i][1]), GPUFL_OK);
        assert_string_equal(arguments_text(&parsed, "output", NULL), "d");
        assert_int_equal(parsed.operand_count, 0);
    }
}

static void a_repeated_option_gives_all_its_values(void **state)
{
    (void)state;
    const char *values[4];
    assert_int_equal(PARSE(false, "-oa", "--quiet", "--output=b", "-o", "c"), GPUFL_OK);
    assert_int_equal(arguments_texts(&parsed, "output", values, 4), 3);
    assert_string_equal(values[0], "a");
    assert_string_equal(values[2], "c");
    assert_string_equal(arguments_text(&parsed, "output", NULL), "c");
    assert_int_equal(arguments_texts(&parsed, "output", values, 2), 2);
    assert_int_equal(arguments_texts(&parsed, "quiet", values, 4), 0);
}

static void options_that_were_not_given_have_their_fallback(void **state)
{
    (void)state;
    assert_int_equal(PARSE(false, "dir"), GPUFL_OK);
    assert_false(arguments_has(&parsed, "quiet"));
    assert_string_equal(arguments_text(&parsed, "output", "fallback"), "fallback");
    assert_int_equal(arguments_number(&parsed, "sample-ms", -7), -7);
    assert_int_equal(parsed.operand_count, 1);
    assert_string_equal(parsed.operands[0], "dir");
}

static void grouped_letters_are_single_options(void **state)
{
    (void)state;
    assert_int_equal(PARSE(false, "-qwo", "d", "x"), GPUFL_OK);
    assert_true(arguments_has(&parsed, "quiet"));
    assert_true(arguments_has(&parsed, "wide"));
    assert_string_equal(arguments_text(&parsed, "output", ""), "d");
    assert_string_equal(parsed.operands[0], "x");
}

static void options_may_follow_operands(void **state)
{
    (void)state;
    assert_int_equal(PARSE(false, "dir", "--quiet"), GPUFL_OK);
    assert_true(arguments_has(&parsed, "quiet"));
}

static void two_dashes_end_the_options(void **state)
{
    (void)state;
    assert_int_equal(PARSE(false, "--", "--quiet", "-"), GPUFL_OK);
    assert_false(arguments_has(&parsed, "quiet"));
    assert_int_equal(parsed.operand_count, 2);
    assert_string_equal(parsed.operands[0], "--quiet");
}

static void another_programs_command_line_is_left_alone(void **state)
{
    (void)state;
    assert_int_equal(PARSE(true, "-q", "--", "app", "--engine", "nonsense", "--help"), GPUFL_OK);
    assert_false(parsed.wants_help);
    assert_int_equal(parsed.rest_count, 4);
    assert_string_equal(parsed.rest[0], "app");
    assert_string_equal(parsed.rest[3], "--help");
    assert_null(parsed.rest[4]);
    assert_int_equal(PARSE(true, "-q", "app", "-z"), GPUFL_OK);
    assert_int_equal(parsed.rest_count, 2);
}

static void an_unknown_option_names_the_nearest(void **state)
{
    (void)state;
    assert_int_equal(PARSE(false, "--engin", "Trace"), GPUFL_E_INVALID);
    assert_string_equal(problem.text, "no option '--engin'; did you mean '--engine'?");
    assert_int_equal(PARSE(false, "--engin=Trace"), GPUFL_E_INVALID);
    assert_string_equal(problem.text, "no option '--engin'; did you mean '--engine'?");
    assert_int_equal(PARSE(false, "--xyzzy"), GPUFL_E_INVALID);
    assert_string_equal(problem.text, "no option '--xyzzy'");
    assert_int_equal(PARSE(false, "-x"), GPUFL_E_INVALID);
    assert_string_equal(problem.text, "no option '-x'");
}

static void choices_ignore_case_and_name_the_nearest(void **state)
{
    (void)state;
    assert_int_equal(PARSE(false, "--engine", "pcsampling"), GPUFL_OK);
    assert_string_equal(arguments_text(&parsed, "engine", ""), "PcSampling");
    assert_int_equal(PARSE(false, "--engine", "Trce"), GPUFL_E_INVALID);
    assert_string_equal(problem.text, "no engine 'Trce'; did you mean 'Trace'?");
    assert_int_equal(PARSE(false, "--engine", "quantum"), GPUFL_E_INVALID);
    assert_string_equal(problem.text, "no engine 'quantum'; choose Monitor, Trace or PcSampling");
    assert_int_equal(PARSE(false, "--engine", ""), GPUFL_E_INVALID);
}

static void numbers_are_whole_and_in_range(void **state)
{
    (void)state;
    assert_int_equal(PARSE(false, "--sample-ms", "250"), GPUFL_OK);
    assert_int_equal(arguments_number(&parsed, "sample-ms", 0), 250);
    char *bad[] = {"", "x", "1x", "-1", "1001", "99999999999999999999", "1.5"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(PARSE(false, "--sample-ms", bad[i]), GPUFL_E_INVALID);
        assert_non_null(strstr(problem.text, "--sample-ms takes a whole number from 0 to 1000"));
    }
}

static void missing_and_unwanted_values_are_errors(void **state)
{
    (void)state;
    assert_int_equal(PARSE(false, "--output"), GPUFL_E_INVALID);
    assert_string_equal(problem.text, "--output needs a value: --output DIR");
    assert_int_equal(PARSE(false, "-o"), GPUFL_E_INVALID);
    assert_int_equal(PARSE(false, "--quiet=1"), GPUFL_E_INVALID);
    assert_string_equal(problem.text, "--quiet takes no value");
}

static void help_wins_over_what_follows(void **state)
{
    (void)state;
    assert_int_equal(PARSE(false, "--help", "--nonsense"), GPUFL_OK);
    assert_true(parsed.wants_help);
    assert_int_equal(PARSE(false, "-qh"), GPUFL_OK);
    assert_true(parsed.wants_help);
}

static void the_last_of_repeated_options_wins(void **state)
{
    (void)state;
    assert_int_equal(PARSE(false, "-o", "a", "--output=b"), GPUFL_OK);
    assert_string_equal(arguments_text(&parsed, "output", ""), "b");
}

static void too_many_operands_are_refused(void **state)
{
    (void)state;
    char *argv[ARGUMENTS_OPERANDS_MAX + 3] = {"trace"};
    for (int i = 1; i <= ARGUMENTS_OPERANDS_MAX + 1; i++)
        argv[i] = "x";
    assert_int_equal(parse(false, argv), GPUFL_E_LIMIT);
    argv[ARGUMENTS_OPERANDS_MAX + 1] = NULL;
    assert_int_equal(parse(false, argv), GPUFL_OK);
    assert_int_equal(parsed.operand_count, ARGUMENTS_OPERANDS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_and_short_options_take_their_values_in_every_spelling),
        cmocka_unit_test(a_repeated_option_gives_all_its_values),
        cmocka_unit_test(options_that_were_not_given_have_their_fallback),
        cmocka_unit_test(grouped_letters_are_single_options),
        cmocka_unit_test(options_may_follow_operands),
        cmocka_unit_test(two_dashes_end_the_options),
        cmocka_unit_test(another_programs_command_line_is_left_alone),
        cmocka_unit_test(an_unknown_option_names_the_nearest),
        cmocka_unit_test(choices_ignore_case_and_name_the_nearest),
        cmocka_unit_test(numbers_are_whole_and_in_range),
        cmocka_unit_test(missing_and_unwanted_values_are_errors),
        cmocka_unit_test(help_wins_over_what_follows),
        cmocka_unit_test(the_last_of_repeated_options_wins),
        cmocka_unit_test(too_many_operands_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
