/* SPDX-License-Identifier: Apache-2.0 */
/* What a C program without a callback prints to standard error: one line at the start and one at the end, each only
 * if the session differs from the request. */
#include "session_fixture.h"

#include <gpufl/gpufl.h>

#include <pthread.h>
#include <sys/wait.h>

static char heard[600];

static void hear(void *user, gpufl_log_level level, const char *message)
{
    (void)user, (void)level;
    snprintf(heard, sizeof heard, "%s", message);
}

/* Runs it in a child, since a process reads its environment once; returns what it printed to standard error. */
static const char *stderr_of(void (*program)(const char *dir), const char *dir)
{
    static char text[4096];
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        program(dir);
        exit(0);
    }
    close(ends[1]);
    size_t size = 0;
    ssize_t got;
    while ((got = read(ends[0], text + size, sizeof text - 1 - size)) > 0)
        size += (size_t)got;
    text[size] = '\0';
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    return text;
}

static gpufl_options options_in(const char *dir)
{
    gpufl_options options = GPUFL_OPTIONS_INIT;
    options.log_path = dir;
    options.backend = GPUFL_BACKEND_NONE;
    return options;
}

static void record_nothing(const char *dir)
{
    gpufl_options options = options_in(dir);
    (void)gpufl_init(&options);
    gpufl_shutdown();
}

static void with_a_wrong_engine(const char *dir)
{
    setenv("GPUFL_PROFILING_ENGINE", "Traec", 1);
    record_nothing(dir);
}

static void with_a_wrong_engine_quietly(const char *dir)
{
    setenv("GPUFL_QUIET", "1", 1);
    with_a_wrong_engine(dir);
}

static void with_a_missing_config_file(const char *dir)
{
    setenv("GPUFL_CONFIG_FILE", "/nonexistent/gpufl.json", 1);
    record_nothing(dir);
}

static void with_a_directory_that_cannot_be(const char *dir)
{
    char path[512];
    fixture_write(dir, "file", "x", 1);
    fixture_path(path, dir, "file");
    record_nothing(path);
}

static void with_an_engine_that_is_missing(const char *dir)
{
    setenv("GPUFL_CUPTI_PATH", "/nonexistent", 1);
    gpufl_options options = options_in(dir);
    options.backend = GPUFL_BACKEND_NVIDIA;
    options.profiling_engine = GPUFL_ENGINE_DEEP;
    options.kernel_sample_rate_ms = 5;
    assert_int_equal(gpufl_init(&options), GPUFL_OK);
    assert_int_equal(gpufl_active_engine(), GPUFL_ENGINE_MONITOR);
    gpufl_shutdown();
}

static void with_a_callback(const char *dir)
{
    setenv("GPUFL_PROFILING_ENGINE", "Traec", 1);
    gpufl_options options = options_in(dir);
    options.log_fn = hear;
    assert_int_equal(gpufl_init(&options), GPUFL_E_INVALID);
    assert_non_null(strstr(heard, "did you mean 'Trace'?"));
}

static void with_a_standard_error_that_is_full(const char *dir)
{
    int ends[2];
    char byte[4096] = {0};
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    while (write(ends[1], byte, sizeof byte) > 0) {
    }
    assert_int_equal(fcntl(ends[1], F_SETFL, 0), 0);
    dup2(ends[1], STDERR_FILENO);
    with_a_wrong_engine(dir);
}

