/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of a monitor with the look-alike NVML and an adjustable clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "logfile/reader.h"
#include "logfile/segment.h"
#include "monitor/monitor.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const int64_t day_ns = 86400000000000;

static char base[64];
static int64_t now_ns;
static char ended[8][512];
static int ended_count;

static int64_t wall(void *user)
{
    assert_ptr_equal(user, &now_ns);
    return now_ns;
}

static void on_end(void *user, const char *dir)
{
    assert_ptr_equal(user, &now_ns);
    snprintf(ended[ended_count++ % 8], sizeof ended[0], "%s", dir);
}

static struct monitor_options options_make(void)
{
    return (struct monitor_options){.dir = base,
                                    .app_name = "night watch",
                                    .roll = ROLL_DAILY,
                                    .vendors = 1u << GPU_VENDOR_NVIDIA,
                                    .root = "",
                                    .wall_ns = wall,
                                    .session_ended = on_end,
                                    .user = &now_ns};
}

static struct monitor *monitor_make(void)
{
    struct monitor *monitor = NULL;
    struct problem problem = {""}, gpu_problem = {""};
    struct monitor_options options = options_make();
    if (monitor_open(&monitor, &options, &problem, &gpu_problem) != GPUFL_OK)
        fail_msg("%s", problem.text);
    assert_string_equal(gpu_problem.text, "");
    return monitor;
}

static int setup(void **state)
{
    (void)state;
    snprintf(base, sizeof base, "/tmp/gpufl-monitor-XXXXXX");
    assert_non_null(mkdtemp(base));
    now_ns = 1780000000000000000;
    ended_count = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", base);
    return system(command);
}

struct content {
    uint64_t device_rows, host_rows, process_rows, processes;
    char kind[32], app[64];
};

static bool line_take(void *user, const struct log_line *line)
{
    struct content *content = user;
    if (line->type == RECORD_JOB_START) {
        snprintf(content->kind, sizeof content->kind, "%s", json_get_text(line->object, "session_kind", ""));
        snprintf(content->app, sizeof content->app, "%s", json_get_text(line->object, "app", ""));
    }
    content->device_rows += line->type == RECORD_DEVICE_METRIC_BATCH ? line->batch->row_count : 0;
    content->host_rows += line->type == RECORD_HOST_METRIC_BATCH ? line->batch->row_count : 0;
    content->process_rows += line->type == RECORD_PROCESS_METRIC_BATCH ? line->batch->row_count : 0;
    content->processes += line->type == RECORD_GPU_PROCESS;
    return true;
}

static struct content content_of(const char *dir)
{
    struct content content = {0};
    struct log_summary summary;
    struct problem problem = {""};
    if (log_read(dir, line_take, NULL, &content, &summary, &problem) != GPUFL_OK)
        fail_msg("%s: %s", dir, problem.text);
    return content;
}

static void assert_whole(const char *dir)
{
    struct verify_report report;
    assert_int_equal(verify_session(dir, &report, NULL), GPUFL_OK);
    bool is_complete = report.is_complete;
    for (uint64_t i = 0; i < report.issue_count && i < 10; i++)
        print_error("%s/%s:%" PRIu64 ": %s\n", dir, report.issues[i].file, report.issues[i].line,
                    report.issues[i].text);
    verify_report_free(&report); /* a failing assertion returns from here */
    assert_true(is_complete);
}

static void a_new_day_is_a_new_session(void **state)
{
    (void)state;
    struct monitor *monitor = monitor_make();
    char first[512], second[512];
    snprintf(first, sizeof first, "%s", monitor_session_dir(monitor));
    for (int i = 0; i < 3; i++)
        monitor_tick(monitor);
    assert_int_equal(ended_count, 0);
    now_ns += day_ns;
    monitor_tick(monitor);
    assert_int_equal(ended_count, 1);
    assert_string_equal(ended[0], first);
    snprintf(second, sizeof second, "%s", monitor_session_dir(monitor));
    assert_string_not_equal(first, second);
    monitor_tick(monitor);
    monitor_reopen(monitor); /* SIGHUP */
    assert_int_equal(ended_count, 2);
    monitor_close(monitor);
    assert_int_equal(ended_count, 3);
    for (int i = 0; i < 3; i++)
        assert_whole(ended[i]);
    struct content content = content_of(first);
    assert_string_equal(content.kind, "monitor");
    assert_string_equal(content.app, "night watch");
    assert_int_equal(content.device_rows, 3);
    assert_int_equal(content.host_rows, 3);
    assert_int_equal(content.processes, 2);
    content = content_of(second); /* every session starts with all records */
    assert_int_equal(content.device_rows, 2);
    assert_int_equal(content.process_rows, 2);
    assert_int_equal(content.processes, 2);
    assert_int_equal(seal_session(first, NULL), GPUFL_OK);
    assert_whole(first);
    assert_int_equal(content_of(first).device_rows, 3);
}

