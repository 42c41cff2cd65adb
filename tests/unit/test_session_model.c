/* SPDX-License-Identifier: Apache-2.0 */
/* Loading: everything in a log is in the model, in order, and unknown values stay unknown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/analysis.h"

#define TIME0 "1000000000000"
#define JOB                                                                                                 \
    "{\"version\":1,\"type\":\"job_start\",\"session_id\":\"s\",\"pid\":7,\"app\":\"app\",\"ts_ns\":" TIME0 \
    ",\"profiling_engine\":\"nvidia.trace\",\"devices\":[{\"id\":0,\"name\":\"A\"},{\"id\":1,\"name\":\"B\"}]}\n"
#define END(ns) "{\"type\":\"shutdown\",\"session_id\":\"s\",\"ts_ns\":" #ns "}\n"
#define KERNELS(columns, rows)                                                            \
    "{\"version\":1,\"type\":\"kernel_event_batch\",\"session_id\":\"s\",\"batch_id\":1," \
    "\"base_time_ns\":" TIME0 ",\"columns\":[" columns "],\"rows\":[" rows "]}\n"

struct fixture {
    char dir[64];
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    snprintf(fixture->dir, sizeof fixture->dir, "/tmp/gpufl-model-XXXXXX");
    assert_non_null(mkdtemp(fixture->dir));
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    DIR *dir = opendir(fixture->dir);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
    rmdir(fixture->dir);
    free(fixture);
    return 0;
}

static void channel_write(const struct fixture *fixture, const char *channel, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s.log", fixture->dir, channel);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static struct session_model *load(const struct fixture *fixture)
{
    struct session_model *model;
    struct problem problem = {""};
    if (session_load(&model, fixture->dir, &problem) != GPUFL_OK)
        fail_msg("%s", problem.text);
    return model;
}

static void kernels_are_sorted_with_all_their_columns(void **state)
{
    channel_write(
        *state, "device",
        JOB KERNELS(
            "\"dt_ns\",\"kernel_id\",\"stream_id\",\"duration_ns\",\"corr_id\",\"device_id\",\"api_lead_ns\","
            "\"api_duration_ns\",\"thread_id\",\"graph_id\",\"stack_id\"",
            "[300,2,8,5,33,1,100,50,12,4,6],[100,1,7,9,11,0,null,null,null,0,0],[200,3,7,1,22,0,20,5000000000,12,0,0]")
            END(1000000001000));
    struct session_model *model = load(*state);
    const struct kernel_columns *kernels = &model->kernels;
    assert_int_equal(kernels->count, 3);
    assert_int_equal(kernels->start_ns[0], 1000000000100);
    assert_int_equal(kernels->start_ns[2], 1000000000300);
    assert_int_equal(kernels->kernel_id[0], 1);
    assert_int_equal(kernels->kernel_id[2], 2);
    assert_int_equal(kernels->duration_ns[2], 5);
    assert_int_equal(kernels->stream_id[2], 8);
    assert_int_equal(kernels->device[2], 1);
    assert_int_equal(kernels->corr_id[2], 33);
    assert_int_equal(kernels->thread_id[2], 12);
    assert_int_equal(kernels->graph_id[2], 4);
    assert_int_equal(kernels->stack_id[2], 6);
    assert_true(kernels->api_start_ns[0] == TIME_UNKNOWN);
    assert_int_equal(kernels->api_duration_ns[0], API_DURATION_UNKNOWN);
    assert_int_equal(kernels->thread_id[0], ID_UNKNOWN);
    assert_int_equal(kernels->scope[0], ID_UNKNOWN);
    assert_int_equal(kernels->api_start_ns[2], 1000000000200);
    assert_int_equal(kernels->api_duration_ns[1], API_DURATION_UNKNOWN - 1); /* saturated, not unknown */
    assert_int_equal(model->job.pid, 7);
    assert_string_equal(model->job.engine, "Trace");
    session_free(model);
}

