/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which a vendor library is searched. Copies of a real shared object stand for it; each test has a
 * separate prefix, because libraries stay mapped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[256];
static char made[32][512];
static int made_count;
static const char variable[] = "GPUFL_TEST_LIBRARY_PATH";

static int make_root(void **state)
{
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(root, sizeof root, "%s/gpufl-library-XXXXXX", base && *base ? base : "/tmp");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    (void)state;
    while (made_count)
        remove(made[--made_count]);
    return rmdir(root);
}

static const char *make_path(const char *name)
{
    assert_true(made_count < 32);
    snprintf(made[made_count], sizeof made[0], "%s/%s", root, name);
    return made[made_count++];
}

static const char *make_directory(const char *name)
{
    const char *path = make_path(name);
    assert_int_equal(mkdir(path, 0700), 0);
    return path;
}

static const char *make_library(const char *name)
{
    char source[512];
    assert_true(library_find_mapped("libcmocka.so", source, sizeof source));
    const char *path = make_path(name);
    FILE *in = fopen(source, "rb"), *out = fopen(path, "wb");
    assert_non_null(in);
    assert_non_null(out);
    char block[4096];
    for (size_t size; (size = fread(block, 1, sizeof block, in)) > 0;)
        assert_int_equal(fwrite(block, 1, size, out), size);
    fclose(in);
    assert_int_equal(fclose(out), 0);
    return path;
}

static void a_mapped_library_is_found_by_the_start_of_its_file_name(void **state)
{
    (void)state;
    char path[512];
    assert_true(library_find_mapped("libc.so", path, sizeof path));
    assert_non_null(strstr(path, "libc.so"));
    assert_false(library_find_mapped("libgpufl-never-was.so", path, sizeof path));
    char tiny[4];
    assert_false(library_find_mapped("libc.so", tiny, sizeof tiny)); /* never a truncated path */
}

static void a_mapped_library_wins_over_everything(void **state)
{
    (void)state;
    setenv(variable, "/nonexistent/libcmocka.so", 1);
    struct library library;
    const struct library_search search = {"libcmocka.so", variable, NULL, NULL};
    assert_int_equal(library_open(&library, &search, NULL), GPUFL_OK);
    unsetenv(variable);
    assert_true(library.was_mapped);
    assert_non_null(strstr(library.path, "libcmocka.so"));
    assert_non_null(library_symbol(&library, "_cmocka_run_group_tests"));
    assert_null(library_symbol(&library, "gpufl_no_such_symbol"));
}

static void an_explicit_path_wins_over_directories(void **state)
{
    (void)state;
    const char *folder = make_directory("folder1");
    make_library("folder1/libone.so.1");
    const char *chosen = make_library("chosen-one.so");
    const char *const directories[] = {folder, NULL}, *const names[] = {"libone.so.1", NULL};
    setenv(variable, chosen, 1);
    struct library library;
    assert_int_equal(library_open(&library, &(struct library_search){"libone.so", variable, directories, names}, NULL),
                     GPUFL_OK);
    unsetenv(variable);
    assert_string_equal(library.path, chosen);
    assert_false(library.was_mapped);
}

static void an_explicit_path_may_be_the_directory(void **state)
{
    (void)state;
    const char *folder = make_directory("folder2");
    const char *file = make_library("folder2/libtwo.so.1");
    const char *const names[] = {"libtwo.so.2", "libtwo.so.1", NULL};
    setenv(variable, folder, 1);
    struct library library;
    assert_int_equal(library_open(&library, &(struct library_search){"libtwo.so", variable, NULL, names}, NULL),
                     GPUFL_OK);
    unsetenv(variable);
    assert_string_equal(library.path, file);
}

static void a_wrong_explicit_path_is_an_error_that_names_it(void **state)
{
    (void)state;
    const char *folder = make_directory("folder3");
    make_library("folder3/libthree.so.1");
    const char *const directories[] = {folder, NULL}, *const names[] = {"libthree.so.1", NULL};
    setenv(variable, "/nonexistent/libthree.so.1", 1);
    struct library library = {.path = "untouched"};
    struct problem problem = {""};
    assert_int_equal(
        library_open(&library, &(struct library_search){"libthree.so", variable, directories, names}, &problem),
        GPUFL_E_NOT_FOUND);
    unsetenv(variable);
    assert_non_null(strstr(problem.text, variable));
    assert_non_null(strstr(problem.text, "/nonexistent/libthree.so.1"));
    assert_string_equal(library.path, "untouched");
}

