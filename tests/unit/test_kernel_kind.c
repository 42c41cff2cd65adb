/* SPDX-License-Identifier: Apache-2.0 */
/* tests/golden/kernel_kinds.tsv: real kernel names with the kind that each must get, checked by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/kernel_kind.h"

static const char *kind_of(const char *name)
{
    return kernel_kind_name(kernel_kind_of(name));
}

static void every_listed_name_gets_its_kind(void **state)
{
    (void)state;
    char line[8192];
    unsigned count = 0, wrong = 0, by_kind[KERNEL_KIND_COUNT] = {0};
    FILE *file = fopen(SOURCE_DIR "/tests/golden/kernel_kinds.tsv", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        char *tab = strchr(line, '\t');
        assert_non_null(tab);
        *tab = '\0';
        tab[1 + strcspn(tab + 1, "\n")] = '\0';
        enum kernel_kind kind = kernel_kind_of(line);
        if (strcmp(kernel_kind_name(kind), tab + 1) != 0) {
            print_error("%s is %s, not %s\n", line, tab + 1, kernel_kind_name(kind));
            wrong++;
        }
        by_kind[kind]++;
        count++;
    }
    fclose(file);
    assert_int_equal(wrong, 0);
    assert_true(count >= 300);
    for (int kind = 0; kind < KERNEL_KIND_COUNT; kind++)
        assert_true(by_kind[kind] >= 5);
}

static void words_are_found_whole_and_not_inside_of_others(void **state)
{
    (void)state;
    assert_string_equal(kind_of("transforms(int)"), "unknown"); /* "rms" */
    assert_string_equal(kind_of("normal_mode(int)"), "unknown");
    assert_string_equal(kind_of("f(int)::{lambda(float)#1}"), "unknown"); /* "lamb" */
    assert_string_equal(kind_of("resorting"), "unknown");
    assert_string_equal(kind_of("ArrayWithReducedDivisors(int)"), "unknown");
    assert_string_equal(kind_of("SORT_KERNEL"), "sort_scan");
    assert_string_equal(kind_of("myRMSNormKernel2"), "normalization");
    assert_string_equal(kind_of("rms_norm"), "normalization");
    assert_string_equal(kind_of("norm_rms"), "unknown");
}

/* _Z6reduceiPf: reduce(int, float*). Where the identifier ends, only its length says. */
static void the_words_of_a_mangled_name_end_with_its_identifiers(void **state)
{
    (void)state;
    assert_string_equal(kind_of("_Z6reduceiPf"), "reduction");
    assert_string_equal(kind_of("_Z10layer_normiPf"), "normalization");
    assert_string_equal(kind_of("_Z4workILi128EEvPf"), "unknown");
    assert_string_equal(kind_of("_Z99999999999999999999gemm"), "matmul");
    assert_string_equal(kind_of("_Z"), "unknown");
    assert_string_equal(kind_of("_Z9"), "unknown");
}

static void a_name_that_says_nothing_is_unknown(void **state)
{
    (void)state;
    static const char *const names[] = {"",          "_",       "<",          "kernel", "\x80\xff\n",
                                        "fusion_12", "triton_", "triton tem", "0"};
    assert_int_equal(kernel_kind_of(NULL), KIND_UNKNOWN);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_string_equal(kind_of(names[i]), "unknown");
}

/* Also what is hostile: many words, many beginnings of patterns whose end is missing, one endless word. */
static void a_name_of_any_length_gets_a_kind(void **state)
{
    (void)state;
    enum { size = 1 << 20 };
    static const char *const parts[] = {"triton per ", "a ", "multi tensor apply kernel ", "9", "_Z9", "fft2 d ", "Aa"};
    char *name = malloc(size + 1);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        for (size_t at = 0; at < size; at++)
            name[at] = parts[i][at % strlen(parts[i])];
        name[size] = '\0';
        assert_true(kernel_kind_of(name) < KERNEL_KIND_COUNT);
        memcpy(name, "gemm ", 5);
        assert_string_equal(kind_of(name), "matmul");
    }
    free(name);
}

static void bytes_at_random_get_a_kind(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int round = 0; round < 2000; round++) {
        char name[200];
        for (size_t i = 0; i < sizeof name; i++) {
            seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            name[i] = round & 1 ? (char)(seed >> 56) : "_Z0129aAL:<>( "[(seed >> 56) % 14];
        }
        memcpy(name, "_Z", round % 3 ? 0 : 2);
        name[sizeof name - 1] = '\0';
        assert_true(kernel_kind_of(name) < KERNEL_KIND_COUNT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_listed_name_gets_its_kind),
        cmocka_unit_test(words_are_found_whole_and_not_inside_of_others),
        cmocka_unit_test(the_words_of_a_mangled_name_end_with_its_identifiers),
        cmocka_unit_test(a_name_that_says_nothing_is_unknown),
        cmocka_unit_test(a_name_of_any_length_gets_a_kind),
        cmocka_unit_test(bytes_at_random_get_a_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
