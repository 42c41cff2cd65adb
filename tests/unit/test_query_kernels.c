/* SPDX-License-Identifier: Apache-2.0 */
/* Queries of the pages about kernels and code: small histograms, durations over time, device limits, source and PTX. */
#include "query_fixture.h"

#include <sys/stat.h>

static struct query_app app, stored; /* stored answers from sums */
static char h200[64], deep[64];

static int set_up(void **state)
{
    (void)state;
    const struct query_options options = {0}, small = {.exact_kernels = 1};
    query_app_start(&app, &options);
    query_app_start(&stored, &small);
    query_app_add(&app, H200_DIR);
    query_app_add(&app, "tests/golden/deep");
    query_app_add(&stored, H200_DIR);
    fixture_session_id(H200_DIR, h200);
    fixture_session_id("tests/golden/deep", deep);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    query_app_stop(&app);
    query_app_stop(&stored);
    return 0;
}

static struct json_document session_get(struct query_app *from, const char *session, const char *rest)
{
    char target[512];
    snprintf(target, sizeof target, "/api/v1/sessions/%s/%s", session, rest);
    return query_get(from, target);
}

static int64_t counts_sum(const struct json_value *histogram)
{
    int64_t sum = 0;
    for (const struct json_value *at = json_member(histogram, "counts")->child; at; at = at->next)
        sum += at->integer;
    return sum;
}

/* Checks that every listed kernel has a histogram, in the same order, that contains each execution once. */
static size_t histograms_check(const struct json_document *list)
{
    size_t seen = 0;
    const struct json_value *kernel = json_member(list->root, "kernels")->child;
    const struct json_value *histogram = json_member(list->root, "histograms")->child;
    for (; kernel && histogram; kernel = kernel->next, histogram = histogram->next, seen++) {
        assert_int_equal(json_get_int(histogram, "kernel_id", -1), json_get_int(kernel, "kernel_id", -2));
        assert_int_equal(counts_sum(histogram), json_get_int(kernel, "count", -1));
        assert_true(json_get_int(histogram, "from_ns", INT64_MAX) <= json_get_int(kernel, "min_ns", -1));
        assert_true(json_get_int(histogram, "to_ns", -1) > json_get_int(kernel, "max_ns", INT64_MAX));
    }
    assert_true(!kernel && !histogram);
    return seen;
}

static void histograms_of_a_list_hold_every_execution(void **state)
{
    (void)state;
    struct json_document whole = session_get(&app, h200, "kernels?limit=1000&bins=20");
    assert_int_equal(histograms_check(&whole), json_get_int(whole.root, "total", -1));
    /* The first one equals the kernel's own histogram. */
    const struct json_value *first = json_member(whole.root, "histograms")->child;
    char target[128];
    snprintf(target, sizeof target, "kernels/%lld/histogram?bins=20", (long long)json_get_int(first, "kernel_id", -1));
    struct json_document own = session_get(&app, h200, target);
    assert_string_equal(json_get_text(first, "scale", ""), json_get_text(own.root, "scale", "-"));
    const struct json_value *bin = json_member(own.root, "bins")->child;
    for (const struct json_value *at = json_member(first, "counts")->child; at; at = at->next) {
        assert_int_equal(at->integer,
                         bin ? json_get_int(bin, "count", -1) : 0); /* empty bins at the end are left out */
        bin = bin ? bin->next : NULL;
    }
    assert_null(bin);
    json_free(&own);
    json_free(&whole);
}

static void histograms_follow_pages_and_filters(void **state)
{
    (void)state;
    struct json_document page = session_get(&app, h200, "kernels?limit=7&cursor=7&bins=5");
    assert_int_equal(histograms_check(&page), 7);
    json_free(&page);
    page = session_get(&app, h200, "kernels?q=reduce&sort=name&limit=1000&bins=64");
    assert_true(histograms_check(&page) > 0);
    json_free(&page);
    page = session_get(&app, h200, "kernels?stream=7&limit=1000&bins=9");
    assert_int_equal(histograms_check(&page), json_get_int(page.root, "total", -1));
    json_free(&page);
    page = session_get(&app, h200, "kernels?cursor=100000&bins=9");
    assert_int_equal(histograms_check(&page), 0);
    json_free(&page);
    page = session_get(&app, h200, "kernels?limit=1");
    assert_null(json_member(page.root, "histograms"));
    json_free(&page);
    char target[128];
    snprintf(target, sizeof target, "/api/v1/sessions/%s/kernels?bins=65", h200);
    page = query_json(&app, 400, "GET", target, "", NULL);
    json_free(&page);
}

