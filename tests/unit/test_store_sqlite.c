/* SPDX-License-Identifier: Apache-2.0 */
/* The embedded engine: killed processes, migration, backup, damage, many threads. */
#include "store_fixture.h"

#include "base/clock.h"

#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void database_path(char path[512], const char *dir)
{
    fixture_path(path, dir, "gpufl.db");
}

static void database_run(const char *path, const char *sql)
{
    sqlite3 *db;
    char *message = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s", message);
    sqlite3_close(db);
}

static void count_issue(void *user, const char *text)
{
    (*(unsigned *)user)++;
    (void)text;
}

static unsigned issues_of(struct store *store)
{
    unsigned issues = 0;
    MUST(store_check(store, count_issue, &issues, &problem));
    return issues;
}

static size_t kernels_in(struct store *store, const char *session_id)
{
    struct session_model *model = store_model(store, session_id);
    size_t count = model->kernels.count;
    session_free(model);
    return count;
}

/* ---- a killed process ---- */

enum { KILL_ROUNDS = 12, WINDOW_KERNELS = 40, WINDOWS_MAX = 400 };

/* Writes one window: a batch of kernels and a record, numbered by window. */
static gpufl_status window_write(struct store *store, uint64_t window, struct store_written *written)
{
    struct store_write *write = NULL;
    enum store_delivery answer;
    char window_id[32], text[256];
    struct batch batch;
    struct bytes line = {0};
    snprintf(window_id, sizeof window_id, "w%llu", (unsigned long long)window);
    const struct store_identity identity = {
        .session_id = FIXTURE_ID, .window_id = window_id, .channel = CHANNEL_DEVICE, .crc = 5};
    gpufl_status status = store_write_begin(store, &identity, &write, &answer, NULL);
    *written = (struct store_written){.delivery = answer};
    if (status || answer != STORE_NEW)
        return status;
    assert_int_equal(batch_init(&batch, RECORD_KERNEL_EVENT_BATCH, WINDOW_KERNELS), GPUFL_OK);
    batch.base_time_ns = 1000000 + (int64_t)window * 1000000;
    for (int i = 0; i < WINDOW_KERNELS; i++) {
        int64_t *row = batch_row(&batch);
        row[KERNEL_DT_NS] = i * 1000;
        row[KERNEL_KERNEL_ID] = 1 + i % 3;
        row[KERNEL_DURATION_NS] = 500 + i;
        row[KERNEL_CORR_ID] = (int64_t)window * WINDOW_KERNELS + i;
    }
    batch_encode(&batch, FIXTURE_ID, "", &line);
    bytes_append_char(&line, '}');
    struct delivery delivery = {.store = store, .write = write};
    delivery_line(&delivery, CHANNEL_DEVICE, line.data, line.size);
    int size = snprintf(text, sizeof text, "{\"type\":\"clock_sync\",\"session_id\":\"" FIXTURE_ID "\",\"ts_ns\":%llu}",
                        (unsigned long long)window + 1);
    delivery_line(&delivery, CHANNEL_SYSTEM, text, (size_t)size);
    batch_view_free(&delivery.view);
    batch_free(&batch);
    bytes_free(&line);
    return store_write_commit(write, written, NULL);
}

/* Writes windows and reports over the pipe which ones were acknowledged. */
static void writer_child(const char *dir, uint64_t first, int pipe_fd)
{
    struct store *store = NULL;
    const struct store_options options = {0};
    if (store_open(&store, dir, &options, NULL))
        _exit(1);
    for (uint64_t window = first; window < WINDOWS_MAX; window++) {
        struct store_written written;
        if (window_write(store, window, &written) || write(pipe_fd, &window, sizeof window) != sizeof window)
            _exit(2);
    }
    _exit(0);
}

