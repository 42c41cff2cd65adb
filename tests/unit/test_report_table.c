/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of the report, names in them, and metrics with their units. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/report_page.h"

static void assert_table(const char *const *cells, unsigned rows, struct table table, size_t columns,
                         const char *expected)
{
    struct bytes out = {0};
    struct page page = {.out = &out, .columns = columns};
    for (unsigned i = 0; i < rows * table.columns; i++)
        table_cell(&table, cells[i]);
    table_print(&table, &page);
    assert_string_equal(bytes_text(&out), expected);
    bytes_free(&out);
}

static const struct table kernel_table = {
    .columns = 3, .stretch = 2, .left = 1u << 2, .has_kernel_names = true, .drop = {1}};

static void kernels_that_differ_in_what_would_be_cut_are_shown_whole(void **state)
{
    (void)state;
    static const char *const cells[] = {
        "total", "calls", "name",
        "2 ms",  "3",     "void ns::copy_kernel<float, ns::Left<float, float>, ns::Loader<1>, 4>(float*)",
        "1 ms",  "5",     "void ns::copy_kernel<float, ns::Reit<float, float>, ns::Loader<1>, 4>(float*)"};
    assert_table(cells, 3, kernel_table, 40,
                 "   total  calls  name\n"
                 "    2 ms      3\n"
                 "      copy_kernel<float, Left<float,\n"
                 "      float>, Loader<1>, 4>\n"
                 "    1 ms      5\n"
                 "      copy_kernel<float, Reit<float,\n"
                 "      float>, Loader<1>, 4>\n");
    /* With only one of them, the middle of the name is removed. */
    assert_table(cells, 2, kernel_table, 40,
                 "   total  calls  name\n"
                 "    2 ms      3\n"
                 "      copy_kernel<float…>, Loader<1>, 4>\n");
}

static void parameters_are_dropped_first_unless_only_they_differ(void **state)
{
    (void)state;
    static const char *const cells[] = {
        "total", "calls", "name", "2 ms", "3", "add(float*, float const*)", "1 ms", "5", "add(int*, int const*)"};
    assert_table(cells, 2, kernel_table, 40, "   total  calls  name\n    2 ms      3  add\n");
    assert_table(cells, 3, kernel_table, 40,
                 "   total  calls  name\n"
                 "    2 ms      3\n"
                 "      add(float*, float const*)\n"
                 "    1 ms      5  add(int*, int const*)\n");
}

static void narrow_pages_lack_the_least_important_columns(void **state)
{
    (void)state;
    static const char *const cells[] = {"", "wall", "per call", "calls", "forward pass", "22.4 s", "18.7 ms", "1,200"};
    const struct table table = {.columns = 4, .stretch = 0, .left = 1, .drop = {2, 3}};
    assert_table(cells, 2, table, 42,
                 "                   wall  per call  calls\n"
                 "   forward pass  22.4 s   18.7 ms  1,200\n");
    assert_table(cells, 2, table, 35, "                   wall  calls\n   forward pass  22.4 s  1,200\n");
    assert_table(cells, 2, table, 24, "                   wall\n   forward pass  22.4 s\n");
    assert_table(cells, 2, table, 20, "                   wall\n   forward pass  22.4 s\n");
}

static void places_keep_their_line_when_the_file_is_cut(void **state)
{
    (void)state;
    struct bytes out = {0};
    page_place(&out, "/src/a_rather_long_file_name.cu", 4123, 16);
    assert_string_equal(bytes_text(&out), "a_rat…me.cu:4123");
    bytes_clear(&out);
    page_place(&out, "train.py", 41, 3);
    assert_string_equal(bytes_text(&out), "train.py:41");
    bytes_free(&out);
}

static void assert_metric(const char *name, double value, const char *expected)
{
    assert_string_equal(metric_quantity(name, value).text, expected);
}

static void metrics_have_the_unit_in_their_name(void **state)
{
    (void)state;
    assert_metric("sm__throughput.avg.pct_of_peak_sustained_elapsed", 69.56, "69.6 %");
    assert_metric("gpu__time_duration.sum", 466656, "467 us");
    assert_metric("dram__bytes_read.sum", 23.2e6, "23.2 MB");
    assert_metric("pcie__read_bytes.sum.per_second", 18.8e6, "18.8 MB/s");
    assert_metric("sm__inst_executed.avg.per_cycle_active", 2.889, "2.889 inst/cycle");
    assert_metric("sm__inst_executed.sum", 338247680, "338 M inst");
    assert_metric("sm__warps_launched.sum", 9999, "9999 warps");
    assert_metric("sm__ops_path_tensor_src_fp16.sum", 17179869184.0, "17.2 G op");
    assert_metric("smsp__thread_inst_executed_per_inst_executed.ratio", 31.5, "31.5 : 1");
    assert_metric("sm__cycles_elapsed.avg.per_second", 1.98e9, "1.98 GHz");
    assert_metric("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", 12, "12 sectors");
    assert_metric("SQ_WAVES", 32, "32 waves");
    assert_metric("SQ_WAVES", 1, "1 wave");
    assert_metric("GRBM_GUI_ACTIVE", 16, "16 cycles");
    assert_metric("something_new", 7, "7 events");
}

static void operations_per_second_need_operations_and_a_time(void **state)
{
    (void)state;
    struct metric_column columns[] = {
        {.name = "sm__sass_thread_inst_executed_op_ffma_pred_on.sum", .count = 2, .mean = 8589934592.0},
        {.name = "sm__sass_thread_inst_executed_op_fadd_pred_on.sum", .count = 2, .mean = 1000},
        {.name = "sm__ops_path_tensor_src_fp16.sum", .count = 2, .mean = 500},
        {.name = "gpu__time_duration.sum", .count = 2, .mean = 466656}};
    struct metric_group group = {.columns = columns, .column_count = 4};
    double expected = (2 * 8589934592.0 + 1000 + 500) / 466656e-9;
    assert_true(fabs(metric_group_flops(&group) - expected) < 1);
    assert_string_equal(quantity_flops(metric_group_flops(&group)).text, "36.8 TFLOP/s");
    assert_true(fabs(metric_group_time_ns(&group) - 2 * 466656) < 1);
    group.column_count = 3;
    assert_true(isnan(metric_group_flops(&group)));
    assert_true(isnan(metric_group_time_ns(&group)));
    group.columns = &columns[3];
    group.column_count = 1;
    assert_true(isnan(metric_group_flops(&group)));
}

static void metric_names_lose_what_they_share_first(void **state)
{
    (void)state;
    static const char name[] = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed";
    struct bytes out = {0};
    text_metric_name(&out, name, sizeof name - 1, 40);
    assert_string_equal(bytes_text(&out), "gpu__dram_throughput.avg.pct…elapsed");
    bytes_clear(&out);
    text_metric_name(&out, name, sizeof name - 1, 21);
    assert_string_equal(bytes_text(&out), "gpu__dram_…ct…elapsed");
    bytes_clear(&out);
    text_metric_name(&out, name, sizeof name - 1, 0);
    assert_string_equal(bytes_text(&out), name);
    bytes_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_that_differ_in_what_would_be_cut_are_shown_whole),
        cmocka_unit_test(parameters_are_dropped_first_unless_only_they_differ),
        cmocka_unit_test(narrow_pages_lack_the_least_important_columns),
        cmocka_unit_test(places_keep_their_line_when_the_file_is_cut),
        cmocka_unit_test(metrics_have_the_unit_in_their_name),
        cmocka_unit_test(operations_per_second_need_operations_and_a_time),
        cmocka_unit_test(metric_names_lose_what_they_share_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
