/* SPDX-License-Identifier: Apache-2.0 */
/* The sender chooses the columns of a batch: sending many different sets of columns does not affect other sessions. */
#include "store_fixture.h"

#include <sqlite3.h>

enum { SETS = 300, LAYOUTS_MOST = 100, LAYOUTS_MANY = 5000, DURATION_NS = 7 };

static void database_run(const char *dir, const char *sql)
{
    sqlite3 *db;
    char path[512], *message = NULL;
    fixture_path(path, dir, "gpufl.db");
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s", message);
    sqlite3_close(db);
}

static int64_t layouts_in(const char *dir)
{
    sqlite3 *db;
    sqlite3_stmt *statement;
    char path[512];
    fixture_path(path, dir, "gpufl.db");
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT COUNT(*) FROM layout", -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int64_t count = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return count;
}

/* The columns of the kernel batch in set n, besides its time. */
static bool set_has(unsigned set, unsigned column)
{
    if (column == KERNEL_DURATION_NS)
        return set % 2;
    return column == KERNEL_DT_NS || column == KERNEL_CORR_ID ||
           (column > KERNEL_CORR_ID && set >> (column - KERNEL_CORR_ID - 1) & 1);
}

/* Writes one kernel with the columns of the set; their values are 1, and the correlation id is the set's number. */
static void set_write(struct store *store, const char *session_id, unsigned set)
{
    const struct record_info *info = &record_catalogue[RECORD_KERNEL_EVENT_BATCH];
    struct delivery delivery = {.store = store, .has_identity = true, .windows = set};
    struct bytes line = {0}, cells = {0};
    snprintf(delivery.session_id, sizeof delivery.session_id, "%s", session_id);
    delivery_begin(&delivery, CHANNEL_DEVICE);
    bytes_append_format(&line,
                        "{\"version\":1,\"type\":\"kernel_event_batch\",\"session_id\":\"%s\",\"batch_id\":%u,"
                        "\"base_time_ns\":1000000,\"columns\":[",
                        session_id, set);
    for (unsigned i = 0; i < info->column_count; i++) {
        if (!set_has(set, i))
            continue;
        bytes_append_format(&line, "%s\"%s\"", cells.size ? "," : "", info->columns[i].name);
        bytes_append_format(&cells, "%s%u", cells.size ? "," : "",
                            i == KERNEL_CORR_ID       ? set
                            : i == KERNEL_DURATION_NS ? DURATION_NS
                                                      : 1);
    }
    bytes_append_format(&line, "],\"rows\":[[%.*s]]}", (int)cells.size, cells.data);
    delivery_line(&delivery, CHANNEL_DEVICE, line.data, line.size);
    delivery_commit(&delivery);
    assert_int_equal(delivery.lines, 1);
    batch_view_free(&delivery.view);
    bytes_free(&line);
    bytes_free(&cells);
}

/* Cells come back as they were sent; those not sent are unknown. */
static bool expect_cells(void *user, const struct log_line *line)
{
    const struct batch_view *view = line->batch;
    for (uint32_t row = 0; row < view->row_count; row++) {
        unsigned set = (unsigned)view->columns[KERNEL_CORR_ID].cells[row];
        for (unsigned i = 0; i < view->info->column_count; i++) {
            const struct batch_column *column = &view->columns[i];
            int64_t value = column->present ? column->cells[row] : CELL_UNKNOWN;
            if (i == KERNEL_CORR_ID || i == KERNEL_DT_NS)
                continue;
            assert_int_equal(value, !set_has(set, i) ? CELL_UNKNOWN : i == KERNEL_DURATION_NS ? DURATION_NS : 1);
        }
        ++*(unsigned *)user;
    }
    return true;
}

static bool count_rows(void *user, const struct log_line *line)
{
    *(uint64_t *)user += line->batch->row_count;
    return true;
}

static unsigned rows_of(struct store *store, const char *session_id, int64_t from_ns, int64_t to_ns)
{
    const struct store_range range = {.session_id = session_id, .from_ns = from_ns, .to_ns = to_ns};
    unsigned rows = 0;
    MUST(store_read(store, &range, expect_cells, &rows, &problem));
    return rows;
}

static void few_sets_of_columns_are_stored_and_no_cell_is_lost(void **state)
{
    struct store *store = fixture_store(*state);
    char name[32];
    for (unsigned set = 0; set < SETS; set++) {
        set_write(store, "many", set);
        snprintf(name, sizeof name, "s%u", set / 2); /* merging changes their sets of columns */
        set_write(store, name, set * 7 % SETS);
    }
    assert_true(layouts_in(*state) <= LAYOUTS_MOST);
    assert_int_equal(rows_of(store, "many", 0, 0), SETS);
    assert_int_equal(rows_of(store, "many", 1, INT64_MAX), SETS);
    for (unsigned set = 0; set < SETS; set += 2) {
        snprintf(name, sizeof name, "s%u", set / 2);
        MUST(store_session_end(store, name, &problem));
    }
    MUST(store_session_end(store, "many", &problem));
    MUST(store_maintain(store, &problem));
    assert_true(layouts_in(*state) <= LAYOUTS_MOST);
    assert_int_equal(rows_of(store, "many", 0, 0), SETS);
    assert_int_equal(rows_of(store, "s7", 0, 0), 2);
    store_close(store);
}

/* Layouts of a database that predates the limit: each has a different column that no longer exists. */
static void a_database_of_thousands_of_layouts_stays_readable(void **state)
{
    struct store *store = fixture_store(*state);
    char sql[1024];
    set_write(store, "many", 5);
    store_close(store);
    snprintf(sql, sizeof sql,
             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO layout(type,"
             " columns) SELECT type, REPLACE(columns, 'duration_ns', 'x' || i) FROM layout, n;"
             "INSERT INTO segment(session, type, channel, position, layout, rows, min_ns, max_ns, bytes, data)"
             " SELECT session, s.type, channel, position + l.layout, l.layout, s.rows, min_ns, max_ns, bytes, data"
             " FROM segment AS s, layout AS l WHERE l.layout <> s.layout",
             LAYOUTS_MANY);
    database_run(*state, sql);
    assert_int_equal(layouts_in(*state), LAYOUTS_MANY + 1);
    store = fixture_store(*state);
    const struct store_range range = {.session_id = "many", .columns = UINT64_C(1) << KERNEL_CORR_ID};
    uint64_t rows = 0;
    for (int round = 0; round < 2; round++) {
        rows = 0;
        MUST(store_read(store, &range, count_rows, &rows, &problem));
        assert_int_equal(rows, LAYOUTS_MANY + 1);
    }
    set_write(store, "other", 3);
    assert_int_equal(rows_of(store, "other", 0, 0), 1);
    MUST(store_session_end(store, "many", &problem));
    MUST(store_maintain(store, &problem));
    struct store_stats stats;
    MUST(store_stats(store, &stats, &problem));
    assert_true(stats.segments < 10);
    assert_int_equal(rows_of(store, "other", 0, 0), 1);
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        TEST(a_database_of_thousands_of_layouts_stays_readable),
        TEST(few_sets_of_columns_are_stored_and_no_cell_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
