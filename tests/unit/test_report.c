/* SPDX-License-Identifier: Apache-2.0 */
/* Results of the analysis on the golden sessions, compared with figures worked out by hand; test_golden_reports checks
 * the text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "analysis/quantity.h"
#include "analysis/report.h"

enum { us = 1000, ms = 1000000 };

struct loaded {
    struct session_model *model;
    struct analysis analysis;
};

static struct loaded load(const char *name)
{
    struct loaded loaded;
    struct problem problem = {""};
    char dir[512];
    snprintf(dir, sizeof dir, "%s/tests/golden/%s", SOURCE_DIR, name);
    if (session_load(&loaded.model, dir, &problem) != GPUFL_OK)
        fail_msg("%s", problem.text);
    assert_int_equal(analysis_make(&loaded.analysis, loaded.model), GPUFL_OK);
    return loaded;
}

static void unload(struct loaded *loaded)
{
    analysis_free(&loaded->analysis);
    session_free(loaded->model);
}

static void the_parts_of_the_time_add_up_to_the_wall_time(void **state)
{
    (void)state;
    const char *const names[] = {"trace",    "launch_bound", "killed",  "v1",  "bench",
                                 "two_gpus", "sync_loop",    "hostile", "deep"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        struct loaded loaded = load(names[n]);
        assert_true(loaded.analysis.device_count > 0);
        for (size_t i = 0; i < loaded.analysis.device_count; i++) {
            const struct time_use *use = &loaded.analysis.devices[i];
            assert_int_equal(use->busy_ns, use->kernel_ns + use->memsets_only_ns + use->copies_only_ns);
            assert_int_equal(use->busy_ns + use->wait_launch_ns + use->wait_sync_ns + use->queued_ns + use->no_work_ns +
                                 use->unknown_ns,
                             loaded.analysis.wall_ns);
        }
        unload(&loaded);
    }
}

static void time_in_which_kernels_were_not_traced_is_not_called_idle(void **state)
{
    (void)state;
    struct loaded loaded = load("deep");
    const struct time_use *use = &loaded.analysis.devices[0];
    /* Two windows of 5 ms in which instructions were counted, without a kernel record in between. */
    assert_int_equal(use->unknown_ns, 10 * ms);
    assert_int_equal(use->no_work_ns, loaded.analysis.wall_ns - use->busy_ns - use->wait_launch_ns - 10 * ms);
    unload(&loaded);
}

static void idle_time_goes_to_what_the_gpu_waited_for(void **state)
{
    (void)state;
    struct loaded loaded = load("launch_bound");
    const struct time_use *use = &loaded.analysis.devices[0];
    /* 800 kernels of 3 us; 799 gaps of 7 us, each call 2 us into its gap; the first call 5 us before its kernel. */
    assert_int_equal(use->busy_ns, 800 * 3 * us);
    assert_int_equal(use->wait_launch_ns, 799 * 7 * us + 5 * us);
    assert_int_equal(use->no_work_ns, 995 * us + (10 * ms - (1 * ms + 7990 * us + 3 * us)));
    assert_int_equal(use->wait_sync_ns, 0);
    assert_int_equal(loaded.analysis.launch_bound.run_count, 1);
    assert_int_equal(loaded.analysis.launch_bound.wait_ns, 799 * 7 * us);
    assert_string_equal(loaded.analysis.insights[0].rule, "launch_bound");
    assert_non_null(strstr(loaded.analysis.insights[0].text, "`train > forward`"));
    unload(&loaded);
}

static void waits_of_the_host_are_distinguished_from_launches(void **state)
{
    (void)state;
    struct loaded loaded = load("sync_loop");
    const struct time_use *use = &loaded.analysis.devices[0];
    assert_int_equal(use->busy_ns, 199 * 20 * us);
    assert_int_equal(use->wait_sync_ns, 199 * 10 * us);
    bool has_rule = false;
    for (size_t i = 0; i < loaded.analysis.insight_count; i++)
        has_rule = has_rule || !strcmp(loaded.analysis.insights[i].rule, "sync_heavy");
    assert_true(has_rule);
    unload(&loaded);
}

