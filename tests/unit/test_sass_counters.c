/* SPDX-License-Identifier: Apache-2.0 */
/* The SassMetrics engine with the look-alike CUPTI: counts of known kernels, windows with implausible counts,
 * contexts that are created and destroyed. Each test runs in a separate process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analysis/instruction_counts.h"
#include "requirement.h"
#include "sass_fixture.h"

static void counts_body(void)
{
    engine_start(&(struct sass_counters_options){.mode = "scope"});
    CHECK(window(7, LAUNCHES) == GPUFL_OK && problem.text[0] == '\0');
    CHECK(value_of(7, 0x00, P "inst_executed") == LAUNCHES * WARPS);
    CHECK(value_of(7, 0x00, P "sectors_mem_global") == -1); /* not applicable: absent, not zero */
    CHECK(value_of(7, 0x20, P "sectors_mem_global") == LAUNCHES * WARPS * 16);
    CHECK(value_of(7, 0x20, P "sectors_mem_global_ideal") == LAUNCHES * WARPS * 4);
    CHECK(value_of(7, 0x30, P "branch_targets_threads_divergent") == LAUNCHES * WARPS / 2);
    CHECK(value_of(7, 0x30, P "thread_inst_executed") == LAUNCHES * THREADS);
    CHECK(value_of(7, 0x30, P "thread_inst_executed_pred_on") == LAUNCHES * THREADS / 2);
    CHECK(value_of(7, 0x40, P "l1tex_pipe_lsu_wavefronts_mem_shared") == LAUNCHES * WARPS * 2);
    CHECK(value_of(7, 0x50, P "sectors_mem_local") == LAUNCHES * WARPS * 4);
    CHECK(value_of(7, 0x70, P "inst_executed") == -1); /* counted, never executed: only its number is reported */
    CHECK(rows()->row_count == DEFAULT_ROWS && summary.counts == DEFAULT_ROWS);
    CHECK(summary.not_executed == 1 && summary.contexts == 1 && summary.lost == 0 && summary.close_reason == NULL);
    CHECK(summary.executed == LAUNCHES * WARPS * INSTRUCTIONS_EXECUTED);
    const int64_t *row = row_at(0);
    CHECK(rows()->base_time_ns + row[PROFILE_SAMPLE_DT_NS] == 7000 && row[PROFILE_SAMPLE_INTERVAL_NS] == 500);
    CHECK(row[PROFILE_SAMPLE_SAMPLE_KIND] == 1 && row[PROFILE_SAMPLE_INSTANCES] == CELL_UNKNOWN);
    CHECK(row[PROFILE_SAMPLE_CONFIDENCE_BP] == CELL_UNKNOWN && row[PROFILE_SAMPLE_CUBIN_CRC] >> 16 == 0xc0b1);
    CHECK(row[PROFILE_SAMPLE_CONTEXT_ID] == primary_context(0)->id);
    CHECK(strcmp(intern_text(&names.functions.table, (uint32_t)row[PROFILE_SAMPLE_FUNCTION_ID]), "_Z5shortPf") == 0);
    CHECK(recorder_lost_total(&recorder) == 0);
    engine_end();
}

static void counts_of_a_window_become_rows(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", counts_body);
}

static void windows_body(void)
{
    engine_start(&(struct sass_counters_options){0});
    for (uint32_t id = 1; id <= 20; id++) {
        CHECK(window(id, 1) == GPUFL_OK && summary.window_id == id);
        CHECK(value_of(id, 0x10, P "inst_executed") == WARPS);
    }
    struct sass_totals totals;
    sass_counters_totals(counters, &totals);
    CHECK(totals.windows == 20 && totals.windows_invalid == 0 && totals.counts == 20 * DEFAULT_ROWS &&
          totals.lost == 0);
    CHECK(sass_counters_bytes(counters) < 65536); /* what was written is freed */
    /* Another session in the same process: the choice stays. */
    sass_counters_stop(counters, 1);
    sass_counters_free(counters);
    struct gpu_context context = context_of(primary_context(0));
    struct sass_counters_options options = {.recorder = &recorder, .names = &names};
    CHECK(cupti_load(&options.cupti, &problem) == GPUFL_OK);
    CHECK(sass_counters_make(&counters, &options, &problem) == GPUFL_OK);
    CHECK(sass_counters_attach(counters, &context, &problem) == GPUFL_OK);
    CHECK(window(21, 1) == GPUFL_OK && summary.counts == DEFAULT_ROWS);
    sass_counters_stop(counters, 1);
    sass_counters_free(counters);
    options.metrics = "all-memory";
    CHECK(sass_counters_make(&counters, &options, &problem) == GPUFL_OK);
    CHECK(sass_counters_attach(counters, &context, &problem) == GPUFL_OK);
    CHECK(window(22, 1) == GPUFL_E_BUSY && strstr(problem.text, "GPU 0") != NULL);
    engine_end();
}

