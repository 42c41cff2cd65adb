/* SPDX-License-Identifier: Apache-2.0 */
/* Options: defaults, precedence, and the errors for invalid ones. */
#include "sdk/options.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const variables[] = {"GPUFL_DISABLED",
                                        "GPUFL_PROFILING_ENGINE",
                                        "GPUFL_APP_NAME",
                                        "GPUFL_CONFIG_FILE",
                                        "GPUFL_BACKEND_URL",
                                        "GPUFL_API_KEY",
                                        "GPUFL_API_PATH",
                                        "GPUFL_REMOTE_UPLOAD",
                                        "GPUFL_LOG_DIR",
                                        "GPUFL_SYSTEM_SAMPLE_RATE_MS",
                                        "GPUFL_ENABLE_STACK_TRACE",
                                        "GPUFL_TRACE_GIVEN"};

static int clear_environment(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    return 0;
}

static char config_path[] = "/tmp/gpufl-config-XXXXXX";

static void write_config(const char *text)
{
    static int is_made;
    if (!is_made++)
        close(mkstemp(config_path));
    FILE *file = fopen(config_path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    setenv("GPUFL_CONFIG_FILE", config_path, 1);
}

static void defaults_are_those_of_the_public_contract(void **state)
{
    (void)state;
    struct options options;
    assert_int_equal(options_resolve(&options, NULL, NULL), GPUFL_OK);
    assert_string_equal(options.app_name, "gpufl");
    assert_string_equal(options.log_path, "gpufl");
    assert_string_equal(options.api_path, "/api/v1");
    assert_string_equal(options.backend_url, "");
    assert_int_equal(options.profiling_engine, GPUFL_ENGINE_MONITOR);
    assert_int_equal(options.backend, GPUFL_BACKEND_AUTO);
    assert_true(options.enabled);
    assert_false(options.enable_stack_trace);
    assert_true(options.enable_source_collection);
    assert_true(options.enable_external_correlation);
    assert_true(options.enable_synchronization);
    assert_false(options.enable_memory_tracking);
    assert_false(options.enable_cuda_graphs_tracking);
    assert_false(options.continuous_system_sampling);
    assert_false(options.flush_logs_always);
    assert_int_equal(options.system_sample_rate_ms, 0);
}

static void code_wins_over_environment_wins_over_file_wins_over_default(void **state)
{
    (void)state;
    struct options options;
    write_config("{\"app_name\": \"from_file\", \"profiling_engine\": \"Deep\", \"enable_stack_trace\": true}");
    assert_int_equal(options_resolve(&options, NULL, NULL), GPUFL_OK);
    assert_string_equal(options.app_name, "from_file");
    assert_int_equal(options.profiling_engine, GPUFL_ENGINE_DEEP);
    assert_true(options.enable_stack_trace);
    setenv("GPUFL_PROFILING_ENGINE", "pcsampling", 1);
    setenv("GPUFL_APP_NAME", "from_environment", 1);
    assert_int_equal(options_resolve(&options, NULL, NULL), GPUFL_OK);
    assert_string_equal(options.app_name, "from_environment");
    assert_int_equal(options.profiling_engine, GPUFL_ENGINE_PC_SAMPLING);
    gpufl_options given = GPUFL_OPTIONS_INIT;
    given.app_name = "from_code";
    given.profiling_engine = GPUFL_ENGINE_MONITOR;
    given.enable_stack_trace = GPUFL_OFF;
    assert_int_equal(options_resolve(&options, &given, NULL), GPUFL_OK);
    assert_string_equal(options.app_name, "from_code");
    assert_string_equal(options.log_path, "from_code");
    assert_int_equal(options.profiling_engine, GPUFL_ENGINE_MONITOR);
    assert_false(options.enable_stack_trace);
}

static void the_command_line_of_trace_wins_over_code_where_it_says_something(void **state)
{
    (void)state;
    struct options options;
    gpufl_options given = GPUFL_OPTIONS_INIT;
    given.profiling_engine = GPUFL_ENGINE_TRACE;
    given.log_path = "from_code";
    setenv("GPUFL_PROFILING_ENGINE", "Deep", 1);
    setenv("GPUFL_LOG_DIR", "from_command_line", 1);
    setenv("GPUFL_TRACE_GIVEN", "profiling_engine", 1);
    assert_int_equal(options_resolve(&options, &given, NULL), GPUFL_OK);
    assert_int_equal(options.profiling_engine, GPUFL_ENGINE_DEEP);
    assert_string_equal(options.log_path, "from_code");
    setenv("GPUFL_TRACE_GIVEN", "profiling_engine,log_path", 1);
    assert_int_equal(options_resolve(&options, &given, NULL), GPUFL_OK);
    assert_string_equal(options.log_path, "from_command_line");
    setenv("GPUFL_TRACE_GIVEN", "my_log_path", 1);
    assert_int_equal(options_resolve(&options, &given, NULL), GPUFL_OK);
    assert_int_equal(options.profiling_engine, GPUFL_ENGINE_TRACE);
    assert_string_equal(options.log_path, "from_code");
}

static void gpufl_disabled_wins_over_everything(void **state)
{
    (void)state;
    static const char *const truths[] = {"1", "true", "YES", "On"};
    gpufl_options given = GPUFL_OPTIONS_INIT;
    given.enabled = GPUFL_ON;
    for (size_t i = 0; i < sizeof truths / sizeof *truths; i++) {
        setenv("GPUFL_DISABLED", truths[i], 1);
        assert_true(options_are_disabled(&given));
    }
    setenv("GPUFL_DISABLED", "0", 1);
    assert_false(options_are_disabled(&given));
    given.enabled = GPUFL_OFF;
    assert_true(options_are_disabled(&given));
}

static void assert_refused(const gpufl_options *given, const char *expected)
{
    struct options options;
    struct problem problem = {""};
    assert_int_equal(options_resolve(&options, given, &problem), GPUFL_E_INVALID);
    if (!strstr(problem.text, expected))
        fail_msg("'%s' does not say '%s'", problem.text, expected);
}

static void an_unknown_engine_is_named_with_the_nearest_one(void **state)
{
    (void)state;
    setenv("GPUFL_PROFILING_ENGINE", "Trce", 1);
    assert_refused(NULL, "GPUFL_PROFILING_ENGINE: no such value 'Trce'; did you mean 'Trace'?");
}

static void a_config_file_error_has_file_line_and_column(void **state)
{
    (void)state;
    write_config("{\n  \"enable_stak_trace\": true\n}");
    assert_refused(NULL, ":2:24: no option 'enable_stak_trace'; did you mean 'enable_stack_trace'?");
    write_config("{\n  \"app_name\": 3\n}");
    assert_refused(NULL, ":2:15: app_name requires text in quotes");
    write_config("{\"system_sample_rate_ms\": -5}");
    assert_refused(NULL, "system_sample_rate_ms must be 0 to 3600000, not -5");
    write_config("{\"app_name\": \"x\"");
    assert_refused(NULL, ":1:17:");
    write_config("[1]");
    assert_refused(NULL, "expected an object of options");
    setenv("GPUFL_CONFIG_FILE", "/nonexistent/gpufl.json", 1);
    assert_refused(NULL, "config file /nonexistent/gpufl.json: No such file or directory");
    setenv("GPUFL_CONFIG_FILE", "/", 1);
    assert_refused(NULL, "not a plain file");
}

static void bad_environment_values_are_refused_by_name(void **state)
{
    (void)state;
    setenv("GPUFL_SYSTEM_SAMPLE_RATE_MS", "50ms", 1);
    assert_refused(NULL, "GPUFL_SYSTEM_SAMPLE_RATE_MS: '50ms' is not a whole number");
    unsetenv("GPUFL_SYSTEM_SAMPLE_RATE_MS");
    setenv("GPUFL_ENABLE_STACK_TRACE", "maybe", 1);
    assert_refused(NULL, "GPUFL_ENABLE_STACK_TRACE: 'maybe' is neither on");
}

static void options_of_older_and_newer_callers_are_understood_or_refused(void **state)
{
    (void)state;
    struct options options;
    struct problem problem;
    gpufl_options given = GPUFL_OPTIONS_INIT;
    given.struct_size = 8;
    assert_refused(&given, "start from GPUFL_OPTIONS_INIT");
    struct {
        gpufl_options known;
        uint64_t later;
    } newer = {GPUFL_OPTIONS_INIT, 0};
    newer.known.struct_size = sizeof newer;
    assert_int_equal(options_resolve(&options, &newer.known, &problem), GPUFL_OK);
    newer.later = 1;
    assert_int_equal(options_resolve(&options, &newer.known, &problem), GPUFL_E_VERSION);
    gpufl_options bad = GPUFL_OPTIONS_INIT;
    bad.profiling_engine = (gpufl_engine)99;
    assert_refused(&bad, "unknown engine 99");
}

static void a_text_that_does_not_fit_is_refused_not_cut(void **state)
{
    (void)state;
    char long_name[400];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    gpufl_options given = GPUFL_OPTIONS_INIT;
    given.app_name = long_name;
    assert_refused(&given, "app_name is longer than 255 bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(defaults_are_those_of_the_public_contract, clear_environment),
        cmocka_unit_test_setup(code_wins_over_environment_wins_over_file_wins_over_default, clear_environment),
        cmocka_unit_test_setup(the_command_line_of_trace_wins_over_code_where_it_says_something, clear_environment),
        cmocka_unit_test_setup(gpufl_disabled_wins_over_everything, clear_environment),
        cmocka_unit_test_setup(an_unknown_engine_is_named_with_the_nearest_one, clear_environment),
        cmocka_unit_test_setup(a_config_file_error_has_file_line_and_column, clear_environment),
        cmocka_unit_test_setup(bad_environment_values_are_refused_by_name, clear_environment),
        cmocka_unit_test_setup(options_of_older_and_newer_callers_are_understood_or_refused, clear_environment),
        cmocka_unit_test_setup(a_text_that_does_not_fit_is_refused_not_cut, clear_environment),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(config_path);
    return failed;
}