static void a_kernel_whose_scope_was_lost_is_not_outside_all_scopes(void **state)
{
    channel_write(*state, "device",
                  JOB KERNELS("\"dt_ns\",\"kernel_id\",\"stream_id\",\"duration_ns\",\"scope_id\"",
                              "[1,1,7,10,0],[20,1,7,20,null],[50,1,7,40,99]") /* 99 is in no row */
                  "{\"version\":1,\"type\":\"loss\",\"session_id\":\"s\",\"ts_ns\":" TIME0
                  ",\"reason\":\"call_ring_full\",\"record_type\":\"api_time\",\"count\":5}\n" END(1000000001000));
    struct session_model *model = load(*state);
    struct analysis analysis;
    bool is_exact;
    assert_int_equal(analysis_make(&analysis, model), GPUFL_OK);
    assert_int_equal(analysis.scopes[0].kernels_self, 1);
    assert_int_equal(analysis.scope_count, 2);
    assert_int_equal(analysis.scopes[1].kernels_self, 2);
    assert_int_equal(analysis.scopes[1].gpu_self_ns, 60);
    assert_int_equal(analysis.scopes[1].calls, 0);
    assert_memory_equal(analysis.scopes[1].name, "(unknown)", analysis.scopes[1].name_size);
    assert_int_equal(session_lost(model, &is_exact), 5);
    assert_int_equal(session_lost_details(model), 5); /* no kernels among them */
    analysis_free(&analysis);
    session_free(model);
}

static void optional_columns_that_appear_late_leave_earlier_rows_without(void **state)
{
    channel_write(*state, "device",
                  JOB KERNELS("\"dt_ns\",\"kernel_id\",\"stream_id\",\"duration_ns\"", "[1,1,7,1],[2,1,7,1]")
                      KERNELS("\"dt_ns\",\"kernel_id\",\"stream_id\",\"duration_ns\",\"graph_id\"", "[3,1,7,1,9]")
                          END(1000000001000));
    struct session_model *model = load(*state);
    assert_non_null(model->kernels.graph_id);
    assert_null(model->kernels.stack_id);
    assert_int_equal(model->kernels.graph_id[0], 0);
    assert_int_equal(model->kernels.graph_id[2], 9);
    assert_int_equal(model->kernels.device[0], DEVICE_UNKNOWN); /* two GPUs: it could be either */
    session_free(model);
}

static void impossible_rows_are_left_out_and_counted(void **state)
{
    channel_write(
        *state, "device",
        JOB KERNELS(
            "\"dt_ns\",\"kernel_id\",\"stream_id\",\"duration_ns\"",
            "[1,1,7,-1],[9223372036854775807,1,7,1],[-2000000000000,1,7,1],[5,1,7,9223372036854775807],[7,1,7,2]")
            END(1000000001000));
    struct session_model *model = load(*state);
    assert_int_equal(model->kernels.count, 1);
    assert_int_equal(model->invalid_rows, 4);
    session_free(model);
}

static void the_first_cause_of_a_loss_is_kept(void **state)
{
    channel_write(
        *state, "system",
        JOB "{\"version\":1,\"type\":\"loss\",\"ts_ns\":1,\"reason\":\"full\",\"record_type\":\"a\",\"count\":5}\n"
            "{\"version\":1,\"type\":\"loss\",\"ts_ns\":2,\"reason\":\"full\",\"record_type\":\"a\",\"count\":6,"
            "\"cause\":\"one\"}\n"
            "{\"version\":1,\"type\":\"loss\",\"ts_ns\":3,\"reason\":\"full\",\"record_type\":\"a\",\"count\":7,"
            "\"cause\":\"two\"}\n"
            "{\"version\":1,\"type\":\"loss\",\"ts_ns\":4,\"reason\":\"late\",\"record_type\":\"a\",\"count\":1,"
            "\"cause\":17}\n");
    struct session_model *model = load(*state);
    assert_int_equal(model->loss_count, 2);
    assert_int_equal(model->losses[0].count, 18);
    assert_string_equal(model->losses[0].cause, "one");
    assert_string_equal(model->losses[1].cause, "");
    session_free(model);
}

