/* SPDX-License-Identifier: Apache-2.0 */
/* Disks that are full, gone, read-only or prepared with symbolic links: one message, no partial line stays, every lost
 * line is counted, and recording continues. */
#include "../unit/session_fixture.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>

/* The writer's system call, with a disk of limited size; -1: no limit. */
static long long disk_room = -1;
static int disk_error = ENOSPC;

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    size_t wanted = 0;
    for (int i = 0; i < count; i++)
        wanted += parts[i].iov_len;
    if (disk_room < 0 || wanted <= (size_t)disk_room) {
        if (disk_room >= 0)
            disk_room -= (long long)wanted;
        return (ssize_t)syscall(SYS_writev, fd, parts, count);
    }
    if (disk_room == 0) {
        errno = disk_error;
        return -1;
    }
    size_t size = parts[0].iov_len < (size_t)disk_room ? parts[0].iov_len : (size_t)disk_room;
    disk_room -= (long long)size;
    return (ssize_t)syscall(SYS_write, fd, parts[0].iov_base, size);
}

static struct {
    int errors, infos;
    char last_error[600];
} messages;

static void take_message(void *user, gpufl_log_level level, const char *text)
{
    (void)user;
    if (level == GPUFL_LOG_ERROR) {
        messages.errors++;
        snprintf(messages.last_error, sizeof messages.last_error, "%s", text);
    } else if (level == GPUFL_LOG_INFO) {
        messages.infos++;
    }
}

static int setup(void **state)
{
    *state = strdup(fixture_dir());
    memset(&messages, 0, sizeof messages);
    log_configure(take_message, NULL, false, -1);
    disk_room = -1;
    disk_error = ENOSPC;
    return 0;
}

static int teardown(void **state)
{
    log_configure(NULL, NULL, false, -1);
    fixture_remove(*state);
    free(*state);
    return 0;
}

static gpufl_status try_open(const char *base, struct problem *problem)
{
    struct log_writer *writer = NULL;
    struct log_writer_options options = {.base_dir = base, .session_id = FIXTURE_ID};
    gpufl_status status = log_writer_open(&writer, &options, problem);
    log_writer_close(writer, 1000);
    return status;
}

/* Waits until the writer retries. */
static void wait_for_retry(void)
{
    int64_t until_ns = clock_mono_ns() + 1050 * (int64_t)1000000;
    while (clock_mono_ns() < until_ns)
        usleep(20000);
}

static void a_full_disk_is_reported_once_and_every_lost_line_counted(void **state)
{
    struct log_writer *writer = fixture_open(*state, 0, false);
    static const char line[] = "{\"type\":\"overhead\",\"reason\":\"0123456789012345678901234567890123456789\"";
    assert_int_equal(fixture_line(writer, CHANNEL_DEVICE, RECORD_OVERHEAD, line), GPUFL_OK);
    disk_room = 40; /* the next line is cut in the middle */
    for (int i = 0; i < 50; i++)
        assert_int_equal(fixture_line(writer, i % 2 ? CHANNEL_SYSTEM : CHANNEL_DEVICE, RECORD_OVERHEAD, line),
                         GPUFL_E_IO);
    assert_int_equal(messages.errors, 1);
    assert_non_null(strstr(messages.last_error, "device.log"));
    assert_non_null(strstr(messages.last_error, strerror(ENOSPC)));
    assert_non_null(strstr(messages.last_error, "when space is available"));
    struct log_writer_stats stats;
    log_writer_stats(writer, &stats);
    assert_int_equal(stats.lines, 1);
    assert_int_equal(stats.lost_lines, 50);
    assert_int_equal(stats.lost_rows[LOG_LOSS_DISK][RECORD_OVERHEAD], 50);
    assert_int_equal(stats.rows[RECORD_OVERHEAD], 1);
    assert_int_equal(stats.last_errno, ENOSPC);
    /* The partial line was truncated. */
    size_t size;
    char *text = fixture_read(log_writer_dir(writer), "device.log", &size);
    assert_int_equal(text[size - 1], '\n');
    free(text);
    log_writer_close(writer, 1000);
    struct fixture_seen seen = fixture_see(*state);
    assert_int_equal(seen.summary.rows[RECORD_OVERHEAD], 1);
    assert_int_equal(seen.issues[LOG_ISSUE_DAMAGED_LINE] + seen.issues[LOG_ISSUE_TORN_TAIL], 0);
}

