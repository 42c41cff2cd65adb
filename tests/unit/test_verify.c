/* SPDX-License-Identifier: Apache-2.0 */
#include "session_fixture.h"

#include "logfile/segment.h"

static struct verify_report verify(const char *path)
{
    struct verify_report report;
    struct problem problem = {""};
    gpufl_status status = verify_session(path, &report, &problem);
    if (status)
        fail_msg("verify_session: %s", problem.text);
    return report;
}

static uint64_t count_of(const struct verify_report *report, enum log_issue_kind kind)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < report->issue_count && i < 1000; i++)
        count += report->issues[i].kind == kind;
    return count;
}

static const struct log_issue *first_of(const struct verify_report *report, enum log_issue_kind kind)
{
    for (uint64_t i = 0; i < report->issue_count && i < 1000; i++)
        if (report->issues[i].kind == kind)
            return &report->issues[i];
    fail_msg("no issue of kind %d", kind);
    return NULL;
}

static void write_row(struct log_writer *writer, enum record_type type, const int64_t *cells, unsigned count)
{
    struct batch batch;
    struct bytes line = {0};
    assert_int_equal(batch_init(&batch, type, 1), GPUFL_OK);
    memcpy(batch_row(&batch), cells, count * sizeof *cells);
    batch_encode(&batch, FIXTURE_ID, "", &line);
    assert_int_equal(log_writer_line(writer, record_catalogue[type].channel, type, &line, 1), GPUFL_OK);
    bytes_free(&line);
    batch_free(&batch);
}

/* One kernel in scope 5, with launch configuration 3. */
static struct log_writer *begin_session(const char *base, bool has_scope, bool has_launch, bool has_name)
{
    struct log_writer *writer = fixture_open(base, 0, false);
    fixture_line_all(writer, RECORD_JOB_START, fixture_job_start);
    if (has_name)
        fixture_line(writer, CHANNEL_DEVICE, RECORD_DICTIONARY_UPDATE, fixture_dictionary);
    fixture_line(writer, CHANNEL_SCOPE, RECORD_DICTIONARY_UPDATE,
                 "{\"type\":\"dictionary_update\",\"scope_name_dict\":{\"1\":\"train\"},\"tag_dict\":{\"4\":\"hot\"}");
    int64_t scope[SCOPE_COLUMN_COUNT] = {[SCOPE_SCOPE_INSTANCE_ID] = 5, [SCOPE_NAME_ID] = 1, [SCOPE_TAG_ID] = 4};
    int64_t launch[LAUNCH_CONFIG_COLUMN_COUNT] = {[LAUNCH_CONFIG_LAUNCH_ID] = 3, [LAUNCH_CONFIG_KERNEL_ID] = 2};
    int64_t kernel[KERNEL_COLUMN_COUNT] = {[KERNEL_KERNEL_ID] = 2, [KERNEL_LAUNCH_ID] = 3, [KERNEL_SCOPE_ID] = 5};
    if (has_scope)
        write_row(writer, RECORD_SCOPE_EVENT_BATCH, scope, SCOPE_COLUMN_COUNT);
    if (has_launch)
        write_row(writer, RECORD_LAUNCH_CONFIG_BATCH, launch, LAUNCH_CONFIG_COLUMN_COUNT);
    write_row(writer, RECORD_KERNEL_EVENT_BATCH, kernel, KERNEL_COLUMN_COUNT);
    return writer;
}

static void end_session(struct log_writer *writer, const char *members)
{
    char line[1024];
    snprintf(line, sizeof line, "%s%s", fixture_shutdown, members);
    fixture_line_all(writer, RECORD_SHUTDOWN, line);
    log_writer_close(writer, 1000);
}

static void an_undamaged_session_is_complete(void **state)
{
    end_session(
        begin_session(*state, true, true, true),
        ",\"rows\":{\"kernel_event_batch\":1,\"scope_event_batch\":1,\"launch_config_batch\":1},\"cupti_dropped\":0");
    struct verify_report report = verify(*state);
    assert_int_equal(report.issue_count, 0);
    assert_true(report.is_complete);
    verify_report_free(&report);
    /* The same after sealing. */
    char dir[512];
    fixture_path(dir, *state, FIXTURE_ID);
    assert_int_equal(seal_session(dir, NULL), GPUFL_OK);
    report = verify(*state);
    assert_true(report.is_complete);
    assert_true(report.summary.sealed_files > 0);
    verify_report_free(&report);
}