static void histograms_from_sums_hold_every_execution(void **state)
{
    (void)state;
    struct json_document list = session_get(&stored, h200, "kernels?limit=1000&bins=20");
    assert_false(json_get_bool(list.root, "is_exact", true));
    assert_true(histograms_check(&list) > 10);
    json_free(&list);
}

static void steps_of_time_add_up_to_the_kernel(void **state)
{
    (void)state;
    struct json_document list = session_get(&app, h200, "kernels?limit=1");
    const struct json_value *kernel = json_member(list.root, "kernels")->child;
    char target[192];
    int written = snprintf(target, sizeof target, "kernels/%lld/durations?steps=33",
                           (long long)json_get_int(kernel, "kernel_id", -1));
    struct json_document answer = session_get(&app, h200, target);
    int64_t count = 0, total_ns = 0, min_ns = INT64_MAX, max_ns = 0, before_ns = -1, steps = 0, middle_ns = 0;
    for (const struct json_value *step = json_member(answer.root, "steps")->child; step; step = step->next, steps++) {
        assert_true(json_get_int(step, "from_ns", -1) > before_ns);
        before_ns = json_get_int(step, "from_ns", -1);
        middle_ns = steps == 10 ? before_ns : middle_ns;
        int64_t least = json_get_int(step, "min_ns", -1), most = json_get_int(step, "max_ns", -1);
        int64_t median = json_get_int(step, "median_ns", -1);
        assert_true(least <= median && median <= most);
        min_ns = least < min_ns ? least : min_ns;
        max_ns = most > max_ns ? most : max_ns;
        count += json_get_int(step, "count", -1);
        total_ns += json_get_int(step, "total_ns", -1);
    }
    assert_true(steps > 10 && steps <= 33);
    assert_int_equal(count, json_get_int(kernel, "count", -1));
    assert_int_equal(total_ns, json_get_int(kernel, "total_ns", -1));
    assert_int_equal(min_ns, json_get_int(kernel, "min_ns", -1));
    assert_int_equal(max_ns, json_get_int(kernel, "max_ns", -1));
    json_free(&answer);
    /* Both parts of a divided run contain all of it. */
    int64_t parts = 0;
    for (int part = 0; part < 2; part++) {
        snprintf(target + written, sizeof target - (size_t)written, part ? "&from_ns=%lld" : "&to_ns=%lld",
                 (long long)middle_ns);
        answer = session_get(&app, h200, target);
        int64_t in_steps = 0;
        for (const struct json_value *step = json_member(answer.root, "steps")->child; step; step = step->next)
            in_steps += json_get_int(step, "count", -1);
        assert_int_equal(in_steps, json_get_int(answer.root, "count", -1));
        parts += in_steps;
        json_free(&answer);
    }
    assert_int_equal(parts, count);
    json_free(&list);
}

static void device_limits_are_returned_with_the_launches(void **state)
{
    (void)state;
    struct json_document list = session_get(&app, h200, "kernels?limit=1");
    char target[64];
    snprintf(target, sizeof target, "kernels/%lld/occupancy",
             (long long)json_get_int(json_member(list.root, "kernels")->child, "kernel_id", -1));
    struct json_document answer = session_get(&app, h200, target);
    const struct json_value *device = json_member(answer.root, "devices")->child;
    assert_int_equal(json_get_int(json_member(answer.root, "launches")->child, "device", -1),
                     json_get_int(device, "device", -2));
    assert_int_equal(json_get_int(device, "compute_major", -1), 9);
    assert_int_equal(json_get_int(device, "warps_per_sm_max", -1), 64);
    assert_int_equal(json_get_int(device, "regs_per_sm", -1), 65536);
    assert_int_equal(json_get_int(device, "shared_per_sm", -1), 233472);
    json_free(&answer);
    json_free(&list);
    /* A log without the value: unknown, not 0. */
    answer = session_get(&app, deep, "kernels/1/occupancy");
    device = json_member(answer.root, "devices")->child;
    assert_int_equal(json_get_int(device, "warp_size", -1), 32);
    assert_int_equal(json_member(device, "regs_per_sm")->kind, JSON_NULL);
    assert_int_equal(json_member(device, "memory_bandwidth_bps")->kind, JSON_NULL);
    json_free(&answer);
}

