/* SPDX-License-Identifier: Apache-2.0 */
/* The tables as an SQLite database. Names are ids in the table `names`, and each table with names has a view
 * TABLE_named that shows them; NULL means unknown. */
#include "export/sqlite_library.h"
#include "export/writers.h"

#include <string.h>

enum { DATABASE_VERSION = 2, TEXT_BYTES_MAX = 1 << 30, PROGRESS_ROWS = 8192 };

struct database {
    struct sqlite_library sqlite;
    struct sqlite3 *handle;
    struct bytes sql, text;
    uint64_t rows;
    const struct sink_progress *progress;
    struct problem *problem;
};

static gpufl_status database_problem(struct database *database)
{
    return problem_set(database->problem, GPUFL_E_IO, "SQLite: %s", database->sqlite.errmsg(database->handle));
}

static gpufl_status database_run(struct database *database, const char *sql)
{
    return database->sqlite.exec(database->handle, sql, NULL, NULL, NULL) ? database_problem(database) : GPUFL_OK;
}

static gpufl_status database_run_built(struct database *database)
{
    gpufl_status status = database_run(database, bytes_text(&database->sql));
    if (database->sql.failed)
        status = problem_set(database->problem, GPUFL_E_NO_MEMORY, "out of memory");
    bytes_clear(&database->sql);
    return status;
}

static gpufl_status table_create(struct database *database, const struct export_table *table)
{
    static const char *const types[] = {
        [COLUMN_INTEGER] = "INTEGER", [COLUMN_REAL] = "REAL", [COLUMN_TEXT] = "TEXT", [COLUMN_NAME] = "INTEGER"};
    bool has_names = false;
    bytes_append_format(&database->sql, "CREATE TABLE %s(", table->name);
    for (unsigned i = 0; i < table_column_count(table); i++) {
        struct table_column column = table_column(table, i);
        bool is_name = column.kind == COLUMN_NAME;
        has_names = has_names || is_name;
        bytes_append_format(&database->sql, "%s%s%s %s", i ? "," : "", column.name, is_name ? "_id" : "",
                            types[column.kind]);
    }
    bytes_append_text(&database->sql, ");");
    if (has_names) {
        bytes_append_format(&database->sql, "CREATE VIEW %s_named AS SELECT rowid", table->name);
        for (unsigned i = 0; i < table_column_count(table); i++) {
            struct table_column column = table_column(table, i);
            if (column.kind == COLUMN_NAME)
                bytes_append_format(&database->sql,
                                    ",(SELECT text FROM names WHERE dictionary='%s' AND id=t.%s_id) AS %s",
                                    dictionary_catalogue[column.dictionary].name, column.name, column.name);
            else
                bytes_append_format(&database->sql, ",%s", column.name);
        }
        bytes_append_format(&database->sql, " FROM %s t;", table->name);
    }
    return database_run_built(database);
}

/* text: valid until the next step. */
static int bind_text(struct database *database, struct sqlite3_stmt *statement, int index, const char *text)
{
    size_t from = database->text.size;
    text_append_utf8(&database->text, text, strlen(text));
    size_t size = database->text.size - from;
    if (database->text.failed || size > TEXT_BYTES_MAX)
        return database->sqlite.bind_null(statement, index);
    /* The buffer moves when it grows, so SQLite must copy (SQLITE_TRANSIENT, which is -1). */
    void (*const transient)(void *) = (void (*)(void *))(intptr_t)-1;
    return database->sqlite.bind_text(statement, index, database->text.data ? database->text.data + from : "",
                                      (int)size, transient);
}

static int bind_value(struct database *database, struct sqlite3_stmt *statement, int index,
                      const struct table_value *value)
{
    switch (value->kind) {
    case VALUE_INTEGER:
        return database->sqlite.bind_int64(statement, index, value->integer);
    case VALUE_REAL:
        return database->sqlite.bind_double(statement, index, value->real);
    case VALUE_TEXT:
        return bind_text(database, statement, index, value->text);
    case VALUE_NONE:
        break;
    }
    return database->sqlite.bind_null(statement, index);
}

static gpufl_status row_insert(struct database *database, struct sqlite3_stmt *statement,
                               const struct table_value *values, unsigned count)
{
    int failed = 0;
    bytes_clear(&database->text);
    for (unsigned i = 0; i < count; i++)
        failed |= bind_value(database, statement, (int)i + 1, &values[i]);
    if (failed || database->sqlite.step(statement) != SQLITE_RESULT_DONE || database->sqlite.reset(statement))
        return database_problem(database);
    if (++database->rows % PROGRESS_ROWS == 0)
        progress_share(database->progress, database->rows);
    return GPUFL_OK;
}

static gpufl_status insert_prepare(struct database *database, struct sqlite3_stmt **statement, const char *table,
                                   unsigned column_count)
{
    bytes_append_format(&database->sql, "INSERT INTO %s VALUES(", table);
    for (unsigned i = 0; i < column_count; i++)
        bytes_append_text(&database->sql, i ? ",?" : "?");
    bytes_append_char(&database->sql, ')');
    int code = database->sqlite.prepare_v2(database->handle, bytes_text(&database->sql), -1, statement, NULL);
    bytes_clear(&database->sql);
    return code ? database_problem(database) : GPUFL_OK;
}

