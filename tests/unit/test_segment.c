/* SPDX-License-Identifier: Apache-2.0 */
#include "session_fixture.h"

#include "requirement.h"

#include "logfile/segment.h"
#include "logfile/session_dir.h"

#include <sys/wait.h>

/* A finished session: two rotated device files and a live one, all plain. */
static void make_session(const char *base, char dir[512])
{
    struct log_writer *writer = fixture_open(base, 6000, false);
    struct batch batch;
    assert_int_equal(batch_init(&batch, RECORD_KERNEL_EVENT_BATCH, 64), GPUFL_OK);
    fixture_line_all(writer, RECORD_JOB_START, fixture_job_start);
    fixture_line(writer, CHANNEL_DEVICE, RECORD_DICTIONARY_UPDATE, fixture_dictionary);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(fixture_kernels(writer, &batch, 1 + i * 64, 64), GPUFL_OK);
    fixture_line_all(writer, RECORD_SHUTDOWN, fixture_shutdown);
    snprintf(dir, 512, "%s", log_writer_dir(writer));
    log_writer_close(writer, 1000);
    batch_free(&batch);
    assert_true(fixture_exists(dir, "device.000001.log"));
    assert_true(fixture_exists(dir, "device.log"));
}

static void a_sealed_session_reads_exactly_like_the_plain_one(void **state)
{
    char dir[512];
    struct problem problem = {""};
    make_session(*state, dir);
    struct fixture_seen plain = fixture_see(dir);
    assert_int_equal(plain.issue_count, 0);
    assert_int_equal(seal_session(dir, &problem), GPUFL_OK);
    assert_false(fixture_exists(dir, "device.log"));
    assert_false(fixture_exists(dir, "device.000001.log"));
    struct fixture_seen sealed = fixture_see(dir);
    assert_int_equal(sealed.issue_count, 0);
    assert_string_equal(sealed.order, plain.order);
    assert_int_equal(sealed.corr_sum, plain.corr_sum);
    assert_int_equal(sealed.duration_sum, plain.duration_sum);
    assert_int_equal(sealed.unknown_leads, plain.unknown_leads);
    assert_memory_equal(sealed.summary.rows, plain.summary.rows, sizeof plain.summary.rows);
    assert_int_equal(sealed.summary.sealed_files, sealed.summary.files);
    /* Sealing again changes nothing. */
    assert_int_equal(seal_session(dir, &problem), GPUFL_OK);
    assert_int_equal(fixture_see(dir).kernels, plain.kernels);
}

static void the_footer_describes_the_content(void **state)
{
    char dir[512];
    make_session(*state, dir);
    size_t plain_size;
    char *plain = fixture_read(dir, "device.000001.log", &plain_size);
    int dir_fd = open(dir, O_RDONLY | O_DIRECTORY);
    struct segment_footer written = {0}, read = {0};
    uint64_t sealed_bytes = 0;
    struct problem problem = {""};
    assert_int_equal(segment_seal(dir_fd, CHANNEL_DEVICE, 1, NULL, &written, &sealed_bytes, &problem), GPUFL_OK);
    int fd = openat(dir_fd, "device.000001.log.zst", O_RDONLY);
    assert_int_equal(segment_footer_read(fd, &read, &problem), GPUFL_OK);
    assert_memory_equal(&written, &read, sizeof read);
    assert_string_equal(read.channel, "device");
    assert_int_equal(read.segment, 1);
    assert_int_equal(read.first_seq, 1);
    assert_int_equal(read.plain_bytes, plain_size);
    uint64_t lines = 0;
    for (size_t i = 0; i < plain_size; i++)
        lines += plain[i] == '\n';
    assert_int_equal(read.lines, lines);
    assert_int_equal(read.last_seq, lines);
    assert_true(sealed_bytes < plain_size);
    free(plain);
    close(fd);
    close(dir_fd);
}

static void a_cancelled_seal_leaves_the_plain_file_and_nothing_else(void **state)
{
    char dir[512];
    make_session(*state, dir);
    int dir_fd = open(dir, O_RDONLY | O_DIRECTORY);
    atomic_bool cancel = true;
    struct segment_footer footer;
    uint64_t sealed_bytes;
    assert_int_equal(segment_seal(dir_fd, CHANNEL_DEVICE, 1, &cancel, &footer, &sealed_bytes, NULL),
                     GPUFL_E_NOT_RUNNING);
    assert_true(fixture_exists(dir, "device.000001.log"));
    assert_false(fixture_exists(dir, "device.000001.log.zst"));
    assert_false(fixture_exists(dir, "device.000001.log.zst.part"));
    close(dir_fd);
}

