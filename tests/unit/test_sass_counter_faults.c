/* SPDX-License-Identifier: Apache-2.0 */
/* The SassMetrics engine when memory is short and when calls of CUPTI fail: the program continues, and missing
 * counts are reported. Each test runs in a separate process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sass_fixture.h"

static void memory_body(void)
{
    engine_start(&(struct sass_counters_options){.bytes_max = 1000}); /* not even one result */
    CHECK(window(1, 1) == GPUFL_OK && summary.lost > DEFAULT_ROWS && rows()->row_count == 0);
    CHECK(lost(LOSS_SASS_MEMORY) == summary.lost && strstr(summary.problem.text, "memory") != NULL);
    CHECK(lost(LOSS_SASS_INVALID) == 0 && summary.close_reason == NULL); /* lost, not wrong */
    engine_end();
}

static void little_memory_body(void)
{
    engine_start(&(struct sass_counters_options){.bytes_max = (2 << 20) + 4096}); /* for symbols, not for counts */
    CHECK(window(1, 1) == GPUFL_OK && summary.lost > DEFAULT_ROWS && rows()->row_count == 0);
    CHECK(lost(LOSS_SASS_MEMORY) == summary.lost && lost(LOSS_SASS_INVALID) == 0);
    engine_end();
}

static void counts_beyond_the_memory_are_lost_by_number(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", memory_body);
    in_child("libcupti.so.13", "", little_memory_body);
}

static void failing_body(void)
{
    engine_start(&(struct sass_counters_options){0});
    gpufl_status status = window(1, LAUNCHES);
    bool has_rows = rows()->row_count != 0;
    /* Either nothing was opened and the reason is known, or what is missing is counted. */
    if (status != GPUFL_OK)
        CHECK(problem.text[0] && !has_rows && !sass_counters_is_open(counters));
    else if (!has_rows)
        CHECK(summary.problem.text[0] && recorder_lost_total(&recorder) > 0);
    else
        CHECK(rows()->row_count == DEFAULT_ROWS && value_of(1, 0x20, P "sectors_mem_global") == LAUNCHES * WARPS * 16);
    /* The call works from its second time on; a context that could not be disabled cannot be enabled again. */
    uint64_t lost_before = recorder_lost_total(&recorder);
    gpufl_status again = window(2, LAUNCHES);
    if (again == GPUFL_OK)
        CHECK(summary.counts == DEFAULT_ROWS && value_of(2, 0x00, P "inst_executed") == LAUNCHES * WARPS);
    else
        CHECK(problem.text[0] && strstr(getenv("FAKE_FAULTS"), "cuptiSassMetricsDisable"));
    CHECK(recorder_lost_total(&recorder) == lost_before);
    engine_end();
}

static void always_failing_body(void)
{
    engine_start(&(struct sass_counters_options){0});
    for (uint32_t id = 1; id <= 3; id++) {
        gpufl_status status = window(id, LAUNCHES);
        CHECK(status == GPUFL_OK ? summary.problem.text[0] != '\0' : problem.text[0] != '\0');
        CHECK(!sass_counters_is_open(counters));
    }
    engine_end();
}

static const char *const calls[] = {"cuptiProfilerInitialize",    "cuptiProfilerDeviceSupported",
                                    "cuptiDeviceGetChipName",     "cuptiSassMetricsGetNumOfMetrics",
                                    "cuptiSassMetricsGetMetrics", "cuptiSassMetricsSetConfig",
                                    "cuptiSassMetricsEnable",     "cuptiSassMetricsGetDataProperties",
                                    "cuptiSassMetricsFlushData",  "cuptiSassMetricsDisable"};

static void each_call_may_fail_once(void **state)
{
    (void)state;
    static const int results[] = {1, 7, 8, 26, 35, 999};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (size_t k = 0; k < sizeof results / sizeof *results; k++) {
            char fault[96];
            snprintf(fault, sizeof fault, "fail=%s@1:%d", calls[i], results[k]);
            in_child("libcupti.so.13", fault, failing_body);
        }
}

static void each_call_may_fail_always(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char fault[96];
        snprintf(fault, sizeof fault, "fail=%s@*:35", calls[i]);
        in_child("libcupti.so.13", fault, always_failing_body);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_beyond_the_memory_are_lost_by_number),
        cmocka_unit_test(each_call_may_fail_once),
        cmocka_unit_test(each_call_may_fail_always),
    };
    return cmocka_run_group_tests(tests, environment_setup, NULL);
}
