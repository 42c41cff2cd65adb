/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that writes the log, on a disk that a test blocks, fills and releases. */
#include "session_fixture.h"

#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum disk { DISK_GOOD, DISK_STUCK, DISK_FULL };

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    enum disk disk;
    int stuck; /* threads blocked in writev */
} world = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* The writer's system call. */
ssize_t writev(int fd, const struct iovec *parts, int count)
{
    pthread_mutex_lock(&world.mutex);
    world.stuck++;
    pthread_cond_broadcast(&world.changed);
    while (world.disk == DISK_STUCK)
        pthread_cond_wait(&world.changed, &world.mutex);
    world.stuck--;
    bool is_full = world.disk == DISK_FULL;
    pthread_mutex_unlock(&world.mutex);
    if (!is_full)
        return (ssize_t)syscall(SYS_writev, fd, parts, count);
    errno = ENOSPC;
    return -1;
}

static void disk_set(enum disk disk)
{
    pthread_mutex_lock(&world.mutex);
    world.disk = disk;
    pthread_cond_broadcast(&world.changed);
    pthread_mutex_unlock(&world.mutex);
}

static void wait_until_stuck(void)
{
    pthread_mutex_lock(&world.mutex);
    while (!world.stuck)
        pthread_cond_wait(&world.changed, &world.mutex);
    pthread_mutex_unlock(&world.mutex);
}

static struct log_writer *open_writer(const char *base, size_t queue_bytes)
{
    struct log_writer *writer = NULL;
    struct problem problem = {""};
    const struct log_writer_options options = {
        .base_dir = base, .session_id = FIXTURE_ID, .in_background = true, .queue_bytes = queue_bytes};
    if (log_writer_open(&writer, &options, &problem))
        fail_msg("log_writer_open: %s", problem.text);
    return writer;
}

static int setup(void **state)
{
    disk_set(DISK_GOOD);
    *state = strdup(fixture_dir());
    return 0;
}

static int teardown(void **state)
{
    fixture_remove(*state);
    free(*state);
    return 0;
}

static const char names[] = "{\"type\":\"dictionary_update\",\"kernel_dict\":{\"1\":\"a\"}";
static const char rows[] = "{\"type\":\"overhead\"";

static void settle(struct log_writer *writer)
{
    assert_true(log_writer_settle(writer, 600000));
}

static uint64_t lines_of(const char *base)
{
    return fixture_see(base).summary.lines;
}

static void lines_wait_in_memory_for_a_stuck_disk_and_are_written_in_order(void **state)
{
    struct log_writer *writer = open_writer(*state, 0);
    disk_set(DISK_STUCK);
    for (int i = 0; i < 500; i++)
        assert_int_equal(fixture_line(writer, i % 2 ? CHANNEL_DEVICE : CHANNEL_SYSTEM, RECORD_OVERHEAD, rows),
                         GPUFL_OK);
    wait_until_stuck();
    assert_false(log_writer_settle(writer, 0));
    disk_set(DISK_GOOD);
    settle(writer);
    struct fixture_seen seen = fixture_see(*state);
    assert_int_equal(seen.summary.lines, 500);
    assert_int_equal(seen.summary.missing_lines, 0);
    log_writer_close(writer, 600000);
}

