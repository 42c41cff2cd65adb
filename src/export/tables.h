/* SPDX-License-Identifier: Apache-2.0 */
/* A session as tables of rows, for CSV and SQLite. Each table is described once; writers request its rows in order. One
 * thread per source. */
#ifndef GPUFL_EXPORT_TABLES_H
#define GPUFL_EXPORT_TABLES_H

#include "export/filter.h"

enum value_kind { VALUE_NONE, VALUE_INTEGER, VALUE_REAL, VALUE_TEXT };

struct table_value {
    enum value_kind kind;
    int64_t integer; /* of a name: its id; `text` is its text or NULL */
    double real;
    const char *text;
};

enum column_kind { COLUMN_INTEGER, COLUMN_REAL, COLUMN_TEXT, COLUMN_NAME };
struct table_column {
    const char *name;
    enum column_kind kind;
    enum dictionary dictionary; /* of COLUMN_NAME */
};

/* For the files that define tables. */
#define COLUMNS(array) .columns = (array), .column_count = sizeof(array) / sizeof *(array)
#define TEXT(column)           \
    {                          \
        column, COLUMN_TEXT, 0 \
    }
#define INTEGER(column)           \
    {                             \
        column, COLUMN_INTEGER, 0 \
    }
#define REAL(column)           \
    {                          \
        column, COLUMN_REAL, 0 \
    }
#define NAME(column, dictionary)        \
    {                                   \
        column, COLUMN_NAME, dictionary \
    }

enum { TABLE_COLUMNS_MAX = 64 };

/* A source of rows. Rows are requested in order, so that nested tables need no search. */
struct table_source {
    const struct session_model *model;
    const struct export_filter *filter;
    size_t group, group_first; /* the series or event of the latest row, and its first row */
    char text[64];             /* buffer for a generated text, valid until the next row */
};

struct export_table {
    const char *name;
    enum record_type record; /* columns are this record's; RECORD_UNKNOWN: those below */
    const struct table_column *columns;
    unsigned column_count;
    size_t (*count)(const struct session_model *model);
    /* Fills a value for each column, initially VALUE_NONE; false: the row is filtered out. */
    bool (*row)(struct table_source *source, size_t row, struct table_value *values);
};

/* tables_work.c, tables_session.c and tables_samples.c. */
extern const struct export_table table_of_kernels, table_of_untimed, table_of_copies, table_of_memsets, table_of_graphs,
    table_of_syncs, table_of_allocations, table_of_scopes;
extern const struct export_table table_of_session, table_of_devices, table_of_launches, table_of_losses,
    table_of_capabilities, table_of_issues, table_of_windows;
extern const struct export_table table_of_device_metrics, table_of_host_metrics, table_of_process_metrics,
    table_of_pm_samples, table_of_range_metrics, table_of_stalls, table_of_code_samples;
/* All tables; NULL-terminated. */
extern const struct export_table *const export_tables[];
const struct export_table *export_table_find(const char *name); /* NULL: none */

unsigned table_column_count(const struct export_table *table);
struct table_column table_column(const struct export_table *table, unsigned index);
/* Goes back to before the first row. */
void table_source_reset(struct table_source *source);

static inline void value_integer(struct table_value *value, int64_t integer)
{
    value->kind = VALUE_INTEGER;
    value->integer = integer;
}
/* Numbers beyond the signed range come from a damaged log. */
static inline void value_unsigned(struct table_value *value, uint64_t number)
{
    if (number <= INT64_MAX)
        value_integer(value, (int64_t)number);
}
static inline void value_time(struct table_value *value, int64_t time_ns)
{
    if (time_ns != TIME_UNKNOWN) /* the same number as CELL_UNKNOWN */
        value_integer(value, time_ns);
}
static inline void value_id(struct table_value *value, uint32_t id)
{
    if (id != ID_UNKNOWN)
        value_integer(value, id);
}
static inline void value_device(struct table_value *value, uint16_t device)
{
    if (device != DEVICE_UNKNOWN)
        value_integer(value, device);
}
static inline void value_real(struct table_value *value, double real)
{
    value->kind = VALUE_REAL;
    value->real = real;
}
static inline void value_text(struct table_value *value, const char *text)
{
    if (!text || !*text)
        return;
    value->kind = VALUE_TEXT;
    value->text = text;
}
/* id 0: none. */
static inline void value_name(struct table_value *value, const struct session_model *model, enum dictionary dictionary,
                              uint32_t id)
{
    if (!id || id == ID_UNKNOWN)
        return;
    value_integer(value, id);
    value->text = session_text(model, dictionary, id);
}
static inline void value_word(struct table_value *value, const char *enumeration, long word)
{
    value_text(value, word ? schema_word(enumeration, word) : NULL);
}
/* The path of an instance, and its id. */
void value_scope(struct table_value *path, struct table_value *instance, const struct session_model *model,
                 uint32_t scope);

#endif
