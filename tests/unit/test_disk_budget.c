/* SPDX-License-Identifier: Apache-2.0 */
/* A session with a size limit, on a disk with a floor of free space. */
#include "recorder_fixture.h"

#include "base/clock.h"
#include "capture/session_frame.h"
#include "logfile/disk_space.h"
#include "logfile/segment_trim.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MIB = 1 << 20 };

/* The simulated disk; 0 blocks: the file system reports nothing. */
static struct {
    pthread_mutex_t mutex;
    uint64_t total_mib, free_mib;
} disk = {.mutex = PTHREAD_MUTEX_INITIALIZER};

int fstatvfs(int fd, struct statvfs *answer)
{
    (void)fd;
    pthread_mutex_lock(&disk.mutex);
    *answer = (struct statvfs){.f_frsize = MIB, .f_blocks = disk.total_mib, .f_bavail = disk.free_mib};
    pthread_mutex_unlock(&disk.mutex);
    return 0;
}

static void disk_set(uint64_t total_mib, uint64_t free_mib)
{
    pthread_mutex_lock(&disk.mutex);
    disk.total_mib = total_mib;
    disk.free_mib = free_mib;
    pthread_mutex_unlock(&disk.mutex);
}

/* Only the sealer calls it, at the end of a segment. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_held;
} sealing = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

int fsync(int fd)
{
    pthread_mutex_lock(&sealing.mutex);
    while (sealing.is_held)
        pthread_cond_wait(&sealing.changed, &sealing.mutex);
    pthread_mutex_unlock(&sealing.mutex);
    return (int)syscall(SYS_fsync, fd);
}

static void sealing_hold(bool is_held)
{
    pthread_mutex_lock(&sealing.mutex);
    sealing.is_held = is_held;
    pthread_cond_broadcast(&sealing.changed);
    pthread_mutex_unlock(&sealing.mutex);
}

/* Seconds by which deadlines of the monotonic clock are later for whoever waits for a condition. */
static _Atomic int64_t grace_s;

int clock_gettime(clockid_t id, struct timespec *now)
{
    int result = (int)syscall(SYS_clock_gettime, id, now);
    now->tv_sec += id == CLOCK_MONOTONIC ? grace_s : 0;
    return result;
}

static int setup(void **state)
{
    disk_set(100000, 100000);
    *state = strdup(fixture_dir());
    return 0;
}

static int teardown(void **state)
{
    fixture_remove(*state);
    free(*state);
    return 0;
}

static bool is_low(uint64_t total_mib, uint64_t free_mib, int64_t wanted_bytes)
{
    struct disk_space space;
    disk_set(total_mib, free_mib);
    disk_space_open(&space, -1, wanted_bytes);
    return disk_space_is_low(&space, 100);
}

static void the_default_floor_is_the_larger_of_a_gibibyte_and_a_twentieth(void **state)
{
    (void)state;
    assert_true(is_low(10000, 1023, DISK_SPACE_DEFAULT));
    assert_false(is_low(10000, 1024, DISK_SPACE_DEFAULT));
    assert_true(is_low(100000, 4999, DISK_SPACE_DEFAULT));
    assert_false(is_low(100000, 5000, DISK_SPACE_DEFAULT));
    assert_true(is_low(64, 64, DISK_SPACE_DEFAULT)); /* a small tmpfs: the floor must be configured */
    assert_false(is_low(64, 64, 8 * MIB));
    assert_true(is_low(64, 7, 8 * MIB));
    assert_false(is_low(64, 0, 0));
    assert_false(is_low(0, 0, DISK_SPACE_DEFAULT)); /* the file system reports nothing */
}

static const char rows[] = "{\"type\":\"overhead\"";
static const char names[] = "{\"type\":\"dictionary_update\",\"kernel_dict\":{\"1\":\"a\"}";