static void acknowledged_windows_survive_sigkill_at_any_moment(void **state)
{
    uint64_t acknowledged = 0; /* windows below this number */
    unsigned random = 12345;
    for (int round = 0; round < KILL_ROUNDS; round++) {
        int ends[2];
        uint64_t window, until = acknowledged + (random = random * 1103515245 + 12345) / 65536 % 25;
        assert_int_equal(pipe(ends), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (!child)
            writer_child(*state, acknowledged, ends[1]);
        close(ends[1]);
        while (acknowledged < until && read(ends[0], &window, sizeof window) == sizeof window)
            acknowledged = window + 1;
        for (unsigned spin = random % 200000; spin; spin--)
            __asm__ volatile("");
        kill(child, SIGKILL);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
        while (read(ends[0], &window, sizeof window) == sizeof window)
            acknowledged = window + 1;
        close(ends[0]);
        if (!acknowledged)
            continue;
        struct store *store = fixture_store(*state);
        assert_int_equal(issues_of(store), 0);
        size_t kernels = kernels_in(store, FIXTURE_ID);
        assert_true(kernels >= acknowledged * WINDOW_KERNELS);
        assert_int_equal(kernels % WINDOW_KERNELS, 0);
        store_close(store);
    }
    /* Delivered again from the start: every window is stored once. */
    struct store *store = fixture_store(*state);
    uint64_t total = acknowledged + 5;
    for (uint64_t window = 0; window < total; window++) {
        struct store_written written;
        assert_int_equal(window_write(store, window, &written), GPUFL_OK);
        if (window < acknowledged)
            assert_int_equal(written.delivery, STORE_REPEATED);
    }
    MUST(store_maintain(store, &problem));
    assert_int_equal(kernels_in(store, FIXTURE_ID), total * WINDOW_KERNELS);
    assert_int_equal(issues_of(store), 0);
    store_close(store);
}

/* ---- a full disk ---- */

static void a_write_fails_on_a_full_disk_and_succeeds_when_there_is_space(void **state)
{
    struct store *store = fixture_store(*state);
    struct store_written written;
    struct rlimit limit, small;
    char wal[512];
    struct stat info;
    assert_int_equal(window_write(store, 0, &written), GPUFL_OK);
    fixture_path(wal, *state, "gpufl.db-wal");
    assert_int_equal(stat(wal, &info), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    small = limit;
    small.rlim_cur = (rlim_t)info.st_size + 20000; /* in the middle of the next commit */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    gpufl_status status = window_write(store, 1, &written);
    setrlimit(RLIMIT_FSIZE, &limit);
    signal(SIGXFSZ, before);
    assert_int_equal(status, GPUFL_E_IO);
    assert_int_equal(kernels_in(store, FIXTURE_ID), WINDOW_KERNELS);
    assert_int_equal(window_write(store, 1, &written), GPUFL_OK);
    assert_int_equal(written.delivery, STORE_NEW);
    assert_int_equal(kernels_in(store, FIXTURE_ID), 2 * WINDOW_KERNELS);
    assert_int_equal(issues_of(store), 0);
    store_close(store);
}

/* ---- many threads ---- */

struct threaded {
    struct store *store;
    unsigned number;
    pthread_t thread;
    bool has_failed;
};
enum { WRITERS = 4, THREAD_WINDOWS = 40 };

static void *write_windows(void *arg)
{
    struct threaded *threaded = arg;
    for (uint64_t window = 0; window < THREAD_WINDOWS; window++) {
        struct store_written written;
        gpufl_status status;
        /* Two threads try to write each window. */
        while ((status = window_write(threaded->store, window * 2 + threaded->number % 2, &written)) == GPUFL_E_BUSY)
            ;
        threaded->has_failed |= status != GPUFL_OK;
    }
    return NULL;
}

static bool count_rows(void *user, const struct log_line *line)
{
    *(uint64_t *)user += line->batch ? line->batch->row_count : 0;
    return true;
}

static void many_threads_write_and_read_at_once(void **state)
{
    struct store *store = NULL;
    struct threaded writers[WRITERS] = {{0}};
    MUST(store_open(&store, *state, NULL, &problem)); /* with the background thread */
    struct store_written written;
    assert_int_equal(window_write(store, 1000, &written), GPUFL_OK);
    for (unsigned i = 0; i < WRITERS; i++) {
        writers[i] = (struct threaded){.store = store, .number = i};
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_windows, &writers[i]), 0);
    }
    uint64_t before = 0;
    for (int i = 0; i < 50; i++) {
        uint64_t rows = 0;
        const struct store_range range = {.session_id = FIXTURE_ID};
        MUST(store_read(store, &range, count_rows, &rows, &problem));
        assert_true(rows >= before);
        assert_int_equal(rows % WINDOW_KERNELS, 0);
        before = rows;
    }
    for (unsigned i = 0; i < WRITERS; i++) {
        pthread_join(writers[i].thread, NULL);
        assert_false(writers[i].has_failed);
    }
    MUST(store_maintain(store, &problem));
    assert_int_equal(kernels_in(store, FIXTURE_ID), (THREAD_WINDOWS * 2 + 1) * WINDOW_KERNELS);
    assert_int_equal(issues_of(store), 0);
    store_close(store);
}