static void a_file_with_a_damaged_line_is_not_sealed(void **state)
{
    char dir[512], path[512];
    make_session(*state, dir);
    fixture_path(path, dir, "device.000001.log");
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, "#", 1, 30), 1);
    close(fd);
    struct problem problem = {""};
    assert_int_equal(seal_session(dir, &problem), GPUFL_E_DAMAGED);
    assert_non_null(strstr(problem.text, "device.000001.log"));
    assert_true(fixture_exists(dir, "device.000001.log"));
    assert_false(fixture_exists(dir, "device.000001.log.zst"));
    struct fixture_seen seen = fixture_see(dir);
    assert_int_equal(seen.issues[LOG_ISSUE_DAMAGED_LINE], 1);
    assert_int_equal(seen.summary.missing_lines, 0);
}

static void the_torn_live_file_of_a_killed_program_keeps_its_name(void **state)
{
    char dir[512], path[512];
    make_session(*state, dir);
    fixture_path(path, dir, "device.log");
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(truncate(path, status.st_size - 5), 0);
    assert_int_equal(seal_session(dir, NULL), GPUFL_E_DAMAGED);
    assert_true(fixture_exists(dir, "device.log"));
    assert_true(fixture_exists(dir, "device.000001.log.zst"));
    assert_int_equal(fixture_see(dir).issues[LOG_ISSUE_TORN_TAIL], 1);
}

static void a_live_file_is_never_renamed_over_another_one(void **state)
{
    char dir[512], live[512], rotated[512], name[64];
    struct session_files files;
    struct problem problem = {""};
    make_session(*state, dir);
    assert_int_equal(session_files_list(&files, dir, &problem), GPUFL_OK);
    struct session_file *device = NULL;
    uint64_t last = 0;
    for (size_t i = 0; i < files.log_count; i++)
        if (files.items[i].channel == CHANNEL_DEVICE) {
            device = files.items[i].kind == SESSION_FILE_LIVE ? &files.items[i] : device;
            last = files.items[i].index > last ? files.items[i].index : last;
        }
    assert_non_null(device);
    /* Another process appends after the files were listed. */
    session_name_rotated(name, sizeof name, CHANNEL_DEVICE, last + 1, "");
    fixture_path(live, dir, "device.log");
    fixture_path(rotated, dir, name);
    assert_int_equal(rename(live, rotated), 0);
    close(open(live, O_WRONLY | O_CREAT, 0600));
    uint64_t kernels = fixture_see(dir).kernels;
    assert_int_equal(session_live_retire(&files, device, &problem), GPUFL_E_IO);
    assert_int_equal(fixture_see(dir).kernels, kernels);
    session_files_free(&files);
}

static void a_session_that_is_being_written_is_not_sealed(void **state)
{
    struct log_writer *writer = fixture_open(*state, 0, false);
    fixture_line(writer, CHANNEL_DEVICE, RECORD_LOSS, "{\"type\":\"loss\"");
    struct problem problem = {""};
    assert_int_equal(seal_session(log_writer_dir(writer), &problem), GPUFL_E_BUSY);
    assert_true(fixture_exists(log_writer_dir(writer), "device.log"));
    log_writer_close(writer, 1000);
}

/* Simulates a kill at each step of sealing; the reader must see every line once with any combination of files. */
static void interrupted_sealing_is_recovered_at_every_step(void **state)
{
    char dir[512];
    make_session(*state, dir);
    struct fixture_seen whole = fixture_see(dir);
    size_t plain_size, sealed_size;
    char *plain = fixture_read(dir, "device.000001.log", &plain_size);
    assert_int_equal(seal_session(dir, NULL), GPUFL_OK);
    char *sealed = fixture_read(dir, "device.000001.log.zst", &sealed_size);
    char path[512];

    /* Killed after the rename, before the unlink. */
    fixture_write(dir, "device.000001.log", plain, plain_size);
    struct fixture_seen seen = fixture_see(dir);
    assert_int_equal(seen.issue_count, 0);
    assert_string_equal(seen.order, whole.order);
    /* Sealing again completes it. */
    assert_int_equal(seal_session(dir, NULL), GPUFL_OK);
    assert_false(fixture_exists(dir, "device.000001.log"));

    /* Killed while writing, before the rename: a part file of any length. */
    fixture_path(path, dir, "device.000001.log.zst");
    assert_int_equal(unlink(path), 0);
    fixture_write(dir, "device.000001.log", plain, plain_size);
    for (size_t size = 0; size <= sealed_size; size += sealed_size / 7 + 1) {
        fixture_write(dir, "device.000001.log.zst.part", sealed, size);
        seen = fixture_see(dir);
        assert_int_equal(seen.issue_count, 0);
        assert_int_equal(seen.corr_sum, whole.corr_sum);
    }
    /* A truncated sealed file next to the plain one (a file system that lost data in a power failure). */
    for (size_t size = 0; size < sealed_size; size += sealed_size / 7 + 1) {
        fixture_write(dir, "device.000001.log.zst", sealed, size);
        seen = fixture_see(dir);
        assert_int_equal(seen.issue_count, 0);
        assert_int_equal(seen.corr_sum, whole.corr_sum);
    }
    free(plain);
    free(sealed);
}