static void queued_work_is_not_blamed_on_the_program(void **state)
{
    (void)state;
    struct loaded loaded = load("two_gpus");
    const struct time_use *first = &loaded.analysis.devices[0], *second = &loaded.analysis.devices[1];
    assert_int_equal(first->device, 0);
    assert_int_equal(first->queued_ns, 7 * 10 * us);
    /* Gaps of 1 ms whose call began 50 us after the GPU became idle. */
    assert_int_equal(second->wait_launch_ns, 4 * 1 * ms);
    assert_int_equal(second->wait_sync_ns, 490 * us);
    assert_int_equal(loaded.analysis.host_wait_ns, 490 * us); /* stream wait event blocks no host thread */
    unload(&loaded);
}

static void kernels_are_counted_in_their_scope_and_in_every_scope_around(void **state)
{
    (void)state;
    struct loaded loaded = load("trace");
    const struct analysis *analysis = &loaded.analysis;
    uint32_t epoch = scope_tree_next(analysis, 0), backward = scope_tree_next(analysis, epoch);
    assert_memory_equal(analysis->scopes[epoch].name, "epoch", 5);
    assert_int_equal(analysis->scopes[epoch].kernels, 61);
    assert_int_equal(analysis->scopes[epoch].kernels_self, 1);
    assert_int_equal(analysis->scopes[epoch].gpu_self_ns, 3 * ms);
    assert_memory_equal(analysis->scopes[backward].name, "backward", 8);
    assert_int_equal(analysis->scopes[backward].gpu_ns, 10 * 1600 * us + 40 * 20 * us);
    assert_int_equal(analysis->scopes[0].kernels_self, 1);
    assert_int_equal(analysis->scopes[backward].sync_self_ns, 12 * ms);
    unload(&loaded);
}

static void hotspots_have_exact_percentiles_and_the_limiter(void **state)
{
    (void)state;
    struct loaded loaded = load("trace");
    const struct hotspot *top = &loaded.analysis.hotspots[0];
    assert_int_equal(loaded.analysis.hotspot_count, 3);
    assert_int_equal(top->duration.count, 20);
    assert_int_equal(top->duration.p50, 1590 * us);
    assert_int_equal(top->duration.p90, 1600 * us);
    assert_int_equal(top->launch->occupancy_bp, 1250);
    assert_int_equal(top->launch->limiter, 1);
    unload(&loaded);
}

static void benchmarks_average_over_their_iterations(void **state)
{
    (void)state;
    struct loaded loaded = load("bench");
    const struct scope_node *sort = &loaded.analysis.scopes[scope_tree_next(&loaded.analysis, 0)];
    assert_int_equal(sort->repeat, 10);
    assert_int_equal(sort->warmup, 3);
    assert_int_equal(sort->repeat_wall_ns, 12300 * us);
    unload(&loaded);
}

static void v1_details_give_occupancy_and_scope_without_inventing_times(void **state)
{
    (void)state;
    struct loaded loaded = load("v1");
    const struct session_model *model = loaded.model;
    assert_int_equal(model->kernels.count, 6);
    assert_int_equal(model->kernels.device[0], 0);
    assert_true(model->kernels.api_start_ns[0] == TIME_UNKNOWN);
    assert_int_equal(loaded.analysis.hotspots[0].launch->occupancy_bp, 7500);
    assert_int_equal(loaded.analysis.hotspots[0].launch->grid[0], 64);
    uint32_t scope = model->kernels.scope[0];
    assert_int_not_equal(scope, ID_UNKNOWN);
    assert_true(model->scopes[scope].is_attribution_only);
    assert_string_equal(session_text(model, DICTIONARY_SCOPE_NAME, model->scopes[scope].path_id), "step|gemm");
    assert_int_equal(model->memset_count, 1);
    assert_int_equal(model->graph_count, 1);
    assert_int_equal(model->graphs[0].node_count, ID_UNKNOWN);
    unload(&loaded);
}