/* ---- compaction ---- */

static void small_deliveries_become_few_segments(void **state)
{
    struct store *store = fixture_store(*state);
    struct store_stats before, after;
    struct store_written written;
    for (uint64_t window = 0; window < 100; window++)
        assert_int_equal(window_write(store, window, &written), GPUFL_OK);
    MUST(store_stats(store, &before, &problem));
    assert_int_equal(before.segments, 200);
    MUST(store_maintain(store, &problem));
    MUST(store_stats(store, &after, &problem));
    assert_int_equal(after.rows, before.rows);
    assert_true(after.segments < 64);
    assert_true(after.segment_bytes < before.segment_bytes);
    /* A few more stay as they are until the session is complete. */
    for (uint64_t window = 100; window < 103; window++)
        assert_int_equal(window_write(store, window, &written), GPUFL_OK);
    MUST(store_maintain(store, &problem));
    MUST(store_stats(store, &before, &problem));
    assert_int_equal(before.segments, after.segments + 6);
    MUST(store_session_end(store, FIXTURE_ID, &problem));
    MUST(store_maintain(store, &problem));
    MUST(store_stats(store, &after, &problem));
    assert_int_equal(after.segments, 2);
    assert_int_equal(kernels_in(store, FIXTURE_ID), 103 * WINDOW_KERNELS);
    assert_int_equal(issues_of(store), 0);
    store_close(store);
}

static void freed_space_is_returned_to_the_file_system(void **state)
{
    struct store *store = fixture_store(*state);
    struct store_stats before, after;
    deliver_session(store, SOURCE_DIR "/examples/recorded/h200-training", 200, true);
    store_close(store); /* merges the write-ahead log into the database */
    store = fixture_store(*state);
    MUST(store_stats(store, &before, &problem));
    const struct store_retention policy = {.age_ns = 1, .now_ns = clock_wall_ns() + 1000000};
    struct store_retained retained;
    MUST(store_retain(store, &policy, &retained, &problem));
    assert_int_equal(retained.sessions_deleted, 1);
    MUST(store_maintain(store, &problem));
    store_close(store);
    store = fixture_store(*state);
    MUST(store_stats(store, &after, &problem));
    assert_true(after.bytes < before.bytes / 2);
    assert_int_equal(after.free_bytes, 0);
    store_close(store);
}

/* ---- deduplication of deliveries ---- */

/* Writes a window of one record; number < 0: its line has no number. */
static struct store_written record_write(struct store *store, const char *window_id, int64_t number)
{
    static const char text[] = "{\"type\":\"clock_sync\",\"session_id\":\"" FIXTURE_ID "\",\"ts_ns\":9}";
    struct store_write *write = NULL;
    struct store_written written = {0};
    struct batch_view view = {0};
    struct json_document document = {0};
    struct log_line line = {.channel = CHANNEL_SYSTEM, .file = ""};
    char reason[LINE_REASON_SIZE];
    const struct store_identity identity = {
        .session_id = FIXTURE_ID, .window_id = window_id, .channel = CHANNEL_SYSTEM, .crc = 5};
    MUST(store_write_begin(store, &identity, &write, &written.delivery, &problem));
    if (written.delivery != STORE_NEW)
        return written;
    assert_false(log_line_decode(&line, &view, &document, text, sizeof text - 1, reason));
    line.seq = number;
    MUST(store_write_line(write, &line, text, sizeof text - 1, NULL, &problem));
    MUST(store_write_commit(write, &written, &problem));
    json_free(&document);
    batch_view_free(&view);
    return written;
}

