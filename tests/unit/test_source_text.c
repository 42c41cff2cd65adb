/* SPDX-License-Identifier: Apache-2.0 */
#include "session_fixture.h"

#include "code/source_text.h"

static void assert_refused(const char *path, const char *directory, gpufl_status expected, const char *word)
{
    struct source_text source;
    struct problem problem = {""};
    assert_int_equal(source_text_read(&source, path, directory, &problem), expected);
    if (!strstr(problem.text, word))
        fail_msg("'%s' does not say: %s", problem.text, word);
    assert_null(source.bytes);
    assert_null(source.lines);
}

static void assert_line(const struct source_text *source, uint32_t number, const char *text)
{
    const struct source_line *line = source_text_line(source, number);
    assert_non_null(line);
    assert_int_equal(line->size, strlen(text));
    assert_memory_equal(line->text, text, line->size);
}

static void lines_count_from_one_and_exclude_their_ends(void **state)
{
    static const char text[] = "int a;\r\n\n    b();\nlast";
    fixture_write(*state, "a.cu", text, sizeof text - 1);
    char path[512];
    fixture_path(path, *state, "a.cu");
    struct source_text source;
    assert_int_equal(source_text_read(&source, path, NULL, NULL), GPUFL_OK);
    assert_int_equal(source.line_count, 4);
    assert_line(&source, 1, "int a;");
    assert_line(&source, 2, "");
    assert_line(&source, 3, "    b();");
    assert_line(&source, 4, "last");
    assert_null(source_text_line(&source, 0));
    assert_null(source_text_line(&source, 5));
    source_text_free(&source);
}

static void a_relative_path_starts_at_the_given_directory(void **state)
{
    fixture_write(*state, "b.py", "x = 1\n", 6);
    struct source_text source;
    assert_int_equal(source_text_read(&source, "b.py", *state, NULL), GPUFL_OK);
    assert_int_equal(source.line_count, 1);
    source_text_free(&source);
    assert_refused("b.py", NULL, GPUFL_E_NOT_FOUND, "b.py");
}

static void an_empty_file_has_no_lines(void **state)
{
    fixture_write(*state, "c.h", "", 0);
    struct source_text source;
    assert_int_equal(source_text_read(&source, "c.h", *state, NULL), GPUFL_OK);
    assert_int_equal(source.line_count, 0);
    source_text_free(&source);
}

static void files_other_than_source_files_are_rejected_with_the_reason(void **state)
{
    char path[512];
    assert_refused("missing.cu", *state, GPUFL_E_NOT_FOUND, "missing.cu");
    fixture_path(path, *state, "directory.cu");
    assert_int_equal(mkdir(path, 0700), 0);
    assert_refused(path, NULL, GPUFL_E_INVALID, "not a regular file");
    fixture_path(path, *state, "pipe.cu");
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_refused(path, NULL, GPUFL_E_INVALID, "not a regular file");
    fixture_write(*state, "binary.cu", "a\0b", 3);
    assert_refused("binary.cu", *state, GPUFL_E_INVALID, "not a text");
    assert_refused("/etc/passwd", NULL, GPUFL_E_INVALID, "not the name of a source file");
    assert_refused("id_rsa.pem", *state, GPUFL_E_INVALID, "not the name of a source file");
    assert_refused("", *state, GPUFL_E_INVALID, "not the name");
    fixture_path(path, *state, "large.cu");
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, SOURCE_TEXT_BYTES_MAX + 1), 0);
    close(fd);
    assert_refused(path, NULL, GPUFL_E_LIMIT, "2 MiB");
}

static void headers_without_an_extension_are_read_in_include_directories(void **state)
{
    char path[512];
    fixture_path(path, *state, "include");
    assert_int_equal(mkdir(path, 0700), 0);
    fixture_write(path, "vector", "template\n", 9);
    struct source_text source;
    assert_int_equal(source_text_read(&source, "include/vector", *state, NULL), GPUFL_OK);
    source_text_free(&source);
    fixture_write(*state, "vector", "template\n", 9);
    assert_refused("vector", *state, GPUFL_E_INVALID, "not the name of a source file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lines_count_from_one_and_exclude_their_ends, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_relative_path_starts_at_the_given_directory, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(an_empty_file_has_no_lines, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(files_other_than_source_files_are_rejected_with_the_reason, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(headers_without_an_extension_are_read_in_include_directories, fixture_setup,
                                        fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
