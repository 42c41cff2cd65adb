/* SPDX-License-Identifier: Apache-2.0 */
/* Losses in the log: counted whole, and the first cause of each reason is told once. */
#include "recorder_fixture.h"

#include "base/clock.h"
#include "format/json.h"

#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum { thread_count = 4, losses_per_thread = 20000, deadline_s = 60 };

/* The writer's system call, with a disk that may have no room. */
static bool is_disk_full;

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    if (!is_disk_full)
        return (ssize_t)syscall(SYS_writev, fd, parts, count);
    errno = ENOSPC;
    return -1;
}

struct fixture {
    char dir[256];
    struct log_writer *writer;
    struct recorder recorder;
};

static int open_fixture(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    recorder_fixture_open(fixture->dir, &fixture->writer, &fixture->recorder);
    fixture_line_all(fixture->writer, RECORD_JOB_START, fixture_job_start);
    *state = fixture;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *fixture = *state;
    is_disk_full = false;
    recorder_fixture_close(fixture->dir, fixture->writer, &fixture->recorder);
    free(fixture);
    return 0;
}

/* The loss records of one reason. */
struct losses {
    const char *reason;
    int records, unknown, causes, cause_record; /* the latter from 1 */
    uint64_t count;
    char cause[sizeof(struct problem)];
};

static bool take_line(void *user, const struct log_line *line)
{
    struct losses *losses = user;
    if (line->type != RECORD_LOSS || strcmp(json_get_text(line->object, "reason", ""), losses->reason) != 0)
        return true;
    losses->records++;
    const struct json_value *count = json_member(line->object, "count");
    assert_non_null(count);
    losses->unknown += count->kind == JSON_NULL;
    losses->count += count->kind == JSON_INT ? (uint64_t)count->integer : 0;
    const struct json_value *cause = json_member(line->object, "cause");
    if (!cause)
        return true;
    assert_int_equal(cause->kind, JSON_STRING);
    losses->causes++;
    losses->cause_record = losses->records;
    snprintf(losses->cause, sizeof losses->cause, "%s", json_get_text(line->object, "cause", ""));
    return true;
}

static struct losses losses_read(struct fixture *fixture, const char *reason)
{
    struct losses losses = {.reason = reason};
    struct log_summary summary;
    struct problem problem = {""};
    if (log_read(log_writer_dir(fixture->writer), take_line, NULL, &losses, &summary, &problem) != GPUFL_OK)
        fail_msg("log_read: %s", problem.text);
    return losses;
}

static void the_first_cause_of_a_reason_is_told_once_and_all_losses_are_counted(void **state)
{
    struct fixture *fixture = *state;
    recorder_lose_because(&fixture->recorder, LOSS_SASS_DROPPED, 5, "the first call failed");
    recorder_lose_because(&fixture->recorder, LOSS_SASS_DROPPED, 6, "the second call failed");
    recorder_flush(&fixture->recorder, 0);
    recorder_lose_because(&fixture->recorder, LOSS_SASS_DROPPED, 7, "the third call failed");
    recorder_flush(&fixture->recorder, 0);
    struct losses losses = losses_read(fixture, "sass_records_dropped");
    assert_int_equal(losses.records, 2);
    assert_int_equal(losses.count, 18);
    assert_int_equal(losses.causes, 1);
    assert_int_equal(losses.cause_record, 1);
    assert_string_equal(losses.cause, "the first call failed");
    assert_int_equal(recorder_lost_total(&fixture->recorder), 18);
}

static void a_loss_that_cannot_tell_leaves_the_cause_to_the_next(void **state)
{
    struct fixture *fixture = *state;
    recorder_lose(&fixture->recorder, LOSS_PM_OVERFLOW, 1);
    recorder_lose_because(&fixture->recorder, LOSS_PM_OVERFLOW, 1, "");
    recorder_flush(&fixture->recorder, 0);
    recorder_lose_because(&fixture->recorder, LOSS_PM_OVERFLOW, 1, "it could not be read");
    recorder_flush(&fixture->recorder, 0);
    struct losses losses = losses_read(fixture, "pm_overflow");
    assert_int_equal(losses.records, 2);
    assert_int_equal(losses.unknown, 2);
    assert_int_equal(losses.causes, 1);
    assert_int_equal(losses.cause_record, 2);
    assert_string_equal(losses.cause, "it could not be read");
}