/* The monotonic clock, moved forward by the test. */
static _Atomic int64_t later_s; /* the writer's thread reads the clock, too */
int clock_gettime(clockid_t id, struct timespec *now)
{
    int result = (int)syscall(SYS_clock_gettime, id, now);
    now->tv_sec += id == CLOCK_MONOTONIC ? later_s : 0;
    return result;
}

static void a_session_that_could_not_begin_is_retried(void **state)
{
    (void)state;
    struct monitor *monitor = monitor_make();
    struct rlimit usual, none;
    char first[512];
    snprintf(first, sizeof first, "%s", monitor_session_dir(monitor));
    monitor_tick(monitor);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    none = usual;
    none.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    now_ns += day_ns;
    monitor_tick(monitor);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
    assert_string_equal(monitor_session_dir(monitor), first);
    later_s += 30;
    monitor_tick(monitor); /* no immediate retry: each attempt may leave files behind */
    assert_string_equal(monitor_session_dir(monitor), first);
    later_s += 60;
    monitor_tick(monitor);
    assert_string_not_equal(monitor_session_dir(monitor), first);
    monitor_close(monitor);
    later_s = 0;
    assert_int_equal(ended_count, 2);
    for (int i = 0; i < 2; i++)
        assert_whole(ended[i]);
}

static void two_monitors_cannot_share_a_directory(void **state)
{
    (void)state;
    struct monitor *monitor = monitor_make(), *other = NULL;
    struct problem problem = {""}, gpu_problem = {""};
    struct monitor_options options = options_make();
    char pid[32];
    assert_int_equal(monitor_open(&other, &options, &problem, &gpu_problem), GPUFL_E_BUSY);
    snprintf(pid, sizeof pid, "%ld", (long)getpid());
    assert_non_null(strstr(problem.text, pid));
    monitor_close(monitor);
    monitor_close(monitor_make()); /* the lock is free again */
    monitor_close(NULL);
}

static void a_directory_that_cannot_be_made_is_reported(void **state)
{
    (void)state;
    struct monitor *monitor = NULL;
    struct problem problem = {""}, gpu_problem = {""};
    struct monitor_options options = options_make();
    options.dir = "/proc/no/such";
    assert_int_not_equal(monitor_open(&monitor, &options, &problem, &gpu_problem), GPUFL_OK);
    assert_true(problem.text[0]);
    assert_null(monitor);
}

static uint64_t device_rows_of(const char *dir)
{
    struct log_summary summary;
    struct content content = {0};
    return log_read(dir, line_take, NULL, &content, &summary, NULL) == GPUFL_OK ? (uint64_t)content.device_rows : 0;
}

static void the_session_of_a_killed_monitor_is_ended(void **state)
{
    (void)state;
    pid_t child = fork();
    if (!child) {
        struct monitor *monitor = monitor_make();
        monitor_tick(monitor);
        while (!device_rows_of(monitor_session_dir(monitor))) /* written by the writer's thread */
            usleep(1000);
        raise(SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    struct monitor *monitor = monitor_make(); /* the lock was released with its process */
    monitor_tick(monitor);
    monitor_recover(base, "somebody else", on_end, &now_ns);
    assert_int_equal(ended_count, 0);
    monitor_recover(base, "night watch", on_end, &now_ns);
    assert_int_equal(ended_count, 1); /* not the running session */
    assert_string_not_equal(ended[0], monitor_session_dir(monitor));
    struct log_summary summary;
    struct content content = {0};
    assert_int_equal(log_read(ended[0], line_take, NULL, &content, &summary, NULL), GPUFL_OK);
    assert_true(summary.is_synthetic_shutdown);
    assert_int_equal(content.device_rows, 1); /* the first sample is written immediately */
    monitor_close(monitor);
}

int main(void)
{
    setenv("GPUFL_NVML_PATH", FAKES_DIR, 1);
    unsetenv("FAKE_GPU_COUNT");
    unsetenv("FAKE_FAULTS");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_new_day_is_a_new_session, setup, teardown),
        cmocka_unit_test_setup_teardown(a_session_that_could_not_begin_is_retried, setup, teardown),
        cmocka_unit_test_setup_teardown(two_monitors_cannot_share_a_directory, setup, teardown),
        cmocka_unit_test_setup_teardown(a_directory_that_cannot_be_made_is_reported, setup, teardown),
        cmocka_unit_test_setup_teardown(the_session_of_a_killed_monitor_is_ended, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
