/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/environment.h"

static const char *const commands[] = {"trace", "report", "verify", "info", "doctor", "demo", "version", NULL};

static void typing_errors_find_the_intended_word(void **state)
{
    (void)state;
    assert_string_equal(nearest_word("trce", commands), "trace");
    assert_string_equal(nearest_word("tarce", commands), "trace");
    assert_string_equal(nearest_word("REPROT", commands), "report");
    assert_string_equal(nearest_word("docter", commands), "doctor");
    assert_string_equal(nearest_word("inf", commands), "info");
    assert_string_equal(nearest_word("GPUFL_LOGDIR", environment_names), "GPUFL_LOG_DIR");
    assert_string_equal(nearest_word("GPUFL_DISABLE", environment_names), "GPUFL_DISABLED");
}

static void a_dissimilar_word_has_no_suggestion(void **state)
{
    (void)state;
    assert_null(nearest_word("", commands));
    assert_null(nearest_word("xyz", commands));
    assert_null(nearest_word("upload", commands));
    char longer[500];
    memset(longer, 't', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_null(nearest_word(longer, commands));
    const char *const long_words[] = {longer, NULL};
    assert_null(nearest_word("t", long_words));
}

static void environment_entries_are_known_by_their_whole_name(void **state)
{
    (void)state;
    assert_true(environment_is_known("GPUFL_DISABLED=1"));
    assert_true(environment_is_known("GPUFL_LOG_DIR"));
    assert_false(environment_is_known("GPUFL_LOG=1"));
    assert_false(environment_is_known("GPUFL_LOG_DIRECTORY=x"));
    for (const char *const *name = environment_names; *name; name++) {
        assert_memory_equal(*name, "GPUFL_", 6);
        assert_true(environment_is_known(*name));
    }
}

static void only_the_documented_words_are_true(void **state)
{
    (void)state;
    assert_true(word_is_true("1"));
    assert_true(word_is_true("TRUE"));
    assert_true(word_is_true("Yes"));
    assert_true(word_is_true("on"));
    assert_false(word_is_true(""));
    assert_false(word_is_true("0"));
    assert_false(word_is_true("2"));
    assert_false(word_is_true("tru"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(typing_errors_find_the_intended_word),
        cmocka_unit_test(a_dissimilar_word_has_no_suggestion),
        cmocka_unit_test(environment_entries_are_known_by_their_whole_name),
        cmocka_unit_test(only_the_documented_words_are_true),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
