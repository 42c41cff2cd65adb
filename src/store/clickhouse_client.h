/* SPDX-License-Identifier: Apache-2.0 */
/* SQL over ClickHouse's HTTP interface: RowBinary in both directions; if a host does not answer, the next one of the
 * list is asked. Queries and statements may be sent twice, which changes nothing. Rows are sent again only if that
 * neither duplicates nor loses them. No message contains the password. Thread-safe. Private to the ClickHouse
 * engine. */
#ifndef GPUFL_STORE_CLICKHOUSE_CLIENT_H
#define GPUFL_STORE_CLICKHOUSE_CLIENT_H

#include "base/bytes.h"
#include "base/status.h"
#include "store/clickhouse_location.h"

#include <stddef.h>
#include <stdint.h>

struct ch_client; /* opaque */

/* Does not connect yet. Copies location. */
NODISCARD gpufl_status ch_client_open(struct ch_client **out, const struct ch_location *location,
                                      struct problem *problem);
void ch_client_close(struct ch_client *client); /* NULL is a no-op */
/* The tables exist: from now on a host is used only once it is in sync with the others. */
void ch_client_ready(struct ch_client *client);

/* How a column's values are encoded. */
struct ch_column {
    enum { CH_UNSIGNED, CH_SIGNED, CH_FLOAT, CH_TEXT } kind;
    uint8_t size; /* of a number */
    bool is_nullable, is_array;
};
enum { CH_COLUMNS_MAX = 64 };

/* Rows of an answer, read from front to back in column order. Numbers are decoded with the type that the answer gives,
 * whatever their size; if the answer has no types (column_count 0: servers before 19.14), with the type that the caller
 * asks for. A value that does not fit, or a NULL, sets is_damaged; from there on, values are zero or empty. */
struct ch_rows {
    struct bytes body; /* owned */
    size_t at, begin;  /* offset of the first row */
    struct ch_column columns[CH_COLUMNS_MAX];
    unsigned column_count, column; /* index of the next value's column */
    size_t elements_left;          /* of the array being read */
    bool is_damaged;
};
void ch_rows_free(struct ch_rows *rows);
/* Reads the names and types of the columns from the beginning of the body. */
void ch_rows_describe(struct ch_rows *rows);
void ch_rows_rewind(struct ch_rows *rows);
bool ch_rows_next(const struct ch_rows *rows); /* there is another row */
uint8_t ch_u8(struct ch_rows *rows);
uint32_t ch_u32(struct ch_rows *rows);
uint64_t ch_u64(struct ch_rows *rows);
int64_t ch_i64(struct ch_rows *rows);
double ch_f64(struct ch_rows *rows);
/* Valid as long as the rows; NUL-terminated; size may be NULL. */
const char *ch_text(struct ch_rows *rows, size_t *size);
/* The same, in place and not terminated: used for rows that are read a second time (ch_rows_rewind). */
const char *ch_peek(struct ch_rows *rows, size_t *size);
size_t ch_count(struct ch_rows *rows); /* number of array elements that follow */

/* Writing RowBinary. */
void ch_put(struct bytes *out, const void *value, size_t size); /* numbers: in memory order */
void ch_put_u8(struct bytes *out, uint8_t value);
void ch_put_u32(struct bytes *out, uint32_t value);
void ch_put_u64(struct bytes *out, uint64_t value);
void ch_put_i64(struct bytes *out, int64_t value);
void ch_put_blob(struct bytes *out, const void *data, size_t size);
void ch_put_text(struct bytes *out, const char *text);
/* Appends a string literal to a statement. */
void ch_quote(struct bytes *sql, const char *text, size_t size);
void ch_quote_text(struct bytes *sql, const char *text);

/* sql: a SELECT without FORMAT. The caller frees the rows, also after a failure. GPUFL_E_BUSY: no host can answer
 * now. */
NODISCARD gpufl_status ch_select(struct ch_client *client, struct bytes *sql, struct ch_rows *rows,
                                 struct problem *problem);
/* The same without selecting the database, which may not exist yet. */
NODISCARD gpufl_status ch_select_outside(struct ch_client *client, struct bytes *sql, struct ch_rows *rows,
                                         struct problem *problem);
/* The same, including everything that any server has written to the replicated table so far; without a cluster, a plain
 * ch_select. */
NODISCARD gpufl_status ch_select_latest(struct ch_client *client, const char *table, struct bytes *sql,
                                        struct ch_rows *rows, struct problem *problem);
/* Runs a statement that returns no rows; settings: "" or "name=value&...". */
NODISCARD gpufl_status ch_run(struct ch_client *client, const char *sql, const char *settings, struct problem *problem);
/* into: "database.table (columns)". When it returns GPUFL_OK the rows are on disk, in clusters on two replicas if two
 * are up. GPUFL_E_BUSY: not written, or unknown (the connection was lost): the caller makes new rows and tries again.
 * No rows: nothing is sent. */
NODISCARD gpufl_status ch_insert(struct ch_client *client, const char *into, const struct bytes *rows,
                                 struct problem *problem);
/* The same, with a deadline on the monotonic clock. */
NODISCARD gpufl_status ch_insert_until(struct ch_client *client, const char *into, const struct bytes *rows,
                                       int64_t deadline_ns, struct problem *problem);
/* Several inserts at the same time; returns the first failure after all have ended. */
struct ch_batch {
    const char *into;
    struct bytes rows; /* owned by the caller */
};
enum { CH_BATCHES_MAX = 8 };
NODISCARD gpufl_status ch_insert_all(struct ch_client *client, const struct ch_batch *batches, unsigned count,
                                     int64_t deadline_ns, struct problem *problem);

#endif
