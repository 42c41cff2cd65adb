/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/quantity.h"
#include "analysis/statistics.h"

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 16;
}

static int compare_int64(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return a < b ? -1 : a > b;
}

static void values_sort_agrees_with_qsort(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (size_t count = 0; count < 3000; count = count * 3 / 2 + 1) {
        int64_t *values = malloc((count + 1) * sizeof *values), *expected = malloc((count + 1) * sizeof *expected);
        int64_t *scratch = malloc((count + 1) * sizeof *scratch);
        for (size_t i = 0; i < count; i++)
            values[i] = expected[i] = (int64_t)(next_random(&seed) >> (next_random(&seed) % 40));
        qsort(expected, count, sizeof *expected, compare_int64);
        values_sort(values, scratch, count);
        if (count)
            assert_memory_equal(values, expected, count * sizeof *values);
        free(values);
        free(expected);
        free(scratch);
    }
}

static void keys_order_is_stable_and_takes_negative_keys(void **state)
{
    (void)state;
    const int64_t keys[] = {5, -7, INT64_MAX, 5, INT64_MIN, 0, -7};
    const uint32_t expected[] = {4, 1, 6, 5, 0, 3, 2};
    uint32_t order[7], scratch[7];
    keys_order(keys, 7, order, scratch);
    assert_memory_equal(order, expected, sizeof expected);
    assert_false(keys_are_ordered(keys, 7));
    assert_true(keys_are_ordered(keys, 0));
}

static void percentiles_are_nearest_rank(void **state)
{
    (void)state;
    int64_t sorted[200];
    for (int i = 0; i < 200; i++)
        sorted[i] = i + 1;
    assert_int_equal(nearest_rank(sorted, 200, 50), 100);
    assert_int_equal(nearest_rank(sorted, 200, 90), 180);
    assert_int_equal(nearest_rank(sorted, 200, 99), 198);
    assert_int_equal(nearest_rank(sorted, 1, 99), 1);
    assert_int_equal(nearest_rank(sorted, 2, 50), 1);
    assert_int_equal(nearest_rank(sorted, 3, 50), 2);
    assert_int_equal(nearest_rank(sorted, 10, 99), 10);
    assert_int_equal(nearest_rank(sorted, 101, 99), 100);
}

static void distribution_holds_every_figure(void **state)
{
    (void)state;
    int64_t values[] = {40, 10, 30, 20}, scratch[4];
    struct distribution result = distribution_of(values, scratch, 4);
    assert_int_equal(result.count, 4);
    assert_int_equal(result.total, 100);
    assert_true(result.mean == 25.0);
    assert_int_equal(result.min, 10);
    assert_int_equal(result.max, 40);
    assert_int_equal(result.p50, 20);
    assert_int_equal(result.p99, 40);
    result = distribution_of(values, scratch, 0);
    assert_int_equal(result.count, 0);
}

static void sums_saturate(void **state)
{
    (void)state;
    assert_true(sum_saturated(INT64_MAX, 1) == INT64_MAX);
    assert_true(sum_saturated(INT64_MIN, -1) == INT64_MIN);
    assert_true(sum_saturated_u64(UINT64_MAX - 1, 5) == UINT64_MAX);
}

static void quantities_have_three_digits_and_a_unit(void **state)
{
    (void)state;
    const struct {
        double ns;
        const char *text;
    } times[] = {{0, "0 ns"},          {640, "640 ns"},      {999.6, "1.00 us"},  {64.2e3, "64.2 us"},
                 {999.7e3, "1.00 ms"}, {18.74e6, "18.7 ms"}, {38.24e9, "38.2 s"}, {61.0e9, "61.0 s"},
                 {1200e9, "20.0 min"}, {36000e9, "10.0 h"},  {9.996e6, "10.0 ms"}};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        assert_string_equal(quantity_time(times[i].ns).text, times[i].text);
    assert_string_equal(quantity_bytes(118.0e9).text, "118 GB");
    assert_string_equal(quantity_rate(24.1e9).text, "24.1 GB/s");
    assert_string_equal(quantity_memory(88.1 * 1073741824).text, "88.1 GiB");
    assert_string_equal(quantity_count(2184902).text, "2,184,902");
    assert_string_equal(quantity_count(999).text, "999");
    assert_string_equal(quantity_count(UINT64_MAX).text, "18,446,744,073,709,551,615");
    assert_string_equal(quantity_percent(0.6261).text, "62.6 %");
    assert_string_equal(quantity_percent(0.0001).text, "<0.1 %");
    assert_string_equal(quantity_percent(0).text, "0.0 %");
}