static int64_t database_integer(const char *path, const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return value;
}

static void deliveries_are_forgotten_when_line_numbers_identify_their_lines(void **state)
{
    enum { OLD = 200, ALL = 300 };
    char path[512], window_id[32];
    database_path(path, *state);
    struct store *store = fixture_store(*state);
    assert_int_equal(record_write(store, "bare", -1).lines, 1);
    for (int i = 0; i < ALL; i++) {
        if (i == OLD) {
            store_close(store);
            assert_int_equal(database_integer(path, "SELECT COUNT(*) FROM delivery"), OLD + 1);
            database_run(path, "UPDATE delivery SET numbered_ns=numbered_ns-3600000000000");
            store = fixture_store(*state);
        }
        snprintf(window_id, sizeof window_id, "w%d", i);
        assert_int_equal(record_write(store, window_id, i).lines, 1);
    }
    assert_int_equal(record_write(store, "w299", 299).delivery, STORE_REPEATED);
    assert_int_equal(record_write(store, "bare", -1).delivery, STORE_REPEATED);
    store_close(store);
    assert_int_equal(database_integer(path, "SELECT COUNT(*) FROM delivery"), ALL - OLD + 1);
    /* A delivery that was forgotten and is repeated still adds nothing. */
    store = fixture_store(*state);
    struct store_written again = record_write(store, "w7", 7);
    assert_int_equal(again.delivery, STORE_NEW);
    assert_int_equal(again.lines, 0);
    assert_int_equal(again.repeated_lines, 1);
    assert_int_equal(issues_of(store), 0);
    store_close(store);
    assert_int_equal(database_integer(path, "SELECT lines FROM session"), ALL + 1);
}

/* ---- backup, migration, opening ---- */

static void a_backup_opens_as_a_store_with_the_same_content(void **state)
{
    char dir[512], copy_dir[512], copy[1024];
    struct store *store = fixture_store(*state);
    golden_path(dir, "trace");
    struct delivery delivery = deliver_session(store, dir, 3, true);
    fixture_path(copy_dir, *state, "restored");
    assert_int_equal(mkdir(copy_dir, 0700), 0);
    snprintf(copy, sizeof copy, "%s/gpufl.db", copy_dir);
    MUST(store_backup(store, copy, &problem));
    struct problem problem = {""};
    assert_int_equal(store_backup(store, copy, &problem), GPUFL_E_INVALID);
    assert_int_equal(store_backup(store, "/no/such/directory/x.db", &problem), GPUFL_E_IO);
    struct store *restored = fixture_store(copy_dir);
    assert_int_equal(kernels_in(restored, delivery.session_id), kernels_in(store, delivery.session_id));
    assert_int_equal(issues_of(restored), 0);
    /* The copy continues where the original was. */
    struct delivery again = deliver_session(restored, dir, 5, false);
    assert_int_equal(again.lines, 0);
    store_close(restored);
    store_close(store);
}

static bool take_key(void *user, const struct store_key *key)
{
    *(struct store_key *)user = *key;
    return true;
}

static void a_database_of_schema_1_is_migrated(void **state)
{
    char path[512], dir[512];
    size_t size;
    struct store_stats stats;
    struct store_key key = {0};
    char *script = fixture_read(SOURCE_DIR "/tests/golden", "store_v1.sql", &size);
    database_path(path, *state);
    database_run(path, script);
    free(script);
    struct store *store = NULL;
    const struct store_options read_only = {.is_read_only = true};
    struct problem problem = {""};
    assert_int_equal(store_open(&store, *state, &read_only, &problem), GPUFL_E_VERSION);
    store = fixture_store(*state);
    MUST(store_stats(store, &stats, &problem));
    assert_int_equal(stats.schema_version, 5);
    assert_int_equal(stats.sessions, 1);
    MUST(store_keys(store, take_key, &key, &problem));
    assert_string_equal(key.name, "ci");
    assert_int_equal(key.rate_per_s, CELL_UNKNOWN);
    golden_path(dir, "trace");
    struct session_model *expected;
    MUST(session_load(&expected, dir, &problem));
    assert_int_equal(kernels_in(store, expected->job.session_id), expected->kernels.count);
    struct delivery again = deliver_session(store, dir, 4, false);
    assert_int_equal(again.lines, 0);
    assert_int_equal(issues_of(store), 0);
    session_free(expected);
    store_close(store);
}