static void a_kernel_without_a_name_is_a_bad_reference(void **state)
{
    end_session(begin_session(*state, true, true, false), "");
    struct verify_report report = verify(*state);
    /* The kernel and its launch configuration use the same id. */
    assert_int_equal(count_of(&report, LOG_ISSUE_BAD_REFERENCE), 1);
    const struct log_issue *issue = first_of(&report, LOG_ISSUE_BAD_REFERENCE);
    assert_int_equal(issue->count, 2);
    assert_string_equal(issue->file, "device.log");
    assert_non_null(strstr(issue->text, "kernel_dict 2"));
    assert_false(report.is_complete);
    verify_report_free(&report);
}

static void missing_launch_configurations_and_scopes_are_bad_references(void **state)
{
    end_session(begin_session(*state, false, false, true), "");
    struct verify_report report = verify(*state);
    assert_int_equal(count_of(&report, LOG_ISSUE_BAD_REFERENCE), 2);
    verify_report_free(&report);
}

static void an_id_defined_after_its_use_is_not_missing(void **state)
{
    struct log_writer *writer = begin_session(*state, true, true, false);
    fixture_line(writer, CHANNEL_DEVICE, RECORD_DICTIONARY_UPDATE, fixture_dictionary);
    end_session(writer, "");
    struct verify_report report = verify(*state);
    assert_true(report.is_complete);
    verify_report_free(&report);
}

static void counts_that_differ_from_the_shutdown_record_are_reported(void **state)
{
    end_session(begin_session(*state, true, true, true),
                ",\"rows\":{\"kernel_event_batch\":3,\"scope_event_batch\":1}");
    struct verify_report report = verify(*state);
    assert_int_equal(report.issue_count, 1);
    const struct log_issue *issue = first_of(&report, LOG_ISSUE_COUNT_MISMATCH);
    assert_int_equal(issue->count, 2);
    assert_non_null(strstr(issue->text, "kernel_event_batch"));
    assert_false(report.is_complete);
    verify_report_free(&report);
}

static void losses_are_summed_and_unknown_ones_counted_separately(void **state)
{
    struct log_writer *writer = begin_session(*state, true, true, true);
    fixture_line(writer, CHANNEL_SYSTEM, RECORD_LOSS,
                 "{\"type\":\"loss\",\"reason\":\"ring_full\",\"record_type\":\"scope_event_batch\",\"count\":12");
    fixture_line(writer, CHANNEL_SYSTEM, RECORD_LOSS,
                 "{\"type\":\"loss\",\"reason\":\"gpu_lost\",\"record_type\":\"device_metric_batch\",\"count\":null");
    end_session(writer, ",\"lost\":{\"ring_full\":12,\"disk\":5},\"cupti_dropped\":8");
    struct verify_report report = verify(*state);
    assert_int_equal(report.lost_records, 17);
    assert_true(report.has_unknown_loss);
    /* two loss records, five that only the shutdown record counts, and CUPTI's count */
    assert_int_equal(count_of(&report, LOG_ISSUE_LOSS), 4);
    assert_false(report.is_complete);
    verify_report_free(&report);
}

static void the_cause_of_a_loss_follows_its_explanation(void **state)
{
    struct log_writer *writer = begin_session(*state, true, true, true);
    fixture_line(writer, CHANNEL_SYSTEM, RECORD_LOSS,
                 "{\"type\":\"loss\",\"reason\":\"pm_overflow\",\"record_type\":\"pm_sample_batch\",\"count\":null,"
                 "\"message\":\"could not be read\",\"cause\":\"cuptiX failed: CUPTI_ERROR_UNKNOWN (999)\"");
    end_session(writer, "");
    struct verify_report report = verify(*state);
    assert_non_null(strstr(first_of(&report, LOG_ISSUE_LOSS)->text, "pm_overflow; could not be read; first cause: "
                                                                    "cuptiX failed: CUPTI_ERROR_UNKNOWN (999)"));
    verify_report_free(&report);
}

static void a_killed_session_is_unfinished_and_nothing_else(void **state)
{
    log_writer_close(begin_session(*state, true, true, true), 1000);
    struct verify_report report = verify(*state);
    assert_int_equal(report.issue_count, 1);
    assert_int_equal(report.issues[0].kind, LOG_ISSUE_UNFINISHED);
    assert_false(report.is_complete);
    verify_report_free(&report);
}