static void assert_cut(const char *text, size_t columns, const char *expected)
{
    struct bytes out = {0};
    text_cut(&out, text, strlen(text), columns);
    assert_string_equal(bytes_text(&out), expected);
    bytes_free(&out);
}

static void names_are_cut_in_the_middle(void **state)
{
    (void)state;
    assert_cut("abcdefghij", 0, "abcdefghij");
    assert_cut("abcdefghij", 10, "abcdefghij");
    assert_cut("abcdefghij", 5, "ab…ij");
    assert_cut("abcdefghij", 6, "abc…ij");
    assert_cut("名前名前名前", 7, "名…前");
    assert_cut("", 5, "");
}

static void assert_kernel_name(const char *name, size_t columns, const char *expected)
{
    struct bytes out = {0};
    text_kernel_name(&out, name, strlen(name), columns);
    assert_string_equal(bytes_text(&out), expected);
    bytes_free(&out);
}

static void kernel_names_keep_what_distinguishes_them(void **state)
{
    (void)state;
    static const char name[] = "void ns::add<float, (int)4>(float*, void (*)(int))";
    assert_kernel_name(name, 0, "ns::add<float, (int)4>(float*, void (*)(int))");
    assert_kernel_name(name, 22, "add<float, 4>");
    assert_kernel_name(name, 9, "add<…, 4>");
    assert_kernel_name(
        "void at::native::vectorized_elementwise_kernel<4, at::native::direct_copy(at::Base&)::{lambda()#3}"
        "::operator()() const::{lambda(float)#1}, std::array<char*, 2ul> >(int, char**)",
        80, "vectorized_elementwise_kernel<4, direct_copy, array<char*, 2ul>>");
    assert_kernel_name("void at::native::(anonymous namespace)::layer_norm<float, 32u>(long, float const*)", 30,
                       "layer_norm<float, 32u>");
    assert_kernel_name("nvjet_sm90_tst_128x128_64x6_2x1_v_bz_NNT", 11, "nvjet…z_NNT");
    assert_kernel_name("", 5, "(unnamed)");
    /* Invalid names must neither crash nor disappear. */
    assert_kernel_name(")))((((", 3, ")))");
    assert_kernel_name("((((((((", 3, "(…(");
    assert_kernel_name("::::::::", 3, ":…:");
    assert_kernel_name("a<b<c<d(", 3, "a…d");
}

static void control_characters_and_bad_utf8_are_escaped(void **state)
{
    (void)state;
    static const char text[] = "a\x1b[31m\n\xff\xc0\x80\xe2\x80\xae\xc2\x9b é\xed\xa0\x80";
    struct bytes out = {0};
    text_escape(&out, text, sizeof text - 1);
    assert_string_equal(bytes_text(&out), "a\\x1b[31m\\x0a\\xff\\xc0\\x80\\xe2\\x80\\xae\\xc2\\x9b é\\xed\\xa0\\x80");
    bytes_free(&out);
}

static void bars_have_eighths(void **state)
{
    (void)state;
    struct bytes out = {0};
    text_bar(&out, 0.5 + 1.0 / 32, 4);
    assert_string_equal(bytes_text(&out), "██▏");
    bytes_clear(&out);
    text_bar(&out, 7, 2);
    assert_string_equal(bytes_text(&out), "██");
    bytes_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_sort_agrees_with_qsort),
        cmocka_unit_test(keys_order_is_stable_and_takes_negative_keys),
        cmocka_unit_test(percentiles_are_nearest_rank),
        cmocka_unit_test(distribution_holds_every_figure),
        cmocka_unit_test(sums_saturate),
        cmocka_unit_test(quantities_have_three_digits_and_a_unit),
        cmocka_unit_test(names_are_cut_in_the_middle),
        cmocka_unit_test(kernel_names_keep_what_distinguishes_them),
        cmocka_unit_test(control_characters_and_bad_utf8_are_escaped),
        cmocka_unit_test(bars_have_eighths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
