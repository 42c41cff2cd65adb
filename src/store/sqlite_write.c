/* SPDX-License-Identifier: Apache-2.0 */
/* Deliveries: what is loaded when one begins, and all changes of its commit, which are one transaction. */
#include "store/sqlite_store.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

struct sqlite_write {
    struct store_write base;
    struct write_unit unit;
    struct store_written written;
};

static struct sqlite_write *sqlite_write_of(struct store_write *write)
{
    return (struct sqlite_write *)write; /* the first member */
}

/* Looks up whether the window is stored already. */
static gpufl_status window_look(struct connection *connection, int64_t session, const char *window_id,
                                enum channel channel, uint32_t crc, enum store_delivery *delivery,
                                struct problem *problem)
{
    int64_t there;
    bool is_found;
    *delivery = STORE_NEW;
    if (!window_id || !*window_id)
        return GPUFL_OK;
    gpufl_status status = statement_integer(connection, &there, &is_found, problem,
                                            "SELECT crc FROM delivery WHERE session=?1 AND channel=?2 AND window_id=?3",
                                            "itt", session, channel_text(channel), window_id);
    if (!status && is_found)
        *delivery = there == (int64_t)crc ? STORE_REPEATED : STORE_CONFLICT;
    return status;
}

static gpufl_status sequences_load(struct connection *connection, int64_t session, struct write_unit *unit,
                                   struct problem *problem)
{
    sqlite3_stmt *statement;
    gpufl_status status = statement_open(connection, &statement, problem,
                                         "SELECT kind, ranges FROM received WHERE session=?", "i", session);
    for (bool has_row = true; !status;) {
        status = statement_next(connection, statement, &has_row, problem);
        if (status || !has_row)
            break;
        unsigned kind = sequence_kind_of(row_text(statement, 0));
        if (kind == SEQUENCE_KINDS)
            continue;
        status = sequence_set_decode(&unit->known[kind], sqlite3_column_blob(statement, 1),
                                     (size_t)sqlite3_column_bytes(statement, 1));
        if (status) {
            sqlite3_reset(statement);
            problem_set(problem, status, "the line numbers of session %s cannot be read", unit->session_id);
        }
    }
    return status;
}

gpufl_status sqlite_write_begin(struct store *base, const struct store_identity *identity, struct store_write **out,
                                enum store_delivery *delivery, struct problem *problem)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct sqlite_write *write = calloc(1, sizeof *write);
    struct connection *reader = NULL;
    int64_t session;
    *delivery = STORE_NEW;
    if (!write)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for a delivery");
    write->base.store = base;
    write_unit_init(&write->unit, identity, store->options.write_bytes_max);
    gpufl_status status = reader_begin(store, &reader, problem);
    if (!status) {
        status = session_find(reader, identity->session_id, &session, NULL);
        if (!status)
            status =
                window_look(reader, session, identity->window_id, identity->channel, identity->crc, delivery, problem);
        if (!status && *delivery == STORE_NEW)
            status = sequences_load(reader, session, &write->unit, problem);
        if (status == GPUFL_E_NOT_FOUND)
            status = GPUFL_OK; /* the session's first delivery */
        reader_end(store, reader);
    }
    if (status || *delivery != STORE_NEW) {
        sqlite_write_abort(&write->base);
        return status;
    }
    *out = &write->base;
    return GPUFL_OK;
}

gpufl_status sqlite_write_line(struct store_write *write, const struct log_line *line, const char *text, size_t size,
                               bool *is_repeated, struct problem *problem)
{
    return write_unit_line(&sqlite_write_of(write)->unit, line, text, size, is_repeated, problem);
}

void sqlite_write_name(struct store_write *write, const char *window_id, uint32_t crc)
{
    struct write_unit *unit = &sqlite_write_of(write)->unit;
    snprintf(unit->window_id, sizeof unit->window_id, "%s", window_id);
    unit->crc = crc;
}

