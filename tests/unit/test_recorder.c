/* SPDX-License-Identifier: Apache-2.0 */
/* Losses in the log: all are counted, and the first cause of each reason is logged once. Names: bounded while they
 * wait. */
#include "recorder_fixture.h"

#include "base/clock.h"
#include "format/json.h"

#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum { thread_count = 4, losses_per_thread = 20000, deadline_s = 600 };

/* Replaces the writer's system call, with a disk that may be full. */
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
    char cause[sizeof(struct problem)], message[sizeof(struct problem)];
};

static bool take_line(void *user, const struct log_line *line)
{
    struct losses *losses = user;
    if (line->type != RECORD_LOSS || strcmp(json_get_text(line->object, "reason", ""), losses->reason) != 0)
        return true;
    losses->records++;
    snprintf(losses->message, sizeof losses->message, "%s", json_get_text(line->object, "message", ""));
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

static void the_first_cause_of_a_reason_is_logged_once_and_all_losses_are_counted(void **state)
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

/* The writer tries again after a while. */
static void write_until_the_disk_has_room(struct fixture *fixture)
{
    struct log_writer_stats stats;
    int64_t until_ns = clock_mono_ns() + deadline_s * INT64_C(1000000000);
    do {
        usleep(20000);
        (void)recorder_begin(&fixture->recorder, RECORD_OVERHEAD);
        recorder_end(&fixture->recorder, RECORD_OVERHEAD);
        (void)recorder_begin(&fixture->recorder, RECORD_JOB_START);
        recorder_end(&fixture->recorder, RECORD_JOB_START);
        log_writer_stats(fixture->writer, &stats);
    } while (stats.is_in_trouble && clock_mono_ns() < until_ns);
}

static void a_loss_without_room_for_its_record_is_logged_later_with_its_cause(void **state)
{
    struct fixture *fixture = *state;
    is_disk_full = true;
    recorder_lose_because(&fixture->recorder, LOSS_PM_OVERFLOW, 1, "logged later");
    recorder_flush(&fixture->recorder, 0);
    is_disk_full = false;
    write_until_the_disk_has_room(fixture);
    struct losses losses = losses_read(fixture, "pm_overflow");
    assert_int_equal(losses.records, 1);
    assert_string_equal(losses.cause, "logged later");
}

static bool take_name(void *user, const struct log_line *line)
{
    uint64_t *last_id = user;
    const struct json_value *entries = line->type == RECORD_DICTIONARY_UPDATE && line->channel == CHANNEL_DEVICE
                                           ? json_member(line->object, dictionary_catalogue[DICTIONARY_KERNEL].name)
                                           : NULL;
    for (const struct json_value *entry = entries ? entries->child : NULL; entry; entry = entry->next)
        *last_id = strtoull(entry->key, NULL, 10);
    return true;
}

/* The id of the last kernel name in the log; 0: there is none. */
static uint64_t last_name_read(struct fixture *fixture)
{
    uint64_t last_id = 0;
    struct log_summary summary;
    struct problem problem = {""};
    if (log_read(log_writer_dir(fixture->writer), take_name, NULL, &last_id, &summary, &problem) != GPUFL_OK)
        fail_msg("log_read: %s", problem.text);
    assert_int_equal(summary.damaged_lines, 0);
    return last_id;
}

static void define(struct fixture *fixture, uint32_t id, size_t size)
{
    char *text = malloc(size);
    assert_non_null(text);
    memset(text, 'k', size);
    recorder_define(&fixture->recorder, DICTIONARY_KERNEL, id, text, size);
    free(text);
}

static void many_names_do_not_wait_for_a_batch(void **state)
{
    struct fixture *fixture = *state;
    for (uint32_t id = 1; id <= 300; id++)
        define(fixture, id, 10000);
    assert_true(last_name_read(fixture) > 200);
    assert_true(fixture->recorder.entries[DICTIONARY_KERNEL].size < 2 << 20);
    recorder_flush(&fixture->recorder, 0);
    assert_int_equal(last_name_read(fixture), 300);
}

static void a_name_that_fits_no_line_is_counted_and_holds_no_other_up(void **state)
{
    struct fixture *fixture = *state;
    define(fixture, 1, (size_t)65 << 20);
    define(fixture, 2, 10);
    recorder_flush(&fixture->recorder, 0);
    assert_int_equal(last_name_read(fixture), 2);
    assert_int_equal(losses_read(fixture, "name_too_long").count, 1);
    assert_int_equal(losses_read(fixture, "disk").count, 0);
}

static void names_wait_boundedly_for_a_full_disk_and_are_written_then(void **state)
{
    struct fixture *fixture = *state;
    is_disk_full = true;
    for (uint32_t id = 1; id <= 70; id++)
        define(fixture, id, 1 << 20);
    recorder_flush(&fixture->recorder, 0);
    struct log_writer_stats stats;
    log_writer_stats(fixture->writer, &stats);
    uint64_t dropped = stats.lost_rows[LOG_LOSS_QUEUE][RECORD_DICTIONARY_UPDATE];
    assert_in_range(dropped, 10, 60);
    assert_true(stats.queue_bytes < 40 << 20);
    is_disk_full = false;
    write_until_the_disk_has_room(fixture);
    recorder_flush(&fixture->recorder, 0);
    assert_int_equal(last_name_read(fixture), 70 - dropped);
    struct losses losses = losses_read(fixture, "write_queue_full");
    assert_int_equal(losses.count, dropped);
}

static void a_line_that_is_too_long_is_not_called_a_success_of_the_disk(void **state)
{
    struct fixture *fixture = *state;
    struct bytes *line = recorder_begin(&fixture->recorder, RECORD_OVERHEAD);
    assert_true(bytes_reserve(line, (size_t)65 << 20));
    memset(line->data + line->size, ' ', (size_t)65 << 20);
    line->size += (size_t)65 << 20;
    recorder_end(&fixture->recorder, RECORD_OVERHEAD);
    recorder_flush(&fixture->recorder, 0);
    struct losses losses = losses_read(fixture, "disk");
    assert_int_equal(losses.count, 1);
    assert_string_equal(losses.message, "a line was too long for a reader, or there was no memory for it");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_first_cause_of_a_reason_is_logged_once_and_all_losses_are_counted),
        TEST(a_loss_that_cannot_tell_leaves_the_cause_to_the_next),
        TEST(each_reason_has_its_own_cause),
        TEST(a_cause_with_quotes_and_control_characters_survives),
        TEST(a_cause_that_is_too_long_is_cut),
        TEST(threads_that_lose_at_once_leave_one_whole_cause_and_every_count),
        TEST(a_loss_without_room_for_its_record_is_logged_later_with_its_cause),
        TEST(many_names_do_not_wait_for_a_batch),
        TEST(a_name_that_fits_no_line_is_counted_and_holds_no_other_up),
        TEST(names_wait_boundedly_for_a_full_disk_and_are_written_then),
        TEST(a_line_that_is_too_long_is_not_called_a_success_of_the_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