static void memory_is_followed_from_allocation_to_release(void **state)
{
    (void)state;
    struct loaded loaded = load("trace");
    const struct memory_group *device = &loaded.analysis.memory[3];
    assert_int_equal(device->peak_bytes, 80 << 20);
    assert_int_equal(device->held_bytes, 16 << 20);
    assert_int_equal(device->held_count, 1);
    assert_int_equal(device->frees, 1);
    unload(&loaded);
}

static void assert_headline(const char *name, const char *expected)
{
    char dir[512];
    snprintf(dir, sizeof dir, "%s/tests/golden/%s", SOURCE_DIR, name);
    struct bytes out = {0};
    struct problem problem = {""};
    assert_int_equal(report_headline(dir, &out, &problem), GPUFL_OK);
    assert_string_equal(bytes_text(&out), expected);
    bytes_free(&out);
}

static void the_headline_summarizes_the_recording(void **state)
{
    (void)state;
    assert_headline("trace", "62 kernels, 41.5 ms GPU busy of 100 ms, 0 lost");
    assert_headline(
        "killed", "20 kernels, 3.00 ms GPU busy of 5.95 ms, at least 600 records lost, not closed: the end is missing");
    assert_headline(
        "degraded",
        "1 GPU samples in 2.00 ms, an unknown number of records lost, killed by signal 9: the end is missing");
    assert_headline("monitor", "60 GPU samples in 60.0 s, 0 lost");
    assert_headline("two_gpus", "12 kernels, 11.9 ms GPU busy of 2 x 10.0 ms, 0 lost");
}

static void assert_losses(const struct session_model *model, bool is_exact, const char *words, const char *not_words)
{
    bool is_reported_exact;
    assert_int_equal(session_lost(model, &is_reported_exact), 0);
    assert_int_equal(is_reported_exact, is_exact);
    struct bytes out = {0};
    assert_int_equal(report_text(model, &(struct report_options){0}, &out), GPUFL_OK);
    if (!strstr(bytes_text(&out), words) || (*not_words && strstr(bytes_text(&out), not_words)))
        fail_msg("expected \"%s\" and not \"%s\" in %s", words, not_words, bytes_text(&out));
    bytes_free(&out);
}

static void missing_lines_are_never_reported_as_no_loss(void **state)
{
    (void)state;
    const char *const end = "an unknown amount is missing at the end";
    const char *const middle = "how much the damaged or missing lines held is not known";
    struct loaded loaded = load("trace");
    struct session_model *model = loaded.model;
    const struct log_summary whole = model->summary;
    assert_losses(model, true, "nothing lost\n", "not known");
    model->summary.has_shutdown = false;
    assert_losses(model, false, end, "nothing lost");
    model->summary.is_live = true;
    assert_losses(model, true, "nothing lost so far", "not known");
    model->summary = whole;
    model->summary.is_synthetic_shutdown = true;
    assert_losses(model, false, end, "nothing lost");
    model->summary = whole;
    model->summary.has_torn_tail = true;
    assert_losses(model, false, end, "nothing lost");
    model->summary = whole;
    model->summary.damaged_lines = 1;
    assert_losses(model, false, middle, "nothing lost");
    model->summary = whole;
    model->summary.missing_lines = 1;
    model->summary.is_live = true;
    assert_losses(model, false, middle, "nothing lost");
    model->summary = whole;
    model->issues_by_kind[LOG_ISSUE_BAD_SEGMENT] = 1;
    assert_losses(model, false, middle, "nothing lost");
    assert_losses(model, false, "an unknown number of records lost", "0 lost");
    unload(&loaded);
}