static void recording_continues_when_space_is_available_again(void **state)
{
    struct log_writer *writer = fixture_open(*state, 0, false);
    static const char line[] = "{\"type\":\"overhead\",\"reason\":\"x\"";
    assert_int_equal(fixture_line(writer, CHANNEL_DEVICE, RECORD_OVERHEAD, line), GPUFL_OK);
    disk_room = 10;
    for (int i = 0; i < 7; i++)
        assert_int_equal(fixture_line(writer, CHANNEL_DEVICE, RECORD_OVERHEAD, line), GPUFL_E_IO);
    disk_room = -1;
    wait_for_retry();
    assert_int_equal(fixture_line(writer, CHANNEL_DEVICE, RECORD_OVERHEAD, line), GPUFL_OK);
    assert_int_equal(messages.errors, 1);
    assert_int_equal(messages.infos, 1);
    log_writer_close(writer, 1000);
    struct fixture_seen seen = fixture_see(*state);
    assert_int_equal(seen.summary.rows[RECORD_OVERHEAD], 2);
    /* The gap shows in the file itself. */
    assert_int_equal(seen.summary.missing_lines, 7);
    assert_int_equal(seen.issues[LOG_ISSUE_DAMAGED_LINE], 0);
}

static void each_episode_is_reported_once(void **state)
{
    struct log_writer *writer = fixture_open(*state, 0, false);
    static const char line[] = "{\"type\":\"overhead\",\"reason\":\"x\"";
    for (int episode = 0; episode < 2; episode++) {
        disk_error = episode ? EIO : EDQUOT;
        disk_room = 0;
        for (int i = 0; i < 3; i++)
            assert_int_equal(fixture_line(writer, CHANNEL_DEVICE, RECORD_OVERHEAD, line), GPUFL_E_IO);
        assert_int_equal(messages.errors, episode + 1);
        assert_non_null(strstr(messages.last_error, strerror(disk_error)));
        disk_room = -1;
        wait_for_retry();
        assert_int_equal(fixture_line(writer, CHANNEL_DEVICE, RECORD_OVERHEAD, line), GPUFL_OK);
    }
    log_writer_close(writer, 1000);
}

static void short_lines_that_still_fit_do_not_make_new_episodes(void **state)
{
    struct log_writer *writer = fixture_open(*state, 0, false);
    static const char short_line[] = "{\"type\":\"overhead\"",
                      long_line[] = "{\"type\":\"overhead\",\"reason\":\"0123456789012345\"";
    for (int round = 0; round < 2; round++) {
        disk_room = 60;
        assert_int_equal(fixture_line(writer, CHANNEL_DEVICE, RECORD_OVERHEAD, long_line), GPUFL_E_IO);
        disk_room = 60;
        wait_for_retry();
        assert_int_equal(fixture_line(writer, CHANNEL_DEVICE, RECORD_OVERHEAD, short_line), GPUFL_OK);
    }
    assert_int_equal(messages.errors, 1);
    log_writer_close(writer, 1000);
}

static void a_file_size_limit_never_raises_its_signal(void **state)
{
    struct rlimit before, small = {.rlim_cur = 200};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    struct log_writer *writer = fixture_open(*state, 0, false);
    static const char line[] = "{\"type\":\"overhead\",\"reason\":\"x\"";
    struct bytes huge = {0};
    bytes_append_text(&huge, "{\"type\":\"overhead\",\"reason\":\"");
    for (int i = 0; i < 300; i++)
        bytes_append_char(&huge, 'x');
    bytes_append_char(&huge, '"');
    /* SIGXFSZ has its default action here: it would end this program. */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    gpufl_status results[9], huge_result;
    for (int i = 0; i < 9; i++)
        results[i] = fixture_line(writer, CHANNEL_DEVICE, RECORD_OVERHEAD, line);
    huge_result = log_writer_line(writer, CHANNEL_SCOPE, RECORD_OVERHEAD, &huge, 1);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    for (int i = 0; i < 9; i++)
        assert_int_equal(results[i], GPUFL_OK); /* the lines are in several files */
    assert_int_equal(huge_result, GPUFL_E_IO);
    assert_int_equal(messages.errors, 1);
    assert_non_null(strstr(messages.last_error, "ulimit -f"));
    assert_true(fixture_exists(log_writer_dir(writer), "device.000001.log"));
    log_writer_close(writer, 1000);
    assert_int_equal(fixture_see(*state).summary.rows[RECORD_OVERHEAD], 9);
    bytes_free(&huge);
}

static void a_directory_that_may_not_be_written_is_refused_with_its_path(void **state)
{
    char base[512];
    struct problem problem = {""};
    fixture_path(base, *state, "locked");
    assert_int_equal(mkdir(base, 0555), 0);
    assert_int_equal(chmod(*state, 0755), 0);
    bool is_root = geteuid() == 0;
    if (is_root)
        assert_int_equal(seteuid(65534), 0);
    gpufl_status direct = try_open(base, &problem);
    char below[512];
    fixture_path(below, base, "a/b");
    struct problem problem_below = {""};
    gpufl_status deep = try_open(below, &problem_below);
    if (is_root)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(direct, GPUFL_E_PERMISSION);
    assert_non_null(strstr(problem.text, base));
    assert_int_equal(deep, GPUFL_E_PERMISSION);
    assert_non_null(strstr(problem_below.text, base));
}