static void the_better_name_wins_over_the_earlier_directory(void **state)
{
    (void)state;
    const char *first = make_directory("folder4"), *second = make_directory("folder5");
    make_library("folder4/libfour.so.12");
    const char *best = make_library("folder5/libfour.so.13");
    const char *const directories[] = {first, second, NULL};
    const char *const names[] = {"libfour.so.13", "libfour.so.12", NULL};
    struct library library;
    assert_int_equal(library_open(&library, &(struct library_search){"libfour.so", variable, directories, names}, NULL),
                     GPUFL_OK);
    assert_string_equal(library.path, best);
}

static void of_several_toolkits_the_last_in_order_wins(void **state)
{
    (void)state;
    make_directory("kit-12.8");
    make_directory("kit-13.0");
    make_library("kit-12.8/libfive.so.1");
    const char *newest = make_library("kit-13.0/libfive.so.1");
    char pattern[300];
    snprintf(pattern, sizeof pattern, "%s/kit-*", root);
    const char *const directories[] = {pattern, NULL}, *const names[] = {"libfive.so.1", NULL};
    struct library library;
    assert_int_equal(library_open(&library, &(struct library_search){"libfive.so", NULL, directories, names}, NULL),
                     GPUFL_OK);
    assert_string_equal(library.path, newest);
}

static void a_file_that_does_not_load_is_passed_over(void **state)
{
    (void)state;
    const char *bad = make_directory("folder6"), *good = make_directory("folder7");
    FILE *file = fopen(make_path("folder6/libsix.so.1"), "wb");
    assert_non_null(file);
    fputs("not a library", file);
    fclose(file);
    const char *expected = make_library("folder7/libsix.so.1");
    const char *const directories[] = {bad, good, NULL}, *const names[] = {"libsix.so.1", NULL};
    struct library library;
    assert_int_equal(library_open(&library, &(struct library_search){"libsix.so", NULL, directories, names}, NULL),
                     GPUFL_OK);
    assert_string_equal(library.path, expected);
}

static void an_absent_library_says_what_to_do(void **state)
{
    (void)state;
    const char *const names[] = {"libgpufl-never-was.so.1", NULL};
    struct library library;
    struct problem problem = {""};
    assert_int_equal(
        library_open(&library, &(struct library_search){"libgpufl-never-was.so", variable, NULL, names}, &problem),
        GPUFL_E_NOT_FOUND);
    assert_non_null(strstr(problem.text, variable));
    assert_int_equal(
        library_open(&library, &(struct library_search){"libgpufl-never-was.so", NULL, NULL, NULL}, &problem),
        GPUFL_E_NOT_FOUND);
    assert_non_null(strstr(problem.text, "not loaded"));
}

static size_t resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long all = 0, resident = 0;
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu %lu", &all, &resident), 2);
    fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static void zeros_that_a_library_wrote_are_given_back_and_read_the_same(void **state)
{
    (void)state;
    struct library library;
    const char *const names[] = {FAKES_DIR "/libnvidia-ml.so.1", NULL};
    assert_int_equal(library_open(&library, &(struct library_search){"libnvidia-ml.so", NULL, NULL, names}, NULL),
                     GPUFL_OK);
    int (*init)(void), (*count)(unsigned *);
    *(void **)&init = library_symbol(&library, "nvmlInit_v2");
    *(void **)&count = library_symbol(&library, "nvmlDeviceGetCount_v2");
    assert_int_equal(init(), 0);
    unsigned before = 0, after = 0;
    assert_int_equal(count(&before), 0);
    size_t resident = resident_bytes();
    assert_true(library_trim(&library) >= 1 << 19);
    assert_true(resident_bytes() + (1 << 19) <= resident);
    assert_int_equal(count(&after), 0);
    assert_int_equal(after, before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mapped_library_is_found_by_the_start_of_its_file_name),
        cmocka_unit_test(a_mapped_library_wins_over_everything),
        cmocka_unit_test(an_explicit_path_wins_over_directories),
        cmocka_unit_test(an_explicit_path_may_be_the_directory),
        cmocka_unit_test(a_wrong_explicit_path_is_an_error_that_names_it),
        cmocka_unit_test(the_better_name_wins_over_the_earlier_directory),
        cmocka_unit_test(of_several_toolkits_the_last_in_order_wins),
        cmocka_unit_test(a_file_that_does_not_load_is_passed_over),
        cmocka_unit_test(an_absent_library_says_what_to_do),
        cmocka_unit_test(zeros_that_a_library_wrote_are_given_back_and_read_the_same),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