static void opening_a_store_that_cannot_be_opened_fails_with_the_reason(void **state)
{
    char path[512];
    struct store *store = NULL, *second = NULL;
    struct problem problem = {""};
    const struct store_options read_only = {.is_read_only = true};
    assert_int_equal(store_open(&store, *state, &read_only, &problem), GPUFL_E_NOT_FOUND);
    assert_int_equal(store_open(&store, "", NULL, &problem), GPUFL_E_INVALID);
    assert_int_equal(store_open(&store, "oracle://host", NULL, &problem), GPUFL_E_UNSUPPORTED);
    store = fixture_store(*state);
    assert_int_equal(store_open(&second, *state, NULL, &problem), GPUFL_E_BUSY);
    assert_non_null(strstr(problem.text, "in use"));
    MUST(store_open(&second, *state, &read_only, &problem)); /* a tool beside the server */
    struct store_identity identity = {.session_id = "s"};
    struct store_write *write;
    enum store_delivery answer;
    assert_int_equal(store_write_begin(second, &identity, &write, &answer, &problem), GPUFL_E_PERMISSION);
    assert_int_equal(store_session_delete(second, "s", &problem), GPUFL_E_PERMISSION);
    store_close(second);
    store_close(store);
    database_path(path, *state);
    database_run(path, "PRAGMA user_version=99");
    assert_int_equal(store_open(&store, *state, NULL, &problem), GPUFL_E_VERSION);
    database_run(path, "PRAGMA application_id=7");
    assert_int_equal(store_open(&store, *state, NULL, &problem), GPUFL_E_DAMAGED);
    fixture_write(*state, "gpufl.db", "this is not a database at all, it is some text", 46);
    assert_int_equal(store_open(&store, *state, NULL, &problem), GPUFL_E_DAMAGED);
}

static void a_damaged_segment_is_found_and_the_others_stay_readable(void **state)
{
    char path[512], dir[512];
    struct store *store = fixture_store(*state);
    golden_path(dir, "trace");
    struct delivery delivery = deliver_session(store, dir, 1000, true);
    store_close(store);
    database_path(path, *state);
    database_run(path, "UPDATE segment SET data=substr(data, 1, length(data) - 9) || x'000102030405060708' WHERE"
                       " segment=(SELECT segment FROM segment JOIN record_type USING(type) WHERE"
                       " name='kernel_event_batch' LIMIT 1)");
    store = fixture_store(*state);
    assert_true(issues_of(store) > 0);
    struct problem problem = {""};
    uint64_t rows = 0;
    struct store_range range = {.session_id = delivery.session_id};
    assert_int_equal(store_read(store, &range, count_rows, &rows, &problem), GPUFL_E_DAMAGED);
    assert_non_null(strstr(problem.text, "kernel_event_batch"));
    record_set_add(&range.types, RECORD_SCOPE_EVENT_BATCH);
    MUST(store_read(store, &range, count_rows, &rows, &problem));
    struct store_written written;
    assert_int_equal(window_write(store, 1, &written), GPUFL_OK);
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        TEST(acknowledged_windows_survive_sigkill_at_any_moment),
        TEST(a_write_fails_on_a_full_disk_and_succeeds_when_there_is_space),
        TEST(many_threads_write_and_read_at_once),
        TEST(small_deliveries_become_few_segments),
        TEST(deliveries_are_forgotten_when_line_numbers_identify_their_lines),
        TEST(freed_space_is_returned_to_the_file_system),
        TEST(a_backup_opens_as_a_store_with_the_same_content),
        TEST(a_database_of_schema_1_is_migrated),
        TEST(opening_a_store_that_cannot_be_opened_fails_with_the_reason),
        TEST(a_damaged_segment_is_found_and_the_others_stay_readable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