static void windows_follow_each_other_without_configuring_again(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "fail=cuptiSassMetricsSetConfig@2:8", windows_body);
}

static void collect_body(void)
{
    engine_start(&(struct sass_counters_options){0});
    CHECK(sass_counters_open(counters, 1, 1000, &problem) == GPUFL_OK);
    launches(2);
    sass_counters_collect(counters, 1100);
    sass_counters_write(counters);
    CHECK(rows()->row_count == DEFAULT_ROWS && value_of(1, 0x10, P "inst_executed") == 2 * WARPS);
    CHECK(row_at(0)[PROFILE_SAMPLE_INTERVAL_NS] == 100);
    launches(3);
    sass_counters_close(counters, 1500, 5, &summary);
    sass_counters_write(counters);
    CHECK(summary.executed == 5 * WARPS * INSTRUCTIONS_EXECUTED && summary.counts == 2 * DEFAULT_ROWS);
    CHECK(summary.contexts == 1 && summary.lost == 0 && summary.close_reason == NULL);
    const int64_t *second = row_at(DEFAULT_ROWS); /* the rest of the window, counted from where the first part ended */
    CHECK(second[PROFILE_SAMPLE_DT_NS] == 100 && second[PROFILE_SAMPLE_INTERVAL_NS] == 400);
    CHECK(second[PROFILE_SAMPLE_METRIC_VALUE] == 3 * WARPS && second[PROFILE_SAMPLE_WINDOW_ID] == 1);
    sass_counters_collect(counters, 1600); /* no window: nothing to do */
    engine_end();
}

static void a_long_window_is_collected_in_parts(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", collect_body);
}

static void alone_body(void)
{
    engine_start(&(struct sass_counters_options){0});
    pc_sampling_set(primary_context(0), false);
    CHECK(window(1, LAUNCHES) == GPUFL_OK && summary.counts == DEFAULT_ROWS);
    CHECK(sass_counters_open(counters, 2, 2000, &problem) == GPUFL_OK);
    launches(1);
    sass_counters_collect(counters, 2100);
    sass_counters_write(counters);
    launches(4); /* not counted; only the missing rows show it */
    sass_counters_close(counters, 2500, 5, &summary);
    CHECK(summary.executed == WARPS * INSTRUCTIONS_EXECUTED);
    engine_end();
}

static void without_pc_sampling_the_look_alike_forgets_as_cupti_does(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", alone_body);
}

static void tracing_again_body(void)
{
    engine_start(&(struct sass_counters_options){0});
    CHECK(window(1, LAUNCHES) == GPUFL_OK && summary.counts == DEFAULT_ROWS);
    CHECK(sass_counters_open(counters, 2, 2000, &problem) == GPUFL_OK);
    pc_sampling_set(primary_context(0), false);
    CHECK(cupti.enable(CUPTI_ABI_KIND_CONCURRENT_KERNEL) == CUPTI_NOT_COMPATIBLE);
    sass_counters_close(counters, 2500, 0, &summary);
    trace_start();
    launches(5);
    CHECK(cupti.flush_all(CUPTI_ABI_FLUSH_FORCED) == CUPTI_ABI_SUCCESS);
    CHECK(seen_of_kind(CUPTI_ABI_KIND_CONCURRENT_KERNEL) == 5);
    engine_end();
}

static void kernel_tracing_works_again_after_the_window(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", tracing_again_body);
}

static void tracing_body(void)
{
    CHECK(cupti.enable(CUPTI_ABI_KIND_CONCURRENT_KERNEL) == CUPTI_ABI_SUCCESS);
    engine_start(&(struct sass_counters_options){0});
    CHECK(window(1, LAUNCHES) == GPUFL_OK);
    CHECK(summary.close_reason != NULL && strcmp(summary.close_reason, "counts_invalid") == 0);
    CHECK(rows()->row_count == 0 && summary.counts == 0 && summary.not_executed == 0);
    CHECK(lost(LOSS_SASS_INVALID) == 8); /* instructions that would have been "not executed" */
    struct sass_totals totals;
    sass_counters_totals(counters, &totals);
    CHECK(totals.windows == 1 && totals.windows_invalid == 1 && totals.counts == 0);
    CHECK(cupti.disable(CUPTI_ABI_KIND_CONCURRENT_KERNEL) == CUPTI_ABI_SUCCESS);
    CHECK(window(2, LAUNCHES) == GPUFL_OK && summary.close_reason == NULL && rows()->row_count == DEFAULT_ROWS);
    engine_end();
}