static void a_path_that_cannot_exist_is_refused(void **state)
{
    (void)state;
    struct problem problem = {""};
    assert_int_not_equal(try_open("/proc/gpufl-cannot-be-made", &problem), GPUFL_OK);
    assert_non_null(strstr(problem.text, "/proc/gpufl-cannot-be-made"));
    char too_long[8192];
    memset(too_long, 'x', sizeof too_long - 1);
    too_long[sizeof too_long - 1] = '\0';
    assert_int_not_equal(try_open(too_long, &problem), GPUFL_OK);
    assert_int_equal(try_open("", &problem), GPUFL_E_INVALID);
}

static void a_file_in_place_of_the_directory_is_refused(void **state)
{
    char base[512];
    struct problem problem = {""};
    fixture_write(*state, "file", "x", 1);
    fixture_path(base, *state, "file");
    assert_int_equal(try_open(base, &problem), GPUFL_E_IO);
    assert_non_null(strstr(problem.text, base));
    fixture_path(base, *state, "file/below");
    assert_int_equal(try_open(base, &problem), GPUFL_E_IO);
}

static void a_link_in_place_of_the_session_directory_is_refused(void **state)
{
    char link[512], target[512];
    struct problem problem = {""};
    fixture_path(link, *state, FIXTURE_ID);
    fixture_path(target, *state, "elsewhere");
    assert_int_equal(mkdir(target, 0700), 0);
    assert_int_equal(symlink(target, link), 0);
    assert_int_equal(try_open(*state, &problem), GPUFL_E_IO);
    assert_false(fixture_exists(target, ".gpufl-session.lock"));
}

static void a_link_in_place_of_a_file_is_not_written_through(void **state)
{
    struct log_writer *writer = fixture_open(*state, 0, false);
    char link[512], target[512];
    fixture_write(*state, "victim", "precious", 8);
    fixture_path(target, *state, "victim");
    fixture_path(link, log_writer_dir(writer), "device.log");
    assert_int_equal(symlink(target, link), 0);
    assert_int_equal(fixture_line(writer, CHANNEL_DEVICE, RECORD_OVERHEAD, "{\"type\":\"overhead\""), GPUFL_E_IO);
    assert_int_equal(messages.errors, 1);
    size_t size;
    char *text = fixture_read(*state, "victim", &size);
    assert_string_equal(text, "precious");
    free(text);
    log_writer_close(writer, 1000);
}

static void a_session_is_never_written_into_an_older_one(void **state)
{
    log_writer_close(fixture_open(*state, 0, false), 1000);
    struct problem problem = {""};
    assert_int_equal(try_open(*state, &problem), GPUFL_E_IO);
    assert_non_null(strstr(problem.text, FIXTURE_ID));
}

static void losing_the_directory_does_not_stop_the_program(void **state)
{
    struct log_writer *writer = fixture_open(*state, 200, true);
    for (int i = 0; i < 3; i++)
        fixture_line(writer, CHANNEL_DEVICE, RECORD_OVERHEAD, "{\"type\":\"overhead\"");
    fixture_remove(log_writer_dir(writer));
    for (int i = 0; i < 20; i++)
        fixture_line(writer, CHANNEL_DEVICE, RECORD_OVERHEAD, "{\"type\":\"overhead\"");
    assert_int_equal(fixture_line(writer, CHANNEL_SCOPE, RECORD_OVERHEAD, "{\"type\":\"overhead\""), GPUFL_E_IO);
    assert_int_equal(messages.errors, 1);
    log_writer_close(writer, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_full_disk_is_reported_once_and_every_lost_line_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(recording_continues_when_space_is_available_again, setup, teardown),
        cmocka_unit_test_setup_teardown(each_episode_is_reported_once, setup, teardown),
        cmocka_unit_test_setup_teardown(short_lines_that_still_fit_do_not_make_new_episodes, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_size_limit_never_raises_its_signal, setup, teardown),
        cmocka_unit_test_setup_teardown(a_directory_that_may_not_be_written_is_refused_with_its_path, setup, teardown),
        cmocka_unit_test_setup_teardown(a_path_that_cannot_exist_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_in_place_of_the_directory_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_link_in_place_of_the_session_directory_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_link_in_place_of_a_file_is_not_written_through, setup, teardown),
        cmocka_unit_test_setup_teardown(a_session_is_never_written_into_an_older_one, setup, teardown),
        cmocka_unit_test_setup_teardown(losing_the_directory_does_not_stop_the_program, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