void sqlite_write_abort(struct store_write *base)
{
    struct sqlite_write *write = sqlite_write_of(base);
    write_unit_free(&write->unit);
    free(write);
}

gpufl_status segment_insert(struct sqlite_store *store, struct connection *connection, int64_t session,
                            int64_t position, const struct segment *segment, int64_t *bytes, struct problem *problem)
{
    int64_t layout, type, size = (int64_t)segment->bytes.size;
    gpufl_status status = layout_make(store, connection, segment->type, segment->present, &layout, &type, problem);
    for (unsigned i = 0; i < segment->level_count; i++)
        size += (int64_t)segment->levels[i].bytes.size;
    if (!status)
        status = statement_run(connection, problem,
                               "INSERT INTO segment(session, type, channel, position, layout, rows, min_ns, max_ns,"
                               " bytes, data) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
                               "iitiiiiiib", session, type, channel_text(segment->channel), position, layout,
                               (int64_t)segment->rows, segment->min_ns, segment->max_ns, size, segment->bytes.data,
                               segment->bytes.size);
    int64_t id = sqlite3_last_insert_rowid(connection->db);
    for (unsigned i = 0; i < segment->level_count && !status; i++)
        status = statement_run(connection, problem, "INSERT INTO tile(tile, data) VALUES(?1, ?2)", "ib",
                               id * TILE_SHIFTS + (int64_t)segment->levels[i].shift, segment->levels[i].bytes.data,
                               segment->levels[i].bytes.size);
    if (!status)
        sum_add_ns(bytes, size);
    return status;
}

/* Adds this write's numbers to the stored ones; GPUFL_E_BUSY when some of them were stored meanwhile. */
static gpufl_status sequence_save(struct connection *connection, int64_t session, unsigned kind,
                                  const struct sequence_set *added, struct problem *problem)
{
    char name[SEQUENCE_NAME_MAX];
    struct sequence_set all = {0};
    struct bytes bytes = {0};
    sqlite3_stmt *statement;
    bool has_row = false;
    sequence_kind_name(kind, name);
    gpufl_status status =
        statement_open(connection, &statement, problem, "SELECT ranges FROM received WHERE session=?1 AND kind=?2",
                       "it", session, name);
    if (!status)
        status = statement_next(connection, statement, &has_row, problem);
    if (!status && has_row) {
        status =
            sequence_set_decode(&all, sqlite3_column_blob(statement, 0), (size_t)sqlite3_column_bytes(statement, 0));
        sqlite3_reset(statement);
    }
    for (size_t i = 0; i < added->count && !status; i++) {
        const struct sequence_range *range = &added->ranges[i];
        if (sequence_set_meets(&all, range->first, range->last))
            status = problem_set(problem, GPUFL_E_BUSY, "the same lines are being delivered twice at once; send again");
        else
            status = sequence_set_add(&all, range->first, range->last);
    }
    if (!status) {
        sequence_set_encode(&all, &bytes);
        status = bytes.failed ? GPUFL_E_NO_MEMORY
                              : statement_run(connection, problem,
                                              "INSERT INTO received(session, kind, ranges) VALUES(?1, ?2, ?3)"
                                              " ON CONFLICT(session, kind) DO UPDATE SET ranges=excluded.ranges",
                                              "itb", session, name, bytes.data, bytes.size);
    }
    bytes_free(&bytes);
    sequence_set_free(&all);
    return status;
}

static gpufl_status session_make(struct connection *connection, const char *session_id, int64_t now_ns,
                                 int64_t *session, struct problem *problem)
{
    gpufl_status status = statement_run(connection, problem,
                                        "INSERT INTO session(session_id, created_ns, received_ns) VALUES(?1, ?2, ?2)"
                                        " ON CONFLICT(session_id) DO UPDATE SET received_ns=excluded.received_ns",
                                        "ti", session_id, now_ns);
    return status ? status : session_find(connection, session_id, session, problem);
}

