/* SPDX-License-Identifier: Apache-2.0 */
#include "session_fixture.h"

#include "base/crc32c.h"
#include "logfile/session_dir.h"

#include <sys/wait.h>

static void a_line_ends_with_its_number_and_crc(void **state)
{
    struct log_writer *writer = fixture_open(*state, 0, false);
    assert_int_equal(fixture_line(writer, CHANNEL_DEVICE, RECORD_LOSS, "{\"type\":\"loss\""), GPUFL_OK);
    assert_int_equal(fixture_line(writer, CHANNEL_DEVICE, RECORD_LOSS, "{\"type\":\"loss\""), GPUFL_OK);
    size_t size;
    char *text = fixture_read(log_writer_dir(writer), "device.log", &size);
    char expected[256];
    const char *first = "{\"type\":\"loss\",\"seq\":1", *second = "{\"type\":\"loss\",\"seq\":2";
    snprintf(expected, sizeof expected, "%s,\"crc\":\"%08x\"}\n%s,\"crc\":\"%08x\"}\n", first,
             crc32c(0, first, strlen(first)), second, crc32c(0, second, strlen(second)));
    assert_string_equal(text, expected);
    free(text);
    log_writer_close(writer, 1000);
}

static void directories_and_files_belong_to_the_user_alone(void **state)
{
    char base[512];
    fixture_path(base, *state, "a/b");
    struct log_writer *writer = fixture_open(base, 0, false);
    fixture_line(writer, CHANNEL_SCOPE, RECORD_LOSS, "{\"type\":\"loss\"");
    struct stat status;
    assert_int_equal(stat(base, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    assert_int_equal(stat(log_writer_dir(writer), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    char path[512];
    fixture_path(path, log_writer_dir(writer), "scope.log");
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    log_writer_close(writer, 1000);
}

static void a_channel_has_no_file_before_its_first_line(void **state)
{
    struct log_writer *writer = fixture_open(*state, 0, false);
    fixture_line(writer, CHANNEL_SYSTEM, RECORD_LOSS, "{\"type\":\"loss\"");
    struct bytes line = {0};
    bytes_append_text(&line, fixture_job_start);
    assert_int_equal(log_writer_line_all(writer, 1u << CHANNEL_DEVICE, RECORD_JOB_START, &line), GPUFL_OK);
    bytes_free(&line);
    assert_true(fixture_exists(log_writer_dir(writer), "system.log"));
    assert_true(fixture_exists(log_writer_dir(writer), "device.log"));
    assert_false(fixture_exists(log_writer_dir(writer), "scope.log"));
    struct log_writer_stats stats;
    log_writer_stats(writer, &stats);
    assert_int_equal(stats.lines, 3);
    assert_int_equal(stats.rows[RECORD_JOB_START], 1);
    log_writer_close(writer, 1000);
}

static void rotation_keeps_counting_and_loses_nothing(void **state)
{
    struct log_writer *writer = fixture_open(*state, 300, false);
    for (int i = 0; i < 20; i++)
        assert_int_equal(
            fixture_line(writer, CHANNEL_DEVICE, RECORD_LOSS, "{\"type\":\"loss\",\"padding\":\"0123456789\""),
            GPUFL_OK);
    assert_true(fixture_exists(log_writer_dir(writer), "device.000001.log"));
    assert_true(fixture_exists(log_writer_dir(writer), "device.000002.log"));
    assert_true(fixture_exists(log_writer_dir(writer), "device.log"));
    struct fixture_seen seen = fixture_see(*state);
    assert_int_equal(seen.summary.rows[RECORD_LOSS], 20);
    assert_int_equal(seen.summary.missing_lines, 0);
    log_writer_close(writer, 1000);
}

static void rotation_by_age_starts_a_new_file(void **state)
{
    struct log_writer *writer = NULL;
    struct log_writer_options options = {.base_dir = *state, .session_id = FIXTURE_ID, .rotate_age_ms = 1};
    assert_int_equal(log_writer_open(&writer, &options, NULL), GPUFL_OK);
    fixture_line(writer, CHANNEL_DEVICE, RECORD_LOSS, "{\"type\":\"loss\"");
    usleep(3000);
    fixture_line(writer, CHANNEL_DEVICE, RECORD_LOSS, "{\"type\":\"loss\"");
    assert_true(fixture_exists(log_writer_dir(writer), "device.000001.log"));
    log_writer_close(writer, 1000);
}

static void rotated_files_are_sealed_and_read_back_the_same(void **state)
{
    struct log_writer *writer = fixture_open(*state, 20000, true);
    struct batch batch;
    assert_int_equal(batch_init(&batch, RECORD_KERNEL_EVENT_BATCH, 256), GPUFL_OK);
    fixture_line_all(writer, RECORD_JOB_START, fixture_job_start);
    fixture_line(writer, CHANNEL_DEVICE, RECORD_DICTIONARY_UPDATE, fixture_dictionary);
    uint64_t corr_sum = 0, duration_sum = 0;
    for (uint32_t first = 1; first < 256 * 30; first += 256) {
        assert_int_equal(fixture_kernels(writer, &batch, first, 256), GPUFL_OK);
        for (uint32_t i = 0; i < 256; i++) {
            corr_sum += first + i;
            duration_sum += 900 + i;
        }
    }
    fixture_line_all(writer, RECORD_SHUTDOWN, fixture_shutdown);
    char dir[512];
    snprintf(dir, sizeof dir, "%s", log_writer_dir(writer));
    log_writer_close(writer, 600000);
    assert_true(fixture_exists(dir, "device.000001.log.zst"));
    assert_false(fixture_exists(dir, "device.000001.log"));
    struct fixture_seen seen = fixture_see(dir);
    assert_int_equal(seen.issue_count, 0);
    assert_int_equal(seen.kernels, 256 * 30);
    assert_int_equal(seen.corr_sum, corr_sum);
    assert_int_equal(seen.duration_sum, duration_sum);
    assert_int_equal(seen.unknown_leads, 86 * 30);
    assert_true(seen.summary.sealed_files > 0);
    batch_free(&batch);
}

static void closing_without_waiting_leaves_only_plain_and_sealed_files(void **state)
{
    struct log_writer *writer = fixture_open(*state, 4000, true);
    struct batch batch;
    assert_int_equal(batch_init(&batch, RECORD_KERNEL_EVENT_BATCH, 64), GPUFL_OK);
    for (uint32_t first = 1; first < 64 * 40; first += 64)
        assert_int_equal(fixture_kernels(writer, &batch, first, 64), GPUFL_OK);
    char dir[512];
    snprintf(dir, sizeof dir, "%s", log_writer_dir(writer));
    log_writer_close(writer, 0);
    struct fixture_seen seen = fixture_see(dir);
    assert_int_equal(seen.kernels, 64 * 40);
    assert_int_equal(seen.summary.missing_lines, 0);
    batch_free(&batch);
}

static void the_lock_is_held_while_the_writer_is_open(void **state)
{
    struct log_writer *writer = fixture_open(*state, 0, false);
    char dir[512];
    snprintf(dir, sizeof dir, "%s", log_writer_dir(writer));
    fixture_line(writer, CHANNEL_DEVICE, RECORD_LOSS, "{\"type\":\"loss\"");
    assert_true(fixture_see(dir).summary.is_live);
    log_writer_close(writer, 1000);
    assert_false(fixture_see(dir).summary.is_live);
}

static void a_forked_child_forgets_the_session_and_the_parent_continues(void **state)
{
    struct log_writer *writer = fixture_open(*state, 0, false);
    fixture_line(writer, CHANNEL_DEVICE, RECORD_LOSS, "{\"type\":\"loss\"");
    pid_t child = fork();
    if (!child) {
        log_writer_abandon(writer);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(fixture_see(*state).summary.is_live);
    fixture_line(writer, CHANNEL_DEVICE, RECORD_LOSS, "{\"type\":\"loss\"");
    assert_int_equal(fixture_see(*state).summary.rows[RECORD_LOSS], 2);
    log_writer_close(writer, 1000);
}

static void an_id_that_is_not_a_uuid_is_refused(void **state)
{
    struct log_writer *writer = NULL;
    static const char *const ids[] = {"", "x", "../../../../../../../../../etc/passwd01", FIXTURE_ID "0"};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        struct log_writer_options options = {.base_dir = *state, .session_id = ids[i]};
        assert_int_equal(log_writer_open(&writer, &options, NULL), GPUFL_E_INVALID);
    }
    assert_null(writer);
}

static void a_line_that_could_not_be_built_is_counted_as_lost(void **state)
{
    struct log_writer *writer = fixture_open(*state, 0, false);
    struct bytes line = {.limit = 4};
    bytes_append_text(&line, "{\"type\":\"kernel_event_batch\"");
    assert_true(line.failed);
    assert_int_equal(log_writer_line(writer, CHANNEL_DEVICE, RECORD_KERNEL_EVENT_BATCH, &line, 12), GPUFL_E_IO);
    struct log_writer_stats stats;
    log_writer_stats(writer, &stats);
    assert_int_equal(stats.lost_lines, 1);
    assert_int_equal(stats.lost_rows[LOG_LOSS_DISK][RECORD_KERNEL_EVENT_BATCH], 12);
    bytes_free(&line);
    log_writer_close(writer, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_line_ends_with_its_number_and_crc, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(directories_and_files_belong_to_the_user_alone, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(a_channel_has_no_file_before_its_first_line, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(rotation_keeps_counting_and_loses_nothing, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(rotation_by_age_starts_a_new_file, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(rotated_files_are_sealed_and_read_back_the_same, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(closing_without_waiting_leaves_only_plain_and_sealed_files, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(the_lock_is_held_while_the_writer_is_open, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_forked_child_forgets_the_session_and_the_parent_continues, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(an_id_that_is_not_a_uuid_is_refused, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_line_that_could_not_be_built_is_counted_as_lost, fixture_setup,
                                        fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