static void losses_add_up_by_reason_and_unknown_counts_are_not_zero(void **state)
{
    channel_write(
        *state, "system",
        JOB
        "{\"version\":1,\"type\":\"loss\",\"ts_ns\":1,\"reason\":\"full\",\"record_type\":\"kernel_event_batch\",\"count\":5}\n"
        "{\"version\":1,\"type\":\"loss\",\"ts_ns\":2,\"reason\":\"full\",\"record_type\":\"kernel_event_batch\",\"count\":6}\n"
        "{\"version\":1,\"type\":\"loss\",\"ts_ns\":3,\"reason\":\"disk\",\"record_type\":\"\",\"count\":null}\n"
        "{\"type\":\"shutdown\",\"session_id\":\"s\",\"ts_ns\":1000000001000,\"lost\":{\"full\":13,\"late\":3}}\n");
    struct session_model *model = load(*state);
    bool is_exact;
    assert_int_equal(session_lost(model, &is_exact), 16);
    assert_false(is_exact);
    assert_int_equal(model->loss_count, 4);
    assert_int_equal(model->losses[0].count, 11);
    /* Losses known only from the shutdown record may be of any type. */
    assert_string_equal(model->losses[2].reason, "full");
    assert_string_equal(model->losses[2].record_type, "");
    assert_int_equal(model->losses[2].count, 2);
    session_free(model);
}

static void a_scope_whose_begin_was_lost_starts_at_the_time_in_its_end(void **state)
{
    channel_write(
        *state, "scope",
        JOB
        "{\"version\":1,\"type\":\"dictionary_update\",\"session_id\":\"s\",\"scope_name_dict\":{\"1\":\"a\",\"2\":\"a|b\"}}\n"
        "{\"version\":3,\"type\":\"scope_event_batch\",\"session_id\":\"s\",\"batch_id\":1,\"base_time_ns\":" TIME0
        ",\"columns\":"
        "[\"dt_ns\",\"scope_instance_id\",\"name_id\",\"event_type\",\"depth\",\"repeat\",\"warmup\",\"original_start_ns\","
        "\"thread_id\",\"parent_id\",\"tag_id\",\"source\"],\"rows\":["
        "[10,1,1,0,0,0,0,1000000000010,5,0,0,0],[50,2,2,1,1,0,0,1000000000020,5,1,0,0],[60,3,1,0,0,0,0,0,5,0,0,0]]}\n" END(
            1000000001000));
    struct session_model *model = load(*state);
    assert_int_equal(model->scope_count, 3);
    assert_int_equal(model->scopes[1].begin_ns, 1000000000020);
    assert_int_equal(model->scopes[1].end_ns, 1000000000050);
    assert_int_equal(model->scopes[1].parent, 0);
    assert_true(model->scopes[0].end_ns == TIME_UNKNOWN);
    struct analysis analysis;
    assert_int_equal(analysis_make(&analysis, model), GPUFL_OK);
    assert_int_equal(analysis.scope_count, 3); /* root, a, a|b */
    assert_int_equal(analysis.scopes[1].calls, 2);
    assert_int_equal(analysis.scopes[1].open_calls, 2);
    assert_int_equal(analysis.scopes[2].wall_ns, 30);
    analysis_free(&analysis);
    session_free(model);
}

/* The recorder forgets names and configurations that it has not used for long, and writes them again under new ids. */
static void a_name_written_again_under_a_new_id_is_merged(void **state)
{
    channel_write(
        *state, "device",
        JOB
        "{\"version\":1,\"type\":\"dictionary_update\",\"session_id\":\"s\",\"kernel_dict\":{\"1\":\"gemm\",\"2\":"
        "\"add\",\"3\":\"gemm\",\"4\":\"gemm\"},\"kernel_symbol_dict\":{\"1\":\"_gemm\",\"2\":\"_add\",\"3\":\"_gemm\","
        "\"4\":\"_other_gemm\"}}\n"
        "{\"version\":1,\"type\":\"launch_config_batch\",\"session_id\":\"s\",\"batch_id\":1,\"base_time_ns\":0,"
        "\"columns\":[\"launch_id\",\"kernel_id\",\"grid_x\",\"block_x\"],\"rows\":[[1,1,64,128],[2,2,64,128],"
        "[3,3,64,128],[4,3,65,128],[5,4,64,128]]}\n" KERNELS(
            "\"dt_ns\",\"kernel_id\",\"duration_ns\",\"launch_id\"",
            "[100,1,5,1],[200,2,5,2],[300,3,5,3],[400,3,5,4],[500,4,5,5]") END(1000000001000));
    struct session_model *model = load(*state);
    const uint32_t kernel_ids[] = {1, 2, 1, 1, 4}, launch_ids[] = {1, 2, 1, 4, 5};
    assert_int_equal(model->kernels.count, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(model->kernels.kernel_id[i], kernel_ids[i]);
        assert_int_equal(model->kernels.launch_id[i], launch_ids[i]);
    }
    assert_int_equal(model->launches[3].kernel_id, 1);
    session_free(model);
}