static void zeros_beside_kernel_tracing_are_not_published(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", tracing_body);
}

static void idle_body(void)
{
    engine_start(&(struct sass_counters_options){0});
    CHECK(window(1, 0) == GPUFL_OK && summary.close_reason == NULL && summary.counts == 0);
    CHECK(rows()->row_count == 0 && recorder_lost_total(&recorder) == 0);
    engine_end();
}

static void a_window_in_which_nothing_ran_is_empty_and_not_invalid(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", idle_body);
}

static void eager_body(void)
{
    engine_start(&(struct sass_counters_options){.is_eager = true});
    CHECK(window(1, 1) == GPUFL_OK && summary.close_reason != NULL); /* the kernel was not loaded yet */
    CHECK(lost(LOSS_SASS_INVALID) == 1);
    CHECK(window(2, 1) == GPUFL_OK && summary.counts == DEFAULT_ROWS);
    engine_end();
}

static void eager_patching_misses_what_was_not_loaded_and_says_so(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", eager_body);
}

static void contexts_body(void)
{
    CHECK(engine_make(&(struct sass_counters_options){0}) == GPUFL_OK);
    CHECK(window(1, 1) == GPUFL_E_NOT_FOUND && !sass_counters_is_open(counters));
    struct gpu_context first = context_of(primary_context(0)), second = context_of(primary_context(1));
    pc_sampling_set(first.handle, true);
    CHECK(sass_counters_attach(counters, &first, &problem) == GPUFL_OK);
    CHECK(sass_counters_attach(counters, &first, &problem) == GPUFL_OK); /* attached twice */
    CHECK(sass_counters_open(counters, 2, 2000, &problem) == GPUFL_OK && sass_counters_is_open(counters));
    CHECK(sass_counters_open(counters, 3, 3000, &problem) == GPUFL_E_BUSY);
    CHECK(sass_counters_attach(counters, &second, &problem) == GPUFL_OK); /* for the next window */
    launches(1);
    sass_counters_detach(counters, first.handle); /* about to be destroyed: its counts are taken now */
    launches(1);
    sass_counters_close(counters, 2500, 2, &summary);
    CHECK(summary.contexts == 1 && summary.executed == WARPS * INSTRUCTIONS_EXECUTED && summary.lost == 0);
    sass_counters_write(counters);
    CHECK(value_of(2, 0x10, P "inst_executed") == WARPS && rows()->row_count == DEFAULT_ROWS);
    CHECK(window(3, 1) == GPUFL_OK && summary.contexts == 1 && summary.close_reason != NULL); /* nothing ran there */
    sass_counters_detach(counters, first.handle);                                             /* unknown by now */
    sass_counters_detach(counters, second.handle);
    CHECK(window(4, 0) == GPUFL_E_NOT_FOUND);
    engine_end();
}

static void join_body(void)
{
    CHECK(engine_make(&(struct sass_counters_options){0}) == GPUFL_OK);
    struct gpu_context first = context_of(primary_context(0)), second = context_of(primary_context(1));
    pc_sampling_set(first.handle, true);
    CHECK(sass_counters_join(counters, 1, &problem) == GPUFL_OK); /* no window: nothing to do */
    CHECK(sass_counters_attach(counters, &second, &problem) == GPUFL_OK);
    CHECK(sass_counters_open(counters, 1, 1000, &problem) == GPUFL_OK);
    launches(1);
    CHECK(sass_counters_attach(counters, &first, &problem) == GPUFL_OK);
    CHECK(sass_counters_join(counters, 1200, &problem) == GPUFL_OK);
    CHECK(sass_counters_join(counters, 1300, &problem) == GPUFL_OK);
    launches(2);
    sass_counters_close(counters, 1500, 3, &summary);
    sass_counters_write(counters);
    CHECK(summary.contexts == 2 && value_of(1, 0x00, P "inst_executed") == 2 * WARPS);
    CHECK(rows()->base_time_ns + row_at(0)[PROFILE_SAMPLE_DT_NS] == 1200 &&
          row_at(0)[PROFILE_SAMPLE_INTERVAL_NS] == 300);
    engine_end();
}

static void a_context_can_join_an_open_window(void **state)
{
    (void)state;
    setenv("FAKE_GPU_COUNT", "2", 1);
    in_child("libcupti.so.13", "", join_body);
    unsetenv("FAKE_GPU_COUNT");
}