/* Kernels can be on disk before their scope: for a killed program that is not an error. */
static void a_scope_that_was_not_yet_written_belongs_to_an_unfinished_session(void **state)
{
    log_writer_close(begin_session(*state, false, true, true), 1000);
    struct verify_report report = verify(*state);
    assert_int_equal(report.issue_count, 2);
    assert_int_equal(count_of(&report, LOG_ISSUE_UNFINISHED), 2);
    verify_report_free(&report);
}

static void a_live_session_is_reported_as_live(void **state)
{
    struct log_writer *writer = begin_session(*state, true, true, true);
    struct verify_report report = verify(*state);
    assert_true(report.summary.is_live);
    assert_non_null(strstr(first_of(&report, LOG_ISSUE_UNFINISHED)->text, "still being written"));
    verify_report_free(&report);
    log_writer_close(writer, 1000);
}

static void a_synthetic_shutdown_does_not_make_a_session_complete(void **state)
{
    end_session(begin_session(*state, true, true, true), ",\"synthetic\":true,\"signal\":9");
    struct verify_report report = verify(*state);
    assert_true(report.summary.is_synthetic_shutdown);
    assert_int_equal(count_of(&report, LOG_ISSUE_UNFINISHED), 1);
    assert_false(report.is_complete);
    verify_report_free(&report);
}

static void many_issues_are_counted_but_not_all_stored(void **state)
{
    struct log_writer *writer = fixture_open(*state, 0, false);
    for (int i = 0; i < 1500; i++)
        fixture_line(writer, CHANNEL_SYSTEM, RECORD_LOSS, "{\"type\":\"loss\",\"reason\":\"x\",\"count\":1");
    end_session(writer, "");
    struct verify_report report = verify(*state);
    assert_int_equal(report.issue_count, 1500);
    assert_int_equal(report.lost_records, 1500);
    assert_string_equal(report.issues[999].file, "system.log");
    verify_report_free(&report);
}

static void scattered_ids_stay_within_bounded_memory(void **state)
{
    struct log_writer *writer = fixture_open(*state, 0, false);
    struct batch batch;
    struct bytes line = {0};
    assert_int_equal(batch_init(&batch, RECORD_SCOPE_EVENT_BATCH, 20000), GPUFL_OK);
    for (int64_t i = 0; i < 20000; i++)
        batch_row(&batch)[SCOPE_SCOPE_INSTANCE_ID] = 1 + i * 1000003;
    batch_encode(&batch, FIXTURE_ID, "", &line);
    assert_int_equal(log_writer_line(writer, CHANNEL_SCOPE, RECORD_SCOPE_EVENT_BATCH, &line, 20000), GPUFL_OK);
    end_session(writer, "");
    struct verify_report report = verify(*state);
    assert_non_null(strstr(first_of(&report, LOG_ISSUE_BAD_REFERENCE)->text, "too many"));
    verify_report_free(&report);
    bytes_free(&line);
    batch_free(&batch);
}

static void a_channel_without_its_end_is_incomplete(void **state)
{
    end_session(begin_session(*state, true, true, true), "");
    char dir[512];
    fixture_path(dir, *state, FIXTURE_ID);
    size_t size;
    char *text = fixture_read(dir, "device.log", &size);
    char *end = strstr(text, "{\"type\":\"shutdown\"");
    assert_non_null(end);
    fixture_write(dir, "device.log", text, (size_t)(end - text));
    free(text);
    struct verify_report report = verify(*state);
    assert_int_equal(report.issue_count, 1);
    const struct log_issue *issue = first_of(&report, LOG_ISSUE_MISSING_LINES);
    assert_string_equal(issue->file, "device.log");
    assert_non_null(strstr(issue->text, "no shutdown record"));
    assert_false(report.is_complete);
    verify_report_free(&report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_undamaged_session_is_complete, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_kernel_without_a_name_is_a_bad_reference, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(missing_launch_configurations_and_scopes_are_bad_references, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(an_id_defined_after_its_use_is_not_missing, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(counts_that_differ_from_the_shutdown_record_are_reported, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(losses_are_summed_and_unknown_ones_counted_separately, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(the_cause_of_a_loss_follows_its_explanation, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_killed_session_is_unfinished_and_nothing_else, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(a_scope_that_was_not_yet_written_belongs_to_an_unfinished_session,
                                        fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_live_session_is_reported_as_live, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_synthetic_shutdown_does_not_make_a_session_complete, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(many_issues_are_counted_but_not_all_stored, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(scattered_ids_stay_within_bounded_memory, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_channel_without_its_end_is_incomplete, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