static int line_count(const char *text)
{
    int lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

static void with_a_switch_that_is_neither_on_nor_off(const char *dir)
{
    setenv("GPUFL_DISABLED", "maybe", 1);
    record_nothing(dir);
    assert_int_equal(gpufl_is_recording(), 0);
}

static void with_a_switch_that_is_off(const char *dir)
{
    setenv("GPUFL_DISABLED", "No", 1);
    record_nothing(dir);
    setenv("GPUFL_DISABLED", "", 1);
    record_nothing(dir);
}

static void with_a_switch_that_is_on(const char *dir)
{
    setenv("GPUFL_DISABLED", "YES", 1);
    record_nothing(dir);
}

static void GPUFL_DISABLED_that_is_neither_on_nor_off_disables_and_is_one_line(void **state)
{
    assert_string_equal(stderr_of(with_a_switch_that_is_neither_on_nor_off, *state),
                        "gpufl: not recording: GPUFL_DISABLED: 'maybe' is neither on (1, true, yes, on) nor off (0, "
                        "false, no, off), and counts as on\n");
    assert_string_equal(stderr_of(with_a_switch_that_is_on, *state), "");
    assert_string_equal(stderr_of(with_a_switch_that_is_off, *state), "");
}

static void a_request_that_is_fulfilled_prints_nothing(void **state)
{
    assert_string_equal(stderr_of(record_nothing, *state), "");
}

static void a_wrong_engine_name_is_one_line(void **state)
{
    const char *text = stderr_of(with_a_wrong_engine, *state);
    assert_int_equal(line_count(text), 1);
    assert_non_null(strstr(text, "gpufl: not recording: GPUFL_PROFILING_ENGINE: no such value 'Traec'"));
}

static void GPUFL_QUIET_silences_it(void **state)
{
    assert_string_equal(stderr_of(with_a_wrong_engine_quietly, *state), "");
}

static void a_wrong_config_file_or_directory_is_one_line(void **state)
{
    const char *text = stderr_of(with_a_missing_config_file, *state);
    assert_int_equal(line_count(text), 1);
    assert_non_null(strstr(text, "not recording: config file /nonexistent/gpufl.json: No such file"));
    text = stderr_of(with_a_directory_that_cannot_be, *state);
    assert_int_equal(line_count(text), 1);
    assert_non_null(strstr(text, "gpufl: not recording: "));
}

static void a_lower_engine_and_a_deprecated_option_are_one_line(void **state)
{
    const char *text = stderr_of(with_an_engine_that_is_missing, *state);
    assert_int_equal(line_count(text), 1);
    assert_non_null(strstr(text, "asked for Deep, running Monitor (no kernels are recorded): GPUFL_CUPTI_PATH"));
    assert_non_null(strstr(text, "; "));
    assert_non_null(strstr(text, "kernel_sample_rate_ms is deprecated"));
}

static void a_callback_hears_of_wrong_options_and_nothing_is_printed(void **state)
{
    assert_string_equal(stderr_of(with_a_callback, *state), "");
}

static void a_full_pipe_does_not_stop_the_program(void **state)
{
    assert_string_equal(stderr_of(with_a_standard_error_that_is_full, *state), "");
}

static void continuous_sampling_without_a_rate_uses_the_default(void **state)
{
    gpufl_options options = options_in(*state);
    options.continuous_system_sampling = GPUFL_ON;
    assert_int_equal(gpufl_init(&options), GPUFL_OK);
    char dir[512];
    snprintf(dir, sizeof dir, "%s", gpufl_session_dir());
    gpufl_shutdown(); /* takes a last sample */
    size_t size;
    char *text = fixture_read(dir, "system.log", &size);
    assert_non_null(strstr(text, "\"type\":\"host_metric_batch\""));
    free(text);
}

int main(void)
{
    unsetenv("GPUFL_DISABLED");
    unsetenv("GPUFL_QUIET");
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        TEST(GPUFL_DISABLED_that_is_neither_on_nor_off_disables_and_is_one_line),
        TEST(a_request_that_is_fulfilled_prints_nothing),
        TEST(a_wrong_engine_name_is_one_line),
        TEST(GPUFL_QUIET_silences_it),
        TEST(a_wrong_config_file_or_directory_is_one_line),
        TEST(a_lower_engine_and_a_deprecated_option_are_one_line),
        TEST(a_callback_hears_of_wrong_options_and_nothing_is_printed),
        TEST(a_full_pipe_does_not_stop_the_program),
        TEST(continuous_sampling_without_a_rate_uses_the_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