static void a_full_queue_drops_rows_but_no_names(void **state)
{
    struct log_writer *writer = open_writer(*state, 4096);
    disk_set(DISK_STUCK);
    int accepted = 0, refused = 0;
    for (int i = 0; i < 500; i++)
        *(fixture_line(writer, CHANNEL_DEVICE, RECORD_KERNEL_EVENT_BATCH, rows) ? &refused : &accepted) += 1;
    assert_int_equal(fixture_line(writer, CHANNEL_DEVICE, RECORD_DICTIONARY_UPDATE, names), GPUFL_OK);
    assert_int_equal(fixture_line(writer, CHANNEL_DEVICE, RECORD_MEMCPY_EVENT_BATCH, rows), GPUFL_E_IO);
    struct log_writer_stats stats;
    log_writer_stats(writer, &stats);
    assert_true(accepted > 10 && refused > 10);
    assert_int_equal(stats.lost_rows[LOG_LOSS_QUEUE][RECORD_KERNEL_EVENT_BATCH], refused);
    assert_int_equal(stats.lost_rows[LOG_LOSS_QUEUE][RECORD_MEMCPY_EVENT_BATCH], 1);
    assert_int_equal(stats.rows[RECORD_KERNEL_EVENT_BATCH], accepted);
    assert_true(stats.is_in_trouble && stats.queue_bytes < 8192);
    assert_true(stats.lost_since_ns[LOG_LOSS_QUEUE] > 0);
    assert_true(stats.lost_until_ns[LOG_LOSS_QUEUE] >= stats.lost_since_ns[LOG_LOSS_QUEUE]);
    assert_int_equal(stats.lost_since_ns[LOG_LOSS_DISK], 0);
    disk_set(DISK_GOOD);
    settle(writer);
    log_writer_stats(writer, &stats);
    assert_false(stats.is_in_trouble);
    assert_int_equal(stats.queue_bytes, 0);
    assert_int_equal(lines_of(*state), accepted + 1);
    log_writer_close(writer, 600000);
}

static void the_time_span_of_losses_restarts_once_they_are_reported(void **state)
{
    struct log_writer *writer = open_writer(*state, 1);
    struct log_writer_stats stats;
    disk_set(DISK_STUCK);
    assert_int_equal(fixture_line(writer, CHANNEL_DEVICE, RECORD_OVERHEAD, rows), GPUFL_OK);
    assert_int_equal(fixture_line(writer, CHANNEL_DEVICE, RECORD_OVERHEAD, rows), GPUFL_E_IO);
    log_writer_loss_reported(writer);
    log_writer_stats(writer, &stats);
    assert_int_equal(stats.lost_since_ns[LOG_LOSS_QUEUE], 0);
    int64_t now_ns = clock_wall_ns();
    assert_int_equal(fixture_line(writer, CHANNEL_DEVICE, RECORD_OVERHEAD, rows), GPUFL_E_IO);
    log_writer_stats(writer, &stats);
    assert_true(stats.lost_since_ns[LOG_LOSS_QUEUE] >= now_ns);
    disk_set(DISK_GOOD);
    log_writer_close(writer, 600000);
}

/* Waits until the session's lock is free: then the writer is freed. */
static void wait_for_the_writers_end(const char *base)
{
    while (fixture_see(base).summary.is_live)
        usleep(1000);
}

static void closing_does_not_wait_for_a_stuck_disk_and_nothing_is_lost_if_it_recovers(void **state)
{
    struct log_writer *writer = open_writer(*state, 0);
    disk_set(DISK_STUCK);
    for (int i = 0; i < 100; i++)
        assert_int_equal(fixture_line(writer, CHANNEL_DEVICE, RECORD_OVERHEAD, rows), GPUFL_OK);
    wait_until_stuck();
    log_writer_close(writer, 0); /* returns although the disk does not */
    assert_int_equal(lines_of(*state), 0);
    disk_set(DISK_GOOD);
    wait_for_the_writers_end(*state);
    assert_int_equal(lines_of(*state), 100);
}