static gpufl_status table_fill(struct database *database, const struct export_filter *filter,
                               const struct export_table *table)
{
    struct table_source source = {.model = filter->model, .filter = filter};
    unsigned column_count = table_column_count(table);
    struct sqlite3_stmt *statement = NULL;
    gpufl_status status = insert_prepare(database, &statement, table->name, column_count);
    size_t count = table->count(filter->model);
    for (size_t row = 0; row < count && status == GPUFL_OK; row++) {
        struct table_value values[TABLE_COLUMNS_MAX];
        memset(values, 0, column_count * sizeof *values);
        if (table->row(&source, row, values))
            status = row_insert(database, statement, values, column_count);
    }
    database->sqlite.finalize(statement);
    return status;
}

static gpufl_status names_fill(struct database *database, const struct session_model *model)
{
    struct sqlite3_stmt *statement = NULL;
    gpufl_status status = insert_prepare(database, &statement, "names", 3);
    for (unsigned dictionary = 0; dictionary < DICTIONARY_COUNT; dictionary++) {
        const struct dictionary_table *table = &model->dictionaries[dictionary];
        for (uint32_t id = 1; id < table->count && status == GPUFL_OK; id++) {
            struct table_value values[3] = {0};
            value_text(&values[0], dictionary_catalogue[dictionary].name);
            value_integer(&values[1], id);
            value_text(&values[2], table->texts[id]);
            if (table->texts[id])
                status = row_insert(database, statement, values, 3);
        }
    }
    database->sqlite.finalize(statement);
    return status;
}

static const char views[] =
    "CREATE VIEW kernel_summary AS SELECT (SELECT text FROM names WHERE dictionary='kernel_dict' AND id=kernel_id) AS "
    "kernel, COUNT(*) AS calls, SUM(duration_ns) AS total_ns, AVG(duration_ns) AS mean_ns, MIN(duration_ns) AS min_ns, "
    "MAX(duration_ns) AS max_ns FROM kernels GROUP BY kernel_id ORDER BY total_ns DESC;"
    /* The paths below a path begin with it and '|'; '}' is the next character after '|'. */
    "CREATE INDEX scopes_by_path ON names(dictionary, text) WHERE dictionary='scope_name_dict';"
    "CREATE VIEW scope_summary AS WITH own AS (SELECT scope_id, COUNT(*) AS kernels, SUM(duration_ns) AS ns FROM "
    "kernels GROUP BY scope_id), entered AS (SELECT path_id, (SELECT text FROM names WHERE "
    "dictionary='scope_name_dict' AND id=path_id) AS path, COUNT(*) AS calls, SUM(end_ns - begin_ns) AS wall_ns FROM "
    "scopes GROUP BY path_id) SELECT path, calls, wall_ns, IFNULL(self.kernels, 0) + IFNULL(SUM(below.kernels), 0) AS "
    "kernels, COALESCE(self.ns + SUM(below.ns), self.ns, SUM(below.ns)) AS kernel_ns, IFNULL(self.kernels, 0) AS "
    "kernels_self, self.ns AS kernel_self_ns FROM entered LEFT JOIN own self ON self.scope_id=path_id LEFT JOIN names "
    "ON dictionary='scope_name_dict' AND text >= path || '|' AND text < path || '}' LEFT JOIN own below ON "
    "below.scope_id=names.id GROUP BY path_id ORDER BY wall_ns DESC;"
    "CREATE VIEW copy_summary AS SELECT kind, source, target, COUNT(*) AS calls, SUM(bytes) AS bytes, SUM(duration_ns) "
    "AS total_ns FROM copies GROUP BY kind, source, target ORDER BY total_ns DESC;"
    "CREATE INDEX kernels_by_name ON kernels(kernel_id);CREATE INDEX kernels_by_scope ON kernels(scope_id);";

static gpufl_status database_fill(struct database *database, const struct export_filter *filter)
{
    /* The file is new and appears only when complete: a journal is not needed. */
    gpufl_status status =
        database_run(database, "PRAGMA journal_mode=OFF;PRAGMA synchronous=OFF;PRAGMA locking_mode=EXCLUSIVE;BEGIN;"
                               "CREATE TABLE names(dictionary TEXT, id INTEGER, text TEXT, "
                               "PRIMARY KEY(dictionary, id)) WITHOUT ROWID;");
    for (size_t i = 0; export_tables[i] && status == GPUFL_OK; i++) {
        status = table_create(database, export_tables[i]);
        if (status == GPUFL_OK)
            status = table_fill(database, filter, export_tables[i]);
    }
    if (status == GPUFL_OK)
        status = names_fill(database, filter->model);
    if (status == GPUFL_OK)
        status = database_run(database, views);
    bytes_append_format(&database->sql, "PRAGMA user_version=%d;COMMIT;", DATABASE_VERSION);
    return status == GPUFL_OK ? database_run_built(database) : status;
}

gpufl_status sqlite_write(const char *path, const struct export_filter *filter, const struct sink_progress *progress,
                          uint64_t *rows, struct problem *problem)
{
    struct database database = {.problem = problem, .progress = progress};
    gpufl_status status = sqlite_library_load(&database.sqlite, problem);
    if (status != GPUFL_OK)
        return status;
    if (database.sqlite.open_v2(path, &database.handle, SQLITE_OPEN_EXISTING, NULL))
        status =
            database.handle ? database_problem(&database) : problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory");
    else
        status = database_fill(&database, filter);
    if (database.sqlite.close(database.handle) && status == GPUFL_OK)
        status = problem_set(problem, GPUFL_E_IO, "SQLite could not finish the file");
    bytes_free(&database.sql);
    bytes_free(&database.text);
    *rows = database.rows;
    return status;
}