static void no_report_holds_a_raw_control_character(void **state)
{
    (void)state;
    struct loaded loaded = load("hostile");
    const struct report_options options[] = {{0}, {.is_wide = true, .top = 100}, {.columns = 41}};
    for (size_t i = 0; i <= sizeof options / sizeof *options; i++) {
        struct bytes out = {0};
        gpufl_status status = i < sizeof options / sizeof *options ? report_text(loaded.model, &options[i], &out)
                                                                   : report_json(loaded.model, &options[0], &out);
        assert_int_equal(status, GPUFL_OK);
        for (size_t at = 0; at < out.size; at++) {
            unsigned char byte = (unsigned char)out.data[at];
            assert_true(byte == '\n' || (byte >= 0x20 && byte != 0x7f));
        }
        bytes_free(&out);
    }
    unload(&loaded);
}

static void assert_fits(const char *dir, int columns)
{
    struct session_model *model;
    struct problem problem;
    struct bytes out = {0};
    assert_int_equal(session_load(&model, dir, &problem), GPUFL_OK);
    assert_int_equal(report_text(model, &(struct report_options){.columns = columns}, &out), GPUFL_OK);
    for (const char *line = bytes_text(&out); *line;) {
        size_t size = strcspn(line, "\n");
        const char *last_blank = line + size;
        while (last_blank > line && last_blank[-1] != ' ')
            last_blank--;
        /* A single word cannot be broken, but must be alone on its line. */
        bool is_one_word = strspn(line, " ") >= (size_t)(last_blank - line);
        if (text_columns(line, size) > (size_t)columns && !is_one_word)
            fail_msg("%s at %d columns: %.*s", dir, columns, (int)size, line);
        line += size + (line[size] == '\n');
    }
    bytes_free(&out);
    session_free(model);
}

static void the_text_fits_the_requested_columns(void **state)
{
    (void)state;
    static const char *const dirs[] = {"tests/golden/trace",
                                       "tests/golden/launch_bound",
                                       "tests/golden/monitor",
                                       "tests/golden/killed",
                                       "tests/golden/v1",
                                       "tests/golden/empty",
                                       "tests/golden/bench",
                                       "tests/golden/two_gpus",
                                       "tests/golden/degraded",
                                       "tests/golden/sync_loop",
                                       "tests/golden/hostile",
                                       "tests/golden/deep",
                                       "tests/golden/amd_code",
                                       "tests/golden/pc_sampling",
                                       "tests/golden/range_metrics",
                                       "tests/golden/sass_metrics",
                                       "tests/golden/refused",
                                       "tests/golden/masked_gpu",
                                       "examples/recorded/h200-training",
                                       "examples/recorded/h200-gemm-deep",
                                       "examples/recorded/h200-gemm-kernels",
                                       "examples/recorded/h200-gemm-scopes",
                                       "examples/recorded/h200-pipeline",
                                       "examples/recorded/h200-training-pm"};
    static const int columns[] = {60, 80, 100, 200};
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++)
        for (size_t k = 0; k < sizeof columns / sizeof *columns; k++) {
            char dir[1024];
            snprintf(dir, sizeof dir, "%s/%s", SOURCE_DIR, dirs[i]);
            assert_fits(dir, columns[k]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_parts_of_the_time_add_up_to_the_wall_time),
        cmocka_unit_test(time_in_which_kernels_were_not_traced_is_not_called_idle),
        cmocka_unit_test(idle_time_goes_to_what_the_gpu_waited_for),
        cmocka_unit_test(waits_of_the_host_are_distinguished_from_launches),
        cmocka_unit_test(queued_work_is_not_blamed_on_the_program),
        cmocka_unit_test(kernels_are_counted_in_their_scope_and_in_every_scope_around),
        cmocka_unit_test(hotspots_have_exact_percentiles_and_the_limiter),
        cmocka_unit_test(benchmarks_average_over_their_iterations),
        cmocka_unit_test(v1_details_give_occupancy_and_scope_without_inventing_times),
        cmocka_unit_test(memory_is_followed_from_allocation_to_release),
        cmocka_unit_test(the_headline_summarizes_the_recording),
        cmocka_unit_test(missing_lines_are_never_reported_as_no_loss),
        cmocka_unit_test(no_report_holds_a_raw_control_character),
        cmocka_unit_test(the_text_fits_the_requested_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