static void recording_is_paused_below_the_floor_and_continues_above_it(void **state)
{
    struct log_writer *writer = NULL;
    const struct log_writer_options options = {
        .base_dir = *state, .session_id = FIXTURE_ID, .min_free_bytes = 10 * MIB};
    struct log_writer_stats stats;
    assert_int_equal(log_writer_open(&writer, &options, NULL), GPUFL_OK);
    disk_set(1000, 5);
    int64_t before_ns = clock_wall_ns();
    assert_int_equal(fixture_line(writer, CHANNEL_DEVICE, RECORD_OVERHEAD, rows), GPUFL_E_IO);
    /* Names and the records that explain a loss are still written. */
    assert_int_equal(fixture_line(writer, CHANNEL_DEVICE, RECORD_DICTIONARY_UPDATE, names), GPUFL_OK);
    assert_int_equal(fixture_line(writer, CHANNEL_SASS, RECORD_JOB_START, "{\"type\":\"job_start\""), GPUFL_OK);
    assert_int_equal(fixture_line(writer, CHANNEL_SASS, RECORD_CODE_OBJECT, "{\"type\":\"code_object\""), GPUFL_E_IO);
    assert_int_equal(fixture_line(writer, CHANNEL_SASS, RECORD_SHUTDOWN, "{\"type\":\"shutdown\""), GPUFL_OK);
    log_writer_stats(writer, &stats);
    assert_true(stats.is_in_trouble);
    assert_int_equal(stats.lost_rows[LOG_LOSS_PAUSE][RECORD_OVERHEAD], 1);
    assert_true(stats.lost_since_ns[LOG_LOSS_PAUSE] >= before_ns);
    disk_set(1000, 20);
    uint64_t lost = 1;
    /* the free space is not checked for every line */
    while (fixture_line(writer, CHANNEL_DEVICE, RECORD_OVERHEAD, rows)) {
        lost++;
        usleep(10000);
    }
    log_writer_stats(writer, &stats);
    assert_false(stats.is_in_trouble);
    assert_int_equal(stats.lost_rows[LOG_LOSS_PAUSE][RECORD_OVERHEAD], lost);
    log_writer_close(writer, 1000);
    struct fixture_seen seen = fixture_see(*state);
    assert_int_equal(seen.summary.rows[RECORD_OVERHEAD], 1);
    assert_int_equal(seen.summary.rows[RECORD_DICTIONARY_UPDATE], 1);
}

/* A batch of kernels that compresses badly. */
static void kernels_write(struct log_writer *writer, uint64_t *seed)
{
    struct batch batch;
    struct bytes line = {0};
    assert_int_equal(batch_init(&batch, RECORD_KERNEL_EVENT_BATCH, 500), GPUFL_OK);
    batch.base_time_ns = 1000000000000 + (int64_t)(*seed % 1000000);
    for (int i = 0; i < 500; i++) {
        int64_t *row = batch_row(&batch);
        for (int column = 1; column < 5; column++) {
            *seed = *seed * 6364136223846793005u + 1442695040888963407u;
            row[column] = (int64_t)(*seed >> 40);
        }
        row[KERNEL_KERNEL_ID] = 1;
    }
    batch_encode(&batch, FIXTURE_ID, "", &line);
    /* Refused while the sealer is behind: try the same batch again. */
    while (log_writer_line(writer, CHANNEL_DEVICE, RECORD_KERNEL_EVENT_BATCH, &line, 500) != GPUFL_OK)
        ;
    batch_free(&batch);
    bytes_free(&line);
}

static uint64_t bytes_on_disk(const char *base)
{
    char command[600];
    uint64_t bytes = 0;
    snprintf(command, sizeof command, "du -sb %s/%s", base, FIXTURE_ID);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_int_equal(fscanf(pipe, "%lu", &bytes), 1);
    pclose(pipe);
    return bytes;
}

enum { batches = 2000 };

/* Returns the number of kernels that the writer accepted. */
static uint64_t session_write(const char *base, uint64_t max_bytes)
{
    struct log_writer *writer = NULL;
    const struct log_writer_options options = {
        .base_dir = base, .session_id = FIXTURE_ID, .seal = true, .max_bytes = max_bytes};
    assert_int_equal(log_writer_open(&writer, &options, NULL), GPUFL_OK);
    fixture_line_all(writer, RECORD_JOB_START, "{\"type\":\"job_start\",\"session_id\":\"" FIXTURE_ID "\"");
    assert_int_equal(fixture_line(writer, CHANNEL_DEVICE, RECORD_DICTIONARY_UPDATE, names), GPUFL_OK);
    uint64_t seed = 7;
    for (int i = 0; i < batches; i++)
        kernels_write(writer, &seed);
    struct log_writer_stats stats;
    log_writer_stats(writer, &stats);
    assert_int_equal(stats.rows[RECORD_KERNEL_EVENT_BATCH], batches * 500);
    char end[200];
    snprintf(end, sizeof end, "{\"type\":\"shutdown\",\"session_id\":\"%s\",\"rows\":{\"kernel_event_batch\":%lu}",
             FIXTURE_ID, stats.rows[RECORD_KERNEL_EVENT_BATCH]);
    fixture_line_all(writer, RECORD_SHUTDOWN, end);
    log_writer_close(writer, 600000);
    return stats.rows[RECORD_KERNEL_EVENT_BATCH];
}