static void a_missing_directory_is_an_error_that_names_it(void **state)
{
    (void)state;
    struct session_model *model = NULL;
    struct problem problem = {""};
    assert_int_not_equal(session_load(&model, "/nonexistent/session", &problem), GPUFL_OK);
    assert_null(model);
    assert_non_null(strstr(problem.text, "/nonexistent/session"));
}

static void a_kernel_takes_at_most_64_bytes(void **state)
{
    struct bytes text = {0};
    bytes_append_text(&text, JOB);
    for (int batch = 0; batch < 40; batch++) {
        bytes_append_text(
            &text,
            "{\"version\":1,\"type\":\"kernel_event_batch\",\"session_id\":\"s\",\"batch_id\":1,\"base_time_ns\":" TIME0
            ",\"columns\":[\"dt_ns\",\"kernel_id\",\"stream_id\",\"duration_ns\"],\"rows\":[");
        for (int row = 0; row < 2048; row++)
            bytes_append_format(&text, "%s[%d,1,7,5]", row ? "," : "", batch * 2048 + row);
        bytes_append_text(&text, "]}\n");
    }
    channel_write(*state, "device", bytes_text(&text));
    bytes_free(&text);
    struct session_model *model = load(*state);
    assert_int_equal(model->kernels.count, 40 * 2048);
    size_t bytes_per_slot = 3 * sizeof(int64_t) + 9 * sizeof(uint32_t) + sizeof(uint16_t);
    assert_true(bytes_per_slot <= 64);
    /* Unused capacity must not cost more than the narrow columns save. */
    assert_true(model->kernels.capacity * (bytes_per_slot - 8) <= model->kernels.count * 64 + 4096 * 64);
    session_free(model);
}

static void rows_counted_only_by_the_shutdown_record_are_an_issue(void **state)
{
    channel_write(
        *state, "device",
        JOB KERNELS(
            "\"dt_ns\",\"duration_ns\"",
            "[0,5],[10,5]") "{\"type\":\"shutdown\",\"session_id\":\"s\",\"ts_ns\":1000000001000,"
                            "\"rows\":{\"kernel_event_batch\":5,\"memcpy_event_batch\":0,\"nobodys_batch\":7}}\n");
    struct session_model *model = load(*state);
    assert_int_equal(model->issues_by_kind[LOG_ISSUE_COUNT_MISMATCH], 3);
    assert_int_equal(model->issue_count, 1);
    assert_string_equal(model->issues[0].text,
                        "kernel_event_batch: the shutdown record counts 5 rows, but there are 2");
    bool is_exact;
    assert_int_equal(session_lost(model, &is_exact), 0);
    assert_false(is_exact);
    session_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_kernel_whose_scope_was_lost_is_not_outside_all_scopes, setup, teardown),
        cmocka_unit_test_setup_teardown(kernels_are_sorted_with_all_their_columns, setup, teardown),
        cmocka_unit_test_setup_teardown(optional_columns_that_appear_late_leave_earlier_rows_without, setup, teardown),
        cmocka_unit_test_setup_teardown(impossible_rows_are_left_out_and_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(losses_add_up_by_reason_and_unknown_counts_are_not_zero, setup, teardown),
        cmocka_unit_test_setup_teardown(the_first_cause_of_a_loss_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(a_scope_whose_begin_was_lost_starts_at_the_time_in_its_end, setup, teardown),
        cmocka_unit_test_setup_teardown(a_name_written_again_under_a_new_id_is_merged, setup, teardown),
        cmocka_unit_test_setup_teardown(a_missing_directory_is_an_error_that_names_it, setup, teardown),
        cmocka_unit_test_setup_teardown(a_kernel_takes_at_most_64_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_counted_only_by_the_shutdown_record_are_an_issue, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