static void contexts_come_and_go(void **state)
{
    (void)state;
    setenv("FAKE_GPU_COUNT", "2", 1);
    in_child("libcupti.so.13", "", contexts_body);
    unsetenv("FAKE_GPU_COUNT");
}

enum { CONTEXTS_MAX = 64 };

static void limit_body(void)
{
    CHECK(engine_make(&(struct sass_counters_options){0}) == GPUFL_OK);
    static char handles[CONTEXTS_MAX + 1];
    for (int i = 0; i < CONTEXTS_MAX; i++)
        CHECK(sass_counters_attach(counters, &(struct gpu_context){&handles[i], (uint32_t)i, 0}, &problem) == GPUFL_OK);
    struct gpu_context last = {&handles[CONTEXTS_MAX], CONTEXTS_MAX, 0};
    CHECK(sass_counters_attach(counters, &last, &problem) == GPUFL_E_LIMIT && strstr(problem.text, "context 64"));
    sass_counters_detach(counters, &handles[5]);
    CHECK(sass_counters_attach(counters, &last, &problem) == GPUFL_OK);
    engine_end();
}

static void the_number_of_contexts_is_bounded(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", limit_body);
}

static void strict_body(void)
{
    engine_start(&(struct sass_counters_options){0});
    CHECK(window(1, 1) == GPUFL_OK && summary.counts == DEFAULT_ROWS && recorder_lost_total(&recorder) == 0);
    engine_end();
}

static void a_strict_library_gets_the_longer_struct(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "sass_flush_bytes=48", strict_body);
}

static void metric_names_body(void)
{
    CHECK(engine_make(&(struct sass_counters_options){.metrics = "defalt"}) == GPUFL_E_INVALID);
    CHECK(strstr(problem.text, "did you mean \"default\"?") != NULL);
    engine_end();
    engine_start(&(struct sass_counters_options){.metrics = P "sectors_mem_globl"});
    CHECK(window(1, 1) == GPUFL_E_INVALID);
    CHECK(strstr(problem.text, "GH100 has no SASS metric") && strstr(problem.text, "\"" P "sectors_mem_global\"?"));
    CHECK(rows()->row_count == 0);
    engine_end();
}

static void a_wrong_metric_is_named_with_the_nearest(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", metric_names_body);
}

static void config_body(void)
{
    engine_start(&(struct sass_counters_options){.mode = "scope", .metrics = P "sectors_mem_global"});
    CHECK(window(1, 1) == GPUFL_OK && window(2, 1) == GPUFL_OK && summary.counts == INSTRUCTIONS_EXECUTED + 1);
    recorder_flush(&recorder, 0);
    size_t size;
    char path[600];
    snprintf(path, sizeof path, "%s/%s", dir, FIXTURE_ID);
    char *log = fixture_read(path, "device.log", &size), *first;
    CHECK((first = strstr(log, "sass_config")) != NULL && strstr(first + 1, "sass_config") == NULL);
    CHECK(strstr(first, "\"device_id\":0,\"configured_metrics\":[\"" P "inst_executed\",\"" P "sectors_mem_global\"],"
                        "\"skipped_metrics\":[],\"lazy_patching\":true,\"mode\":\"scope\"") != NULL);
    free(log);
    engine_end();
}

static void the_choice_of_metrics_is_in_the_log_once(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", config_body);
}

static const char recording[] =
    "sassrec 1\ncupti 130001\nmetric 0 " P "inst_executed\nmetric 1 " P "sectors_mem_local\n"
    "function 0 305419896 4 _Z8recordedPf\nflush 3 2\n"
    "record 0 16 0:5 0:6\nrecord 0 0 0:1 0:1\nrecord 0 0 1:0 1:9\n";
static char recording_path[300];

static void recording_body(void)
{
    engine_start(&(struct sass_counters_options){0});
    CHECK(window(1, 1) == GPUFL_OK && summary.counts == 3 && summary.executed == 13);
    CHECK(value_of(1, 16, P "inst_executed") == 11); /* both instances */
    CHECK(value_of(1, 0, P "inst_executed") == 2 && value_of(1, 0, P "sectors_mem_local") == 9);
    CHECK(row_at(0)[PROFILE_SAMPLE_CUBIN_CRC] == 305419896 && row_at(0)[PROFILE_SAMPLE_PC_OFFSET] == 0);
    engine_end();
}

static void a_recording_is_played_and_instances_add_up(void **state)
{
    (void)state;
    char *where = strdup(fixture_dir());
    fixture_write(where, "a.sassrec", recording, sizeof recording - 1);
    snprintf(recording_path, sizeof recording_path, "%s/a.sassrec", where);
    setenv("FAKE_SASS_RECORDING", recording_path, 1);
    in_child("libcupti.so.13", "", recording_body);
    unsetenv("FAKE_SASS_RECORDING");
    fixture_remove(where);
    free(where);
}