static void source_and_ptx_equal_those_in_the_log(void **state)
{
    (void)state;
    struct json_document answer = session_get(&app, deep, "source?file=%2Ftmp%2Fgpufl-cubins%2Finlined.cuh");
    const struct json_value *lines = json_member(answer.root, "lines");
    assert_int_equal(lines->count, 11);
    assert_string_equal(lines->child->text, "// SPDX-License-Identifier: Apache-2.0");
    json_free(&answer);
    char target[160];
    snprintf(target, sizeof target, "/api/v1/sessions/%s/source?file=/etc/passwd", deep);
    answer = query_get(&app, target);
    assert_int_equal(json_member(answer.root, "lines")->kind, JSON_NULL);
    json_free(&answer);
    snprintf(target, sizeof target, "/api/v1/sessions/%s/source", deep);
    answer = query_json(&app, 400, "GET", target, "", NULL);
    json_free(&answer);

    answer = session_get(&app, deep, "code/vector_add/ptx");
    assert_non_null(strstr(json_get_text(answer.root, "ptx", ""), ".visible .entry vector_add("));
    assert_int_equal(json_member(answer.root, "problem")->kind, JSON_NULL);
    json_free(&answer);
    answer = session_get(&app, deep, "code/2/ptx"); /* its cubin was not stored */
    assert_int_equal(json_member(answer.root, "ptx")->kind, JSON_NULL);
    assert_true(*json_get_text(answer.root, "problem", ""));
    json_free(&answer);
}

static void instructions_have_their_encoding_where_the_log_has_code(void **state)
{
    (void)state;
    struct json_document answer = session_get(&app, deep, "code/vector_add");
    const struct json_value *first = json_member(answer.root, "instructions")->child;
    assert_true(json_get_bool(first, "is_raw", false));
    assert_string_equal(json_get_text(first, "word", ""), json_get_text(first, "sass", "-"));
    assert_string_equal(json_get_text(first, "word", ""), "0x000fe20000000800 0x00000a00ff017b82");
    json_free(&answer);
    answer = session_get(&app, deep, "code/2");
    assert_int_equal(json_member(json_member(answer.root, "instructions")->child, "word")->kind, JSON_NULL);
    json_free(&answer);
}

/* External tools run only where the operator configured one. */
static void instructions_have_text_where_a_disassembler_is_configured(void **state)
{
    (void)state;
    static const char script[] = "#!/bin/sh\n"
                                 "printf '\\t.section\\t.text.vector_add,\"ax\",@progbits\\n'\n"
                                 "printf '        /*0000*/      LDC R1, c[0x0][0x28] ;\\n'\n";
    char *dir = strdup(fixture_dir()), tool[512];
    fixture_path(tool, dir, "nvdisasm");
    fixture_write(dir, "nvdisasm", script, sizeof script - 1);
    assert_int_equal(chmod(tool, 0755), 0);
    setenv("XDG_CACHE_HOME", dir, 1);
    setenv("GPUFL_NVDISASM", tool, 1);
    struct json_document answer = session_get(&app, deep, "code/vector_add");
    unsetenv("GPUFL_NVDISASM");
    unsetenv("XDG_CACHE_HOME");
    const struct json_value *first = json_member(answer.root, "instructions")->child;
    assert_string_equal(json_get_text(first, "sass", ""), "LDC R1, c[0x0][0x28]");
    assert_false(json_get_bool(first, "is_raw", true));
    assert_true(json_get_bool(first->next, "is_raw", false));
    json_free(&answer);
    fixture_remove(dir);
    free(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(histograms_of_a_list_hold_every_execution),
        cmocka_unit_test(histograms_follow_pages_and_filters),
        cmocka_unit_test(histograms_from_sums_hold_every_execution),
        cmocka_unit_test(steps_of_time_add_up_to_the_kernel),
        cmocka_unit_test(device_limits_are_returned_with_the_launches),
        cmocka_unit_test(source_and_ptx_equal_those_in_the_log),
        cmocka_unit_test(instructions_have_their_encoding_where_the_log_has_code),
        cmocka_unit_test(instructions_have_text_where_a_disassembler_is_configured),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