static void each_reason_has_its_own_cause(void **state)
{
    struct fixture *fixture = *state;
    recorder_lose_because(&fixture->recorder, LOSS_CODE_LIMIT, 1, "too much of it");
    recorder_lose_because(&fixture->recorder, LOSS_CODE_INVALID, 1, "not an ELF file");
    recorder_lose(&fixture->recorder, LOSS_CODE_MEMORY, 1);
    recorder_flush(&fixture->recorder, 0);
    assert_string_equal(losses_read(fixture, "code_limit").cause, "too much of it");
    assert_string_equal(losses_read(fixture, "code_invalid").cause, "not an ELF file");
    assert_int_equal(losses_read(fixture, "code_memory_full").causes, 0);
}

static void a_cause_with_quotes_and_control_characters_survives(void **state)
{
    static const char hostile[] = "\"quoted\" back\\slash\ttab\nnext line \x1b[31mred\x01 \xc3\xa9 </script>";
    struct fixture *fixture = *state;
    recorder_lose_because(&fixture->recorder, LOSS_PC_FAILED, 1, hostile);
    recorder_flush(&fixture->recorder, 0);
    assert_string_equal(losses_read(fixture, "pc_sampling_failed").cause, hostile);
}

static void a_cause_that_is_too_long_is_cut(void **state)
{
    struct fixture *fixture = *state;
    char text[4 * sizeof(struct problem)];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    recorder_lose_because(&fixture->recorder, LOSS_PC_FAILED, 1, text);
    recorder_flush(&fixture->recorder, 0);
    struct losses losses = losses_read(fixture, "pc_sampling_failed");
    assert_int_equal(losses.causes, 1);
    assert_int_equal(strlen(losses.cause), sizeof(struct problem) - 1);
}

static void *lose_often(void *argument)
{
    struct recorder *recorder = argument;
    for (int i = 0; i < losses_per_thread; i++)
        recorder_lose_because(recorder, LOSS_RANGES_DROPPED, 1, "every thread says the same");
    return NULL;
}

static void threads_that_lose_at_once_leave_one_whole_cause_and_every_count(void **state)
{
    struct fixture *fixture = *state;
    pthread_t threads[thread_count];
    for (int i = 0; i < thread_count; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, lose_often, &fixture->recorder), 0);
    for (int i = 0; i < 50; i++)
        recorder_flush(&fixture->recorder, 0);
    for (int i = 0; i < thread_count; i++)
        pthread_join(threads[i], NULL);
    recorder_flush(&fixture->recorder, 0);
    struct losses losses = losses_read(fixture, "ranges_dropped");
    assert_int_equal(losses.count, (uint64_t)thread_count * losses_per_thread);
    assert_int_equal(losses.causes, 1);
    assert_string_equal(losses.cause, "every thread says the same");
}

static void a_loss_that_found_no_room_is_told_with_its_cause_when_there_is_some(void **state)
{
    struct fixture *fixture = *state;
    is_disk_full = true;
    recorder_lose_because(&fixture->recorder, LOSS_PM_OVERFLOW, 1, "told later");
    recorder_flush(&fixture->recorder, 0);
    is_disk_full = false;
    struct log_writer_stats stats;
    int64_t until_ns = clock_mono_ns() + deadline_s * INT64_C(1000000000);
    do { /* the writer tries again after a while */
        usleep(20000);
        recorder_flush(&fixture->recorder, 0);
        log_writer_stats(fixture->writer, &stats);
    } while (!stats.rows[RECORD_LOSS] && clock_mono_ns() < until_ns);
    struct losses losses = losses_read(fixture, "pm_overflow");
    assert_int_equal(losses.records, 1);
    assert_string_equal(losses.cause, "told later");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_first_cause_of_a_reason_is_told_once_and_all_losses_are_counted),
        TEST(a_loss_that_cannot_tell_leaves_the_cause_to_the_next),
        TEST(each_reason_has_its_own_cause),
        TEST(a_cause_with_quotes_and_control_characters_survives),
        TEST(a_cause_that_is_too_long_is_cut),
        TEST(threads_that_lose_at_once_leave_one_whole_cause_and_every_count),
        TEST(a_loss_that_found_no_room_is_told_with_its_cause_when_there_is_some),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