static void rows_that_are_refused_at_the_very_end_are_counted_as_lost(void **state)
{
    enum { end_batches = 400 }; /* several times the limit */
    struct log_writer *writer = NULL;
    struct recorder recorder;
    const struct log_writer_options options = {
        .base_dir = *state, .session_id = FIXTURE_ID, .in_background = true, .seal = true, .max_bytes = 4 * MIB};
    assert_int_equal(log_writer_open(&writer, &options, NULL), GPUFL_OK);
    assert_int_equal(recorder_open(&recorder, writer, FIXTURE_ID, "test"), GPUFL_OK);
    fixture_line_all(writer, RECORD_JOB_START, "{\"type\":\"job_start\",\"session_id\":\"" FIXTURE_ID "\"");
    assert_int_equal(fixture_line(writer, CHANNEL_DEVICE, RECORD_DICTIONARY_UPDATE, names), GPUFL_OK);
    sealing_hold(true);
    uint64_t seed = 7;
    for (int i = 0; i < end_batches; i++)
        kernels_write(writer, &seed);
    log_writer_hurry(writer); /* the sealer does not go on: do not wait for it */
    grace_s = 600;
    session_frame_end(&recorder, clock_log_ns());
    grace_s = 0;
    sealing_hold(false);
    assert_true(recorder_lost_total(&recorder) > 0);
    recorder_close(&recorder);
    log_writer_close(writer, 600000);
    struct verify_report report;
    struct problem problem = {""};
    char dir[512];
    fixture_path(dir, *state, FIXTURE_ID);
    if (verify_session(dir, &report, &problem))
        fail_msg("verify: %s", problem.text);
    for (uint64_t i = 0; i < report.issue_count; i++)
        if (report.issues[i].kind != LOG_ISSUE_LOSS)
            fail_msg("%s: %s", report.issues[i].file, report.issues[i].text);
    assert_true(report.lost_records > 0);
    assert_int_equal(report.summary.rows[RECORD_KERNEL_EVENT_BATCH] + report.lost_records, end_batches * 500);
    verify_report_free(&report);
}

static void a_session_stays_below_its_limit_and_records_what_it_dropped(void **state)
{
    uint64_t taken = session_write(*state, 4 * MIB);
    assert_in_range(bytes_on_disk(*state), MIB / 2, 4 * MIB);
    struct fixture_seen seen = fixture_see(*state);
    uint64_t kept = seen.summary.rows[RECORD_KERNEL_EVENT_BATCH],
             dropped = seen.summary.trimmed_rows[RECORD_KERNEL_EVENT_BATCH];
    assert_true(kept > 0 && dropped > 0);
    assert_int_equal(kept + dropped, taken);
    assert_int_equal(seen.summary.missing_lines, 0);
    assert_int_equal(seen.summary.rows[RECORD_LOSS], 1); /* one trimmed segment */
    assert_int_equal(seen.summary.rows[RECORD_DICTIONARY_UPDATE], 1);
    assert_int_equal(seen.summary.rows[RECORD_JOB_START], 1);
}

static void verify_reports_dropped_segments_as_loss_and_not_as_damage(void **state)
{
    (void)session_write(*state, 4 * MIB);
    struct verify_report report;
    struct problem problem = {""};
    char dir[512];
    fixture_path(dir, *state, FIXTURE_ID);
    if (verify_session(dir, &report, &problem))
        fail_msg("verify: %s", problem.text);
    assert_false(report.is_complete);
    assert_int_equal(report.lost_records, report.summary.trimmed_rows[RECORD_KERNEL_EVENT_BATCH]);
    for (uint64_t i = 0; i < report.issue_count; i++)
        if (report.issues[i].kind != LOG_ISSUE_LOSS)
            fail_msg("%s: %s", report.issues[i].file, report.issues[i].text);
    verify_report_free(&report);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_default_floor_is_the_larger_of_a_gibibyte_and_a_twentieth),
        TEST(recording_is_paused_below_the_floor_and_continues_above_it),
        TEST(rows_that_are_refused_at_the_very_end_are_counted_as_lost),
        TEST(a_session_stays_below_its_limit_and_records_what_it_dropped),
        TEST(verify_reports_dropped_segments_as_loss_and_not_as_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
