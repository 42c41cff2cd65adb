/* SPDX-License-Identifier: Apache-2.0 */
/* Tests for ClickHouse stores only; tests/e2e/test_clickhouse.py runs them against a server. */
#include "catalog_fixture.h"

#include "base/clock.h"
#include "store/clickhouse_store.h"

#include <time.h>

static struct store *clickhouse_store(const char *dir)
{
    const char *url = getenv("GPUFL_TEST_STORE");
    if (!url || !*url)
        skip(); /* no server here: the end-to-end test has one and must not be skipped in CI */
    return fixture_store(dir);
}

static uint64_t count_in(struct store *store, const char *from)
{
    struct bytes sql = {0};
    struct ch_rows rows = {0};
    bytes_append_format(&sql, "SELECT toUInt64(count()) FROM %s", from);
    MUST(ch_select(ch_store_of(store)->client, &sql, &rows, &problem));
    assert_true(ch_rows_next(&rows));
    uint64_t count = ch_u64(&rows);
    ch_rows_free(&rows);
    bytes_free(&sql);
    return count;
}

static uint64_t commits_of(struct store *store, const char *session_id)
{
    char from[128];
    snprintf(from, sizeof from, "write WHERE state = 1 AND session_id = '%s'", session_id);
    return count_in(store, from);
}

/* Inserts rows that no sender could produce during a test. */
static void insert(struct store *store, const char *text)
{
    char settings[CH_NAME_MAX + 16];
    struct bytes sql = {0};
    snprintf(settings, sizeof settings, "database=%s", ch_store_of(store)->database);
    bytes_append_format(&sql, "INSERT INTO %s", text);
    MUST(ch_run(ch_store_of(store)->client, bytes_text(&sql), settings, &problem));
    bytes_free(&sql);
}

/* ClickHouse deletes rows in the background. */
static void await_none(struct store *store, const char *from)
{
    for (int tries = 0; tries < 6000 && count_in(store, from); tries++)
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    assert_int_equal(count_in(store, from), 0);
}

static void rows_that_clickhouse_did_not_delete_are_deleted_later(void **state)
{
    static const char *const ids[] = {"gone", "again", "kept"};
    static const char of_gone[] = "segment WHERE session_id = 'gone'",
                      of_again[] = "segment WHERE session_id = 'again'",
                      of_kept[] = "segment WHERE session_id = 'kept'";
    struct store *store = clickhouse_store(*state);
    struct store_retained retained;
    struct seen seen = {.count = 0};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        session_add(store, ids[i], "app", "node", 1000, true);
    uint64_t segments = count_in(store, of_gone);
    assert_true(segments > 0);
    /* Deleted, according to the catalog. */
    insert(store,
           "change (session_id, generation, what, at_ns, tags, retention_ns) SELECT session_id,"
           " toUInt32(max(generation) + 1), toUInt8(4), max(received_ns) + 1, emptyArrayString(),"
           " toInt64(-9223372036854775808) FROM write WHERE session_id IN ('gone', 'again') GROUP BY session_id");
    session_add(store, "again", "app", "node", 1000, true);
    assert_int_equal(count_in(store, of_again), 2 * segments);
    MUST(store_session(store, "again", see, &seen, &problem));
    struct store_retention policy = {.now_ns = seen.last.received_ns};
    MUST(store_retain(store, &policy, &retained, &problem));
    assert_int_equal(count_in(store, of_gone), segments);
    policy.now_ns += INT64_C(2) * 86400 * 1000000000;
    MUST(store_retain(store, &policy, &retained, &problem));
    await_none(store, of_gone);
    assert_int_equal(count_in(store, of_again), 2 * segments); /* it is unknown whose clock is right */
    assert_int_equal(count_in(store, of_kept), segments);
    assert_int_equal(retained.sessions_deleted, 0);
    store_close(store);
}

static void more_sessions_than_fit_one_statement_are_deleted(void **state)
{
/* A statement may have 50,000 elements by default. */
#define MANY_IDS "concat('many-', toString(number)) FROM numbers(60000)"
    struct store *store = clickhouse_store(*state);
    struct store_retained retained;
    const int64_t day_ns = INT64_C(86400000000000);
    session_add(store, "kept", "app", "node", 1000, true);
    MUST(store_session_keep(store, "kept", STORE_KEEP_FOREVER, &problem));
    insert(store, "write (state, write_id, received_ns, lines, session_id) SELECT 1, number, 1000, 1, " MANY_IDS);
    insert(store, "segment (write_id, received_ns, session_id) SELECT number, 1000, " MANY_IDS);
    const struct store_retention policy = {.age_ns = 7 * day_ns, .now_ns = clock_wall_ns()};
    MUST(store_retain(store, &policy, &retained, &problem));
    assert_int_equal(retained.sessions_deleted, 60000);
    await_none(store, "segment WHERE session_id LIKE 'many%'");
    assert_true(count_in(store, "segment WHERE session_id = 'kept'") > 0);
    store_close(store);
}

static void clickhouse_deletes_commit_rows_when_the_sums_of_metrics_are_gone(void **state)
{
    struct store *store = clickhouse_store(*state);
    struct store_retained retained;
    struct seen seen = {.count = 0};
    const int64_t day_ns = INT64_C(86400000000000);
    session_add(store, "gone", "app", "node", 1000, true);
    session_add(store, "again", "app", "node", 1000, true);
    session_add(store, "kept", "app", "node", 1000, true);
    MUST(store_session_keep(store, "kept", STORE_KEEP_FOREVER, &problem));
    MUST(store_session(store, "gone", see, &seen, &problem));
    uint64_t commits = commits_of(store, "gone");
    assert_true(commits > 0);
    MUST(store_session_delete(store, "gone", &problem));
    MUST(store_session_delete(store, "again", &problem));
    session_add(store, "again", "app", "node", 1000, true);
    MUST(store_session_keep(store, "again", STORE_KEEP_FOREVER, &problem));
    struct store_retention policy = {.age_ns = 7 * day_ns, .now_ns = seen.last.received_ns + 7 * day_ns};
    MUST(store_retain(store, &policy, &retained, &problem));
    policy.now_ns += 400 * day_ns;
    assert_int_equal(commits_of(store, "gone"), commits);
    MUST(store_retain(store, &policy, &retained, &problem));
    for (int tries = 0; tries < 6000 && (commits_of(store, "gone") || commits_of(store, "again") != commits); tries++)
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    assert_int_equal(commits_of(store, "gone"), 0);
    assert_int_equal(commits_of(store, "again"), commits);
    assert_int_equal(commits_of(store, "kept"), commits);
    MUST(store_session(store, "again", see, &seen, &problem));
    store_close(store);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(rows_that_clickhouse_did_not_delete_are_deleted_later),
        TEST(more_sessions_than_fit_one_statement_are_deleted),
        TEST(clickhouse_deletes_commit_rows_when_the_sums_of_metrics_are_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
