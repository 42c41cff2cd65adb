/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/exposition.h"

#include <math.h>
#include <stdio.h>

static struct bytes page_of(enum exposition_format format)
{
    static const double bounds[] = {0.1, 1};
    static const uint64_t counts[] = {2, 3, 1};
    struct bytes out = {0}, labels = {0};
    struct exposition page;
    exposition_begin(&page, &out, format);
    exposition_family(&page, "a_ratio", EXPOSITION_GAUGE, "A \"share\"\nof \\.");
    exposition_label(&labels, "name", "x\"y\\z\n");
    exposition_label(&labels, "more", "");
    exposition_sample(&page, bytes_text(&labels), 0.1);
    exposition_sample(&page, "", NAN);
    exposition_family(&page, "empty", EXPOSITION_GAUGE, "Has no sample.");
    exposition_family(&page, "b_total", EXPOSITION_COUNTER, "Counts.");
    exposition_sample_uint(&page, "", UINT64_MAX);
    exposition_family(&page, "c_seconds", EXPOSITION_HISTOGRAM, "Durations.");
    exposition_histogram(&page, "r=\"q\"", bounds, counts, 2, 7.5);
    exposition_end(&page);
    bytes_free(&labels);
    return out;
}

static void the_text_format_is_as_documented(void **state)
{
    (void)state;
    struct bytes out = page_of(EXPOSITION_TEXT);
    assert_string_equal(bytes_text(&out), "# HELP a_ratio A \"share\"\\nof \\\\.\n"
                                          "# TYPE a_ratio gauge\n"
                                          "a_ratio{name=\"x\\\"y\\\\z\\n\",more=\"\"} 0.1\n"
                                          "a_ratio NaN\n"
                                          "# HELP b_total Counts.\n"
                                          "# TYPE b_total counter\n"
                                          "b_total 18446744073709551615\n"
                                          "# HELP c_seconds Durations.\n"
                                          "# TYPE c_seconds histogram\n"
                                          "c_seconds_bucket{r=\"q\",le=\"0.1\"} 2\n"
                                          "c_seconds_bucket{r=\"q\",le=\"1\"} 5\n"
                                          "c_seconds_bucket{r=\"q\",le=\"+Inf\"} 6\n"
                                          "c_seconds_sum{r=\"q\"} 7.5\n"
                                          "c_seconds_count{r=\"q\"} 6\n");
    bytes_free(&out);
}

static void openmetrics_families_lack_the_suffix_and_the_page_ends_with_eof(void **state)
{
    (void)state;
    struct bytes out = page_of(EXPOSITION_OPENMETRICS);
    const char *text = bytes_text(&out);
    assert_non_null(strstr(text, "# HELP a_ratio A \\\"share\\\"\\nof \\\\.\n"));
    assert_non_null(strstr(text, "# TYPE b counter\nb_total 18446744073709551615\n"));
    assert_null(strstr(text, "empty"));
    assert_string_equal(text + strlen(text) - 6, "# EOF\n");
    bytes_free(&out);
}

static void labels_are_always_utf_8(void **state)
{
    (void)state;
    static const struct {
        const char *given, *written;
    } cases[] = {{"grün €", "grün €"},        {"\xff", "?"}, {"\xc3", "?"}, /* cut off */
                 {"\xc0\xaf", "??"},                                        /* overlong */
                 {"\xed\xa0\x80x", "???x"},                                 /* a surrogate */
                 {"\xf4\x90\x80\x80", "????"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bytes labels = {0};
        char expected[64];
        snprintf(expected, sizeof expected, "l=\"%s\"", cases[i].written);
        exposition_label(&labels, "l", cases[i].given);
        assert_string_equal(bytes_text(&labels), expected);
        bytes_free(&labels);
    }
}

static void the_format_is_what_the_reader_prefers(void **state)
{
    (void)state;
    static const struct {
        const char *accept;
        enum exposition_format format;
    } cases[] = {
        {NULL, EXPOSITION_TEXT},
        {"", EXPOSITION_TEXT},
        {"*/*", EXPOSITION_TEXT},
        {"text/plain", EXPOSITION_TEXT},
        {"application/openmetrics-text", EXPOSITION_OPENMETRICS},
        {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
         "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
         EXPOSITION_OPENMETRICS},
        {"text/plain; q=1.0, Application/OpenMetrics-Text; q=0.25", EXPOSITION_TEXT},
        {"application/openmetrics-text;q=0", EXPOSITION_TEXT},
        {"application/openmetrics-textual", EXPOSITION_TEXT},
        {";q=;,,,=", EXPOSITION_TEXT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(exposition_choose(cases[i].accept), cases[i].format);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_format_is_as_documented),
        cmocka_unit_test(openmetrics_families_lack_the_suffix_and_the_page_ends_with_eof),
        cmocka_unit_test(labels_are_always_utf_8),
        cmocka_unit_test(the_format_is_what_the_reader_prefers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