static void records_that_later_lines_refer_to_are_written_when_a_full_disk_has_space(void **state)
{
    struct log_writer *writer = open_writer(*state, 0);
    struct log_writer_stats stats;
    assert_int_equal(fixture_line(writer, CHANNEL_DEVICE, RECORD_OVERHEAD, rows), GPUFL_OK);
    settle(writer);
    disk_set(DISK_FULL);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(fixture_line(writer, CHANNEL_DEVICE, RECORD_OVERHEAD, rows), GPUFL_OK);
        assert_int_equal(fixture_line(writer, CHANNEL_DEVICE, RECORD_DICTIONARY_UPDATE, names), GPUFL_OK);
    }
    settle(writer);
    log_writer_stats(writer, &stats);
    assert_true(stats.is_in_trouble);
    assert_int_equal(stats.lost_rows[LOG_LOSS_DISK][RECORD_OVERHEAD], 10);
    assert_int_equal(log_writer_lost(&stats, RECORD_DICTIONARY_UPDATE), 0);
    assert_int_equal(stats.rows[RECORD_OVERHEAD], 1);
    disk_set(DISK_GOOD);
    do { /* no further line is needed */
        usleep(1000);
        log_writer_stats(writer, &stats);
    } while (stats.is_in_trouble || stats.queue_bytes);
    assert_int_equal(fixture_line(writer, CHANNEL_DEVICE, RECORD_OVERHEAD, rows), GPUFL_OK);
    log_writer_close(writer, 600000);
    struct fixture_seen seen = fixture_see(*state);
    assert_int_equal(seen.summary.rows[RECORD_DICTIONARY_UPDATE], 10);
    assert_int_equal(seen.summary.rows[RECORD_OVERHEAD], 2);
    assert_int_equal(seen.summary.missing_lines, 10);
    assert_int_equal(seen.issues[LOG_ISSUE_DUPLICATE_LINE], 0);
}

static void rows_wait_for_a_descriptor_and_are_written_in_order(void **state)
{
    struct log_writer *writer = open_writer(*state, 4096);
    struct log_writer_stats stats;
    struct rlimit usual, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    none = usual;
    none.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    uint64_t accepted = 0, refused = 0;
    for (int i = 0; i < 500; i++)
        *(fixture_line(writer, CHANNEL_DEVICE, RECORD_OVERHEAD, rows) ? &refused : &accepted) += 1;
    assert_int_equal(fixture_line(writer, CHANNEL_DEVICE, RECORD_DICTIONARY_UPDATE, names), GPUFL_OK);
    settle(writer);
    log_writer_stats(writer, &stats);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
    assert_true(stats.is_in_trouble && stats.queue_bytes > 0);
    assert_true(accepted > 10 && refused > 10); /* the memory for them has a limit */
    assert_int_equal(stats.lost_rows[LOG_LOSS_QUEUE][RECORD_OVERHEAD], refused);
    assert_int_equal(stats.lost_rows[LOG_LOSS_DISK][RECORD_OVERHEAD], 0);
    log_writer_close(writer, 600000);
    struct fixture_seen seen = fixture_see(*state);
    assert_int_equal(seen.summary.rows[RECORD_OVERHEAD], accepted);
    assert_int_equal(seen.summary.rows[RECORD_DICTIONARY_UPDATE], 1);
    assert_int_equal(seen.summary.missing_lines, refused);
}

static void the_end_of_a_session_is_written_when_only_short_lines_still_fit(void **state)
{
    struct log_writer *writer = open_writer(*state, 0);
    disk_set(DISK_FULL);
    assert_int_equal(fixture_line(writer, CHANNEL_DEVICE, RECORD_DICTIONARY_UPDATE, names), GPUFL_OK);
    assert_int_equal(fixture_line(writer, CHANNEL_DEVICE, RECORD_SHUTDOWN, "{\"type\":\"shutdown\""), GPUFL_OK);
    settle(writer);
    disk_set(DISK_GOOD);
    log_writer_close(writer, 600000);
    assert_true(fixture_see(*state).summary.has_shutdown);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lines_wait_in_memory_for_a_stuck_disk_and_are_written_in_order),
        TEST(a_full_queue_drops_rows_but_no_names),
        TEST(the_time_span_of_losses_restarts_once_they_are_reported),
        TEST(closing_does_not_wait_for_a_stuck_disk_and_nothing_is_lost_if_it_recovers),
        TEST(records_that_later_lines_refer_to_are_written_when_a_full_disk_has_space),
        TEST(rows_wait_for_a_descriptor_and_are_written_in_order),
        TEST(the_end_of_a_session_is_written_when_only_short_lines_still_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
