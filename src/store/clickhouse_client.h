/* SPDX-License-Identifier: Apache-2.0 */
/* SQL over ClickHouse's HTTP interface: RowBinary in both directions, the next host of the list when one does not
 * answer. Questions and statements may be sent twice: a repetition changes nothing. Rows are sent again only where
 * that neither doubles nor loses them. The password is in no message. Any number of threads. Private to the ClickHouse
 * engine. */
#ifndef GPUFL_STORE_CLICKHOUSE_CLIENT_H
#define GPUFL_STORE_CLICKHOUSE_CLIENT_H

#include "base/bytes.h"
#include "base/status.h"
#include "store/clickhouse_location.h"

#include <stddef.h>
#include <stdint.h>

struct ch_client; /* opaque */

/* Makes no connection yet. location is copied. */
NODISCARD gpufl_status ch_client_open(struct ch_client **out, const struct ch_location *location,
                                      struct problem *problem);
void ch_client_close(struct ch_client *client); /* NULL is a no-op */
/* The tables are there: from now on a host is only used once it has caught up with the others. */
void ch_client_ready(struct ch_client *client);

/* How a column's values are written. */
struct ch_column {
    enum { CH_UNSIGNED, CH_SIGNED, CH_FLOAT, CH_TEXT } kind;
    uint8_t size; /* of a number */
    bool is_nullable, is_array;
};
enum { CH_COLUMNS_MAX = 64 };

/* Rows of an answer, read from front to back, in the order of the columns. Numbers are read as the answer says that they
 * are written, whatever their size; where it does not say (column_count 0: servers before 19.14), as they are asked for.
 * What does not fit, and a NULL, sets is_damaged and reads as nothing from there on. */
struct ch_rows {
    struct bytes body; /* owned */
    size_t at, begin;  /* begin: of the first row */
    struct ch_column columns[CH_COLUMNS_MAX];
    unsigned column_count, column; /* column: of the next value */
    size_t elements_left;          /* of the array that is being read */
    bool is_damaged;
};
void ch_rows_free(struct ch_rows *rows);
/* The body begins with the names and types of its columns. */
void ch_rows_describe(struct ch_rows *rows);
void ch_rows_rewind(struct ch_rows *rows);
bool ch_rows_next(const struct ch_rows *rows); /* there is another row */
uint8_t ch_u8(struct ch_rows *rows);
uint32_t ch_u32(struct ch_rows *rows);
uint64_t ch_u64(struct ch_rows *rows);
int64_t ch_i64(struct ch_rows *rows);
double ch_f64(struct ch_rows *rows);
/* Lives as long as the rows; NUL-terminated, size may be NULL. */
const char *ch_text(struct ch_rows *rows, size_t *size);
/* The same as it is there, not terminated: rows that are read a second time (ch_rows_rewind) are read so. */
const char *ch_peek(struct ch_rows *rows, size_t *size);
size_t ch_count(struct ch_rows *rows); /* of the array's elements that follow */

/* RowBinary out. */
void ch_put(struct bytes *out, const void *value, size_t size); /* numbers: as they are in memory */
void ch_put_u8(struct bytes *out, uint8_t value);
void ch_put_u32(struct bytes *out, uint32_t value);
void ch_put_u64(struct bytes *out, uint64_t value);
void ch_put_i64(struct bytes *out, int64_t value);
void ch_put_blob(struct bytes *out, const void *data, size_t size);
void ch_put_text(struct bytes *out, const char *text);
/* A string literal in a statement. */
void ch_quote(struct bytes *sql, const char *text, size_t size);
void ch_quote_text(struct bytes *sql, const char *text);

/* sql: a SELECT, without FORMAT. The rows are freed by the caller also after a failure. GPUFL_E_BUSY: no host can
 * answer now. */
NODISCARD gpufl_status ch_select(struct ch_client *client, struct bytes *sql, struct ch_rows *rows,
                                 struct problem *problem);
/* The same without the database, which may not be there. */
NODISCARD gpufl_status ch_select_outside(struct ch_client *client, struct bytes *sql, struct ch_rows *rows,
                                         struct problem *problem);
/* The same behind everything that any server has written to the replicated table before; a plain ch_select without a
 * cluster. */
NODISCARD gpufl_status ch_select_latest(struct ch_client *client, const char *table, struct bytes *sql,
                                        struct ch_rows *rows, struct problem *problem);
/* A statement without rows; settings: "" or "name=value&...". */
NODISCARD gpufl_status ch_run(struct ch_client *client, const char *sql, const char *settings, struct problem *problem);
/* into: "database.table (columns)". On disk, in clusters on two replicas as long as there are two, when it returns
 * GPUFL_OK. GPUFL_E_BUSY: not, or it is not known (a host went away with them): the caller makes new rows and tries
 * again. Nothing is sent for no rows. */
NODISCARD gpufl_status ch_insert(struct ch_client *client, const char *into, const struct bytes *rows,
                                 struct problem *problem);
/* The same, not tried any longer at that time of the monotonic clock. */
NODISCARD gpufl_status ch_insert_until(struct ch_client *client, const char *into, const struct bytes *rows,
                                       int64_t deadline_ns, struct problem *problem);
/* Several of them at the same time; the first failure is told once all have ended. */
struct ch_batch {
    const char *into;
    struct bytes rows; /* the caller's */
};
enum { CH_BATCHES_MAX = 8 };
NODISCARD gpufl_status ch_insert_all(struct ch_client *client, const struct ch_batch *batches, unsigned count,
                                     int64_t deadline_ns, struct problem *problem);

#endif