static gpufl_status unit_apply(struct sqlite_store *store, struct connection *connection, int64_t session,
                               const struct write_unit *unit, int64_t now_ns, struct problem *problem)
{
    gpufl_status status = GPUFL_OK;
    int64_t bytes = 0;
    for (unsigned kind = 0; kind < SEQUENCE_KINDS && !status; kind++)
        if (unit->added[kind].count)
            status = sequence_save(connection, session, kind, &unit->added[kind], problem);
    for (size_t i = 0; i < unit->segment_count && !status; i++)
        status =
            segment_insert(store, connection, session, store->next_position++, &unit->segments[i], &bytes, problem);
    if (!status)
        status = statement_run(connection, problem,
                               "UPDATE session SET bytes=bytes+?2, revision=revision+1 WHERE session=?1", "ii", session,
                               bytes);
    return status ? status : sqlite_write_sums(store, connection, session, unit, now_ns, problem);
}

/* A sender that got no answer repeats the delivery within minutes; later lines are deduplicated by their numbers.
 * Without this limit a session that runs for a day would keep a row for each second. */
enum { FORGET_EVERY = 256 };
#define DELIVERY_KEPT_NS (INT64_C(900) * 1000000000)

static gpufl_status deliveries_forget(struct connection *connection, int64_t session, int64_t now_ns,
                                      struct problem *problem)
{
    return statement_run(connection, problem, "DELETE FROM delivery WHERE session=?1 AND numbered_ns<?2", "ii", session,
                         now_ns - DELIVERY_KEPT_NS);
}

static gpufl_status write_apply(struct sqlite_store *store, struct connection *connection, void *arg,
                                struct problem *problem)
{
    struct sqlite_write *write = arg;
    const struct write_unit *unit = &write->unit;
    int64_t session, now_ns = clock_wall_ns();
    write->written = (struct store_written){
        .lines = unit->lines, .repeated_lines = unit->repeated_lines, .rows = (uint64_t)unit->sums.facts.rows};
    gpufl_status status = session_make(connection, unit->session_id, now_ns, &session, problem);
    if (!status)
        status = window_look(connection, session, unit->window_id, unit->channel, unit->crc, &write->written.delivery,
                             problem);
    if (!status && write->written.delivery != STORE_NEW) {
        write->written.lines = write->written.rows = 0;
        write->written.repeated_lines = unit->lines + unit->repeated_lines;
    } else {
        if (!status && unit->window_id[0])
            status = statement_run(connection, problem,
                                   "INSERT INTO delivery(session, channel, window_id, crc, numbered_ns)"
                                   " VALUES(?1, ?2, ?3, ?4, ?5)",
                                   "ittii", session, channel_text(unit->channel), unit->window_id, (int64_t)unit->crc,
                                   unit->has_unnumbered ? CELL_UNKNOWN : now_ns);
        if (!status && unit->lines)
            status = unit_apply(store, connection, session, unit, now_ns, problem);
    }
    if (!status)
        status = statement_integer(connection, &write->written.revision, NULL, problem,
                                   "SELECT revision FROM session WHERE session=?", "i", session);
    if (!status && write->written.revision % FORGET_EVERY == 0)
        status = deliveries_forget(connection, session, now_ns, problem);
    return status;
}

gpufl_status sqlite_write_commit(struct store_write *base, struct store_written *written, struct problem *problem)
{
    struct sqlite_write *write = sqlite_write_of(base);
    struct sqlite_store *store = sqlite_store_of(base->store);
    gpufl_status status = write_unit_finish(&write->unit, problem);
    if (!status)
        status = store_change(store, write_apply, write, write_unit_bytes(&write->unit), problem);
    if (!status)
        *written = write->written;
    sqlite_write_abort(base);
    if (!status)
        background_wake(store);
    return status;
}