static void a_plain_file_whose_lines_differ_from_the_sealed_file_is_kept(void **state)
{
    char dir[512];
    make_session(*state, dir);
    size_t size;
    char *plain = fixture_read(dir, "device.000001.log", &size);
    assert_int_equal(seal_session(dir, NULL), GPUFL_OK);
    char *other = strdup(plain);
    assert_non_null(other);
    memset(other, 'x', strcspn(other, "\n"));
    const char *const texts[] = {"somebody's own words\n", other};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        fixture_write(dir, "device.000001.log", texts[i], strlen(texts[i]));
        assert_int_equal(seal_session(dir, NULL), GPUFL_OK);
        assert_true(fixture_exists(dir, "device.000001.log"));
    }
    free(other);
    free(plain);
}

static void a_truncated_sealed_file_is_read_as_far_as_possible_and_reported(void **state)
{
    char dir[512];
    make_session(*state, dir);
    struct fixture_seen whole = fixture_see(dir);
    assert_int_equal(seal_session(dir, NULL), GPUFL_OK);
    size_t size;
    char *sealed = fixture_read(dir, "device.000001.log.zst", &size);
    for (size_t cut = 0; cut < size; cut += 13) {
        fixture_write(dir, "device.000001.log.zst", sealed, cut);
        struct fixture_seen seen = fixture_see(dir);
        assert_true(seen.issues[LOG_ISSUE_BAD_SEGMENT] > 0);
        assert_true(seen.kernels <= whole.kernels);
        /* The files after it are still read. */
        assert_true(seen.corr_sum >= whole.corr_sum / 4);
        assert_true(seen.summary.has_shutdown);
    }
    free(sealed);
}

static void every_damaged_byte_of_a_sealed_file_is_noticed(void **state)
{
    char dir[512];
    make_session(*state, dir);
    struct fixture_seen whole = fixture_see(dir);
    assert_int_equal(seal_session(dir, NULL), GPUFL_OK);
    size_t size;
    char *sealed = fixture_read(dir, "device.000001.log.zst", &size);
    for (size_t at = 0; at < size; at++) {
        sealed[at] ^= 0x10;
        fixture_write(dir, "device.000001.log.zst", sealed, size);
        sealed[at] ^= 0x10;
        struct fixture_seen seen = fixture_see(dir);
        if (!seen.issues[LOG_ISSUE_BAD_SEGMENT])
            fail_msg("byte %zu of %zu", at, size);
        /* Lines have CRCs: whatever is delivered is correct. */
        assert_true(seen.corr_sum <= whole.corr_sum);
    }
    free(sealed);
}

static void the_zstd_program_shows_plain_ndjson(void **state)
{
    char dir[512], command[1200];
    make_session(*state, dir);
    assert_int_equal(seal_session(dir, NULL), GPUFL_OK);
    REQUIRE(system("zstd --version >/dev/null 2>&1") == 0, "zstd");
    snprintf(command, sizeof command, "zstd -dc %s/device.000001.log.zst | grep -c '^{.*\"seq\":[0-9]*.*}$' > %s/out",
             dir, dir);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_sealed_session_reads_exactly_like_the_plain_one, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(the_footer_describes_the_content, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_cancelled_seal_leaves_the_plain_file_and_nothing_else, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(a_file_with_a_damaged_line_is_not_sealed, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(the_torn_live_file_of_a_killed_program_keeps_its_name, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(a_session_that_is_being_written_is_not_sealed, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_live_file_is_never_renamed_over_another_one, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_plain_file_whose_lines_differ_from_the_sealed_file_is_kept, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(interrupted_sealing_is_recovered_at_every_step, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(a_truncated_sealed_file_is_read_as_far_as_possible_and_reported, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(every_damaged_byte_of_a_sealed_file_is_noticed, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(the_zstd_program_shows_plain_ndjson, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