/* Counts of a function of the recording: of all its instructions, and the worst conflict among them. */
static struct instruction_counts function_counts(const char *function, double *worst_conflict)
{
    struct instruction_counts total = instruction_counts_none(), one = instruction_counts_none();
    *worst_conflict = 0;
    for (uint32_t i = 0; i < rows()->row_count; i++) {
        const int64_t *row = row_at(i), *next = i + 1 < rows()->row_count ? row_at(i + 1) : NULL;
        if (strcmp(intern_text(&names.functions.table, (uint32_t)row[PROFILE_SAMPLE_FUNCTION_ID]), function) != 0)
            continue;
        (void)instruction_counts_set(&one, intern_text(&names.metrics.table, (uint32_t)row[PROFILE_SAMPLE_METRIC_ID]),
                                     (uint64_t)row[PROFILE_SAMPLE_METRIC_VALUE]);
        if (next && next[PROFILE_SAMPLE_PC_OFFSET] == row[PROFILE_SAMPLE_PC_OFFSET] &&
            next[PROFILE_SAMPLE_FUNCTION_ID] == row[PROFILE_SAMPLE_FUNCTION_ID])
            continue;
        double conflict = instruction_bank_conflicts(&one);
        *worst_conflict = conflict > *worst_conflict ? conflict : *worst_conflict;
        instruction_counts_add(&total, &one);
        one = instruction_counts_none();
    }
    return total;
}

static void h200_body(void)
{
    static const struct {
        const char *function;
        double coalescing, worst_conflict, divergent; /* 0: not promised */
    } promised[] = {{"coalesce_1", 1, 0, 0},  {"coalesce_2", 0.5, 0, 0}, {"coalesce_4", 0.25, 0, 0},
                    {"diverge", 1, 0, 1056},  {"conflict_1", 0, 1, 0},   {"conflict_2", 0, 2, 0},
                    {"conflict_32", 0, 32, 0}};
    engine_start(&(struct sass_counters_options){0});
    CHECK(window(1, 1) == GPUFL_OK && summary.close_reason == NULL && summary.lost == 0);
    for (size_t i = 0; i < sizeof promised / sizeof *promised; i++) {
        double worst;
        struct instruction_counts counts = function_counts(promised[i].function, &worst);
        CHECK(counts.inst_executed > 0);
        CHECK(!promised[i].coalescing || instruction_coalescing(&counts) == promised[i].coalescing);
        CHECK(!promised[i].worst_conflict || worst == promised[i].worst_conflict);
        CHECK(!promised[i].divergent || counts.branch_divergent == promised[i].divergent);
    }
    engine_end();
}

static void counts_of_an_h200_give_what_its_kernels_promise(void **state)
{
    (void)state;
    static const char path[] = SOURCE_DIR "/tests/recordings/h200_sass.sassrec";
    REQUIRE(access(path, R_OK) == 0, "tests/recordings/h200_sass.sassrec");
    setenv("FAKE_SASS_RECORDING", path, 1);
    in_child("libcupti.so.13", "", h200_body);
    unsetenv("FAKE_SASS_RECORDING");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_of_a_window_become_rows),
        cmocka_unit_test(windows_follow_each_other_without_configuring_again),
        cmocka_unit_test(a_long_window_is_collected_in_parts),
        cmocka_unit_test(without_pc_sampling_the_look_alike_forgets_as_cupti_does),
        cmocka_unit_test(kernel_tracing_works_again_after_the_window),
        cmocka_unit_test(zeros_beside_kernel_tracing_are_not_published),
        cmocka_unit_test(a_window_in_which_nothing_ran_is_empty_and_not_invalid),
        cmocka_unit_test(eager_patching_misses_what_was_not_loaded_and_says_so),
        cmocka_unit_test(contexts_come_and_go),
        cmocka_unit_test(a_context_can_join_an_open_window),
        cmocka_unit_test(the_number_of_contexts_is_bounded),
        cmocka_unit_test(a_strict_library_gets_the_longer_struct),
        cmocka_unit_test(a_wrong_metric_is_named_with_the_nearest),
        cmocka_unit_test(the_choice_of_metrics_is_in_the_log_once),
        cmocka_unit_test(a_recording_is_played_and_instances_add_up),
        cmocka_unit_test(counts_of_an_h200_give_what_its_kernels_promise),
    };
    return cmocka_run_group_tests(tests, environment_setup, NULL);
}
