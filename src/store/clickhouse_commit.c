/* SPDX-License-Identifier: Apache-2.0 */
/* Commits a group of writes: insert claims and data, look for conflicting writes, insert verdicts. clickhouse_store.h
 * explains why each write counts exactly once. */
#include "store/clickhouse_store.h"

#include "base/clock.h"

#include <stdlib.h>
#include <time.h>

/* States of rows in the look-up that are not writes. */
enum { COUNT_ROW = 10, GENERATION_ROW = 11 };
/* LOOK_MARGIN_S allows for commit rows that appear late, from a host that failed with them and came back before the
 * other replicas discarded them. */
enum { LOOK_MARGIN_S = 600, LOOKS_MAX = 40, LOOK_WAIT_MS = 50 };

#define CLAIM_COLUMNS "session_id,write_id,state,generation,received_ns,channel,window_id,crc,ranges"
#define COMMIT_COLUMNS                                                                                                          \
    CLAIM_COLUMNS                                                                                                               \
    ",known,segments,segment_rows,kernel_rows,lines,rows,rows_told,bytes,kernels,kernel_ns,app,host,kind,engine,session_state," \
    "has_start,start_ns,end_ns,loss_reason,loss_is_total,loss_count,loss_is_unknown,gpu_device,"                                \
    "gpu_uuid,gpu_name"

static void claim_put(const struct ch_write *write, enum ch_write_state state, struct bytes *out)
{
    const struct write_unit *unit = &write->unit;
    struct bytes ranges = {0};
    ch_ranges_encode(unit->added, &ranges);
    ch_put_text(out, unit->session_id);
    ch_put_u64(out, write->write_id);
    ch_put_u8(out, (uint8_t)state);
    ch_put_u32(out, write->generation);
    ch_put_i64(out, write->received_ns);
    ch_put_text(out, channel_text(unit->channel));
    ch_put_text(out, unit->window_id);
    ch_put_u32(out, unit->crc);
    ch_put_blob(out, ranges.data, ranges.size);
    out->failed |= ranges.failed;
    bytes_free(&ranges);
}

static void losses_put(const struct session_facts *facts, struct bytes *out)
{
    varint_append(out, facts->loss_count);
    for (unsigned i = 0; i < facts->loss_count; i++)
        ch_put_text(out, facts->losses[i].reason);
    varint_append(out, facts->loss_count);
    for (unsigned i = 0; i < facts->loss_count; i++)
        ch_put_u8(out, facts->losses[i].is_total);
    varint_append(out, facts->loss_count);
    for (unsigned i = 0; i < facts->loss_count; i++)
        ch_put_i64(out, facts->losses[i].count);
    varint_append(out, facts->loss_count);
    for (unsigned i = 0; i < facts->loss_count; i++)
        ch_put_u8(out, facts->losses[i].has_unknown);
}

static void gpus_put(const struct session_facts *facts, struct bytes *out)
{
    varint_append(out, facts->gpu_count);
    for (unsigned i = 0; i < facts->gpu_count; i++)
        ch_put_i64(out, facts->gpus[i].device_id);
    varint_append(out, facts->gpu_count);
    for (unsigned i = 0; i < facts->gpu_count; i++)
        ch_put_text(out, facts->gpus[i].uuid);
    varint_append(out, facts->gpu_count);
    for (unsigned i = 0; i < facts->gpu_count; i++)
        ch_put_text(out, facts->gpus[i].name);
}

static void commit_put(const struct ch_write *write, struct bytes *out)
{
    const struct session_facts *facts = &write->unit.sums.facts;
    struct bytes known = {0};
    claim_put(write, WRITE_COMMITTED, out);
    ch_ranges_encode(write->unit.known, &known);
    ch_put_blob(out, known.data, known.size);
    out->failed |= known.failed;
    bytes_free(&known);
    ch_put_u32(out, (uint32_t)write->unit.segment_count);
    ch_put_i64(out, write->segment_rows);
    ch_put_u32(out, write->kernel_rows);
    ch_put_i64(out, facts->lines);
    ch_put_i64(out, facts->rows);
    ch_put_i64(out, facts->expected_rows);
    ch_put_i64(out, write->bytes);
    ch_put_i64(out, facts->kernels);
    ch_put_i64(out, facts->kernel_ns);
    ch_put_text(out, facts->app);
    ch_put_text(out, facts->host);
    ch_put_text(out, facts->kind);
    ch_put_text(out, facts->engine);
    ch_put_u8(out, facts->has_crashed ? STORE_SESSION_CRASHED
                   : facts->has_ended ? STORE_SESSION_COMPLETE
                                      : STORE_SESSION_LIVE);
    /* job_start decides when the session began; until it arrives, the earliest time seen does. */
    ch_put_u8(out, facts->start_ns != CELL_UNKNOWN);
    ch_put_i64(out, facts->start_ns != CELL_UNKNOWN ? facts->start_ns : facts->first_ns);
    ch_put_i64(out, facts->last_ns);
    losses_put(facts, out);
    gpus_put(facts, out);
}

/* Inserts the rows of one state for all writes that have this verdict. */
static gpufl_status rows_insert(struct ch_store *store, const struct ch_write *first, enum ch_write_state state,
                                int64_t deadline_ns, struct problem *problem)
{
    struct bytes rows = {0};
    for (const struct ch_write *write = first; write; write = write->next) {
        if (state == WRITE_COMMITTED && write->verdict == WRITE_COMMITTED)
            commit_put(write, &rows);
        else if (state == WRITE_VOID && write->verdict == WRITE_VOID)
            claim_put(write, state, &rows);
    }
    gpufl_status status = ch_insert_until(
        store->client, state == WRITE_COMMITTED ? "write (" COMMIT_COLUMNS ")" : "write (" CLAIM_COLUMNS ")", &rows,
        deadline_ns, problem);
    bytes_free(&rows);
    return status;
}

/* ---- looking for conflicts ---- */

struct other {
    const char *session_id, *channel, *window_id, *ranges;
    size_t ranges_size;
    uint64_t write_id;
    enum ch_write_state state;
    int64_t number; /* age of the write in seconds */
    uint32_t crc, generation;
};

static bool is_same_window(const struct write_unit *unit, const char *channel, const char *window_id)
{
    return unit->window_id[0] && !strcmp(unit->window_id, window_id) && !strcmp(channel_text(unit->channel), channel);
}

static void lose(struct ch_write *write, gpufl_status status, enum store_delivery delivery)
{
    write->verdict = WRITE_VOID;
    write->status = status;
    if (status) {
        problem_set(&write->problem, status, "the same lines are being delivered twice at once; send again");
        return;
    }
    write->written =
        (struct store_written){.delivery = delivery, .repeated_lines = write->unit.lines + write->unit.repeated_lines};
}

/* A claim is open until its write is committed or void. */
static bool is_settled(const struct other *others, size_t count, const struct other *claim)
{
    for (size_t i = 0; i < count; i++)
        if (others[i].write_id == claim->write_id && others[i].state != WRITE_CLAIMED)
            return true;
    return false;
}

static bool is_of_group(const struct ch_write *first, const struct other *other)
{
    for (; first; first = first->next)
        if (first->write_id == other->write_id)
            return true;
    return false;
}

/* Decides between a write and another one. *waits: cannot be decided yet. */
static void meet(struct ch_write *write, const struct other *other, bool *waits)
{
    const struct write_unit *unit = &write->unit;
    if (strcmp(other->session_id, unit->session_id) != 0 || other->generation != write->generation)
        return;
    bool is_window = is_same_window(unit, other->channel, other->window_id);
    if (!is_window && !ch_ranges_meet(unit->added, other->ranges, other->ranges_size))
        return;
    if (other->state == WRITE_COMMITTED && is_window)
        lose(write, GPUFL_OK, other->crc == unit->crc ? STORE_REPEATED : STORE_CONFLICT);
    else if (other->state == WRITE_COMMITTED || other->write_id < write->write_id)
        lose(write, GPUFL_E_BUSY, STORE_NEW);
    else
        *waits = true;
}

/* Of two conflicting writes in one group the first one counts. */
static void meet_before(struct ch_write *write, const struct ch_write *first)
{
    for (const struct ch_write *before = first; before != write && write->verdict != WRITE_VOID;
         before = before->next) {
        if (before->verdict == WRITE_VOID || strcmp(before->unit.session_id, write->unit.session_id) != 0)
            continue;
        struct bytes ranges = {0};
        ch_ranges_encode(before->unit.added, &ranges);
        bool is_window = is_same_window(&write->unit, channel_text(before->unit.channel), before->unit.window_id);
        if (is_window && before->unit.crc != write->unit.crc)
            lose(write, GPUFL_OK, STORE_CONFLICT);
        else if (is_window || ranges.failed || ch_ranges_meet(write->unit.added, ranges.data, ranges.size))
            lose(write, GPUFL_E_BUSY, STORE_NEW); /* unknown until the end whether the first one is kept */
        bytes_free(&ranges);
    }
}

static void sessions_append(struct bytes *sql, const struct ch_write *first)
{
    bytes_append_text(sql, "session_id IN (");
    for (const struct ch_write *write = first; write; write = write->next) {
        if (write != first)
            bytes_append_char(sql, ',');
        ch_quote_text(sql, write->unit.session_id);
    }
    bytes_append_char(sql, ')');
}

/* Reads the other writes and, as rows of state COUNT_ROW and GENERATION_ROW, the count and the generation of each
 * session. */
static gpufl_status others_read(struct ch_store *store, const struct ch_write *first, struct ch_rows *rows,
                                struct problem *problem)
{
    struct bytes sql = {0};
    int64_t begun_s = INT64_MAX;
    for (const struct ch_write *write = first; write; write = write->next)
        begun_s = write->begun_s < begun_s ? write->begun_s : begun_s;
    bytes_append_text(&sql, "SELECT session_id, write_id, state, toInt64(now()) - toInt64(at) AS number, channel,"
                            " window_id, crc, generation, ranges FROM write WHERE ");
    sessions_append(&sql, first);
    bytes_append_format(&sql, " AND at >= if(state = 1, toDateTime(%lld), now() - %d)",
                        (long long)(begun_s > LOOK_MARGIN_S ? begun_s - LOOK_MARGIN_S : 0), 4 * CLAIM_LIFE_S);
    bytes_append_format(&sql,
                        " UNION ALL SELECT session_id, toUInt64(0) AS write_id, toUInt8(%d) AS state,"
                        " toInt64(countIf(lines > 0)) AS number, '' AS channel, '' AS window_id, toUInt32(0) AS crc,"
                        " generation, '' AS ranges FROM write WHERE state = 1 AND ",
                        COUNT_ROW);
    sessions_append(&sql, first);
    bytes_append_format(&sql,
                        " GROUP BY session_id, generation UNION ALL SELECT session_id, toUInt64(0) AS write_id,"
                        " toUInt8(%d) AS state, toInt64(0) AS number, '' AS channel, '' AS window_id, toUInt32(0) AS"
                        " crc, max(generation) AS generation, '' AS ranges FROM change WHERE ",
                        GENERATION_ROW);
    sessions_append(&sql, first);
    bytes_append_text(&sql, " GROUP BY session_id");
    gpufl_status status = ch_select_latest(store->client, "write", &sql, rows, problem);
    bytes_free(&sql);
    return status;
}

/* A session that was deleted since its write began starts again with the next delivery. */
static gpufl_status session_judge(struct ch_write *first, const struct other *row)
{
    gpufl_status status = GPUFL_OK;
    for (struct ch_write *write = first; write; write = write->next) {
        if (strcmp(write->unit.session_id, row->session_id) != 0)
            continue;
        if ((int)row->state == GENERATION_ROW && write->generation != row->generation)
            lose(write, GPUFL_E_BUSY, STORE_NEW);
        if ((int)row->state == COUNT_ROW && write->generation == row->generation)
            write->written.revision = row->number;
        if (row->state == WRITE_COMMITTED && write->generation == row->generation && !status)
            status = ch_ranges_add(write->unit.known, row->ranges, row->ranges_size);
    }
    return status;
}

static void others_judge(struct ch_write *first, const struct other *others, size_t count, bool *waits)
{
    for (struct ch_write *write = first; write; write = write->next) {
        bool is_waiting = false;
        for (size_t i = 0; i < count && write->verdict != WRITE_VOID; i++) {
            const struct other *other = &others[i];
            if (other->state >= WRITE_VOID || is_of_group(first, other) ||
                (other->state == WRITE_CLAIMED && (other->number >= CLAIM_LIFE_S || is_settled(others, count, other))))
                continue;
            meet(write, other, &is_waiting);
        }
        if (write->verdict != WRITE_VOID)
            meet_before(write, first);
        *waits |= is_waiting && write->verdict != WRITE_VOID;
    }
}

static gpufl_status look_around(struct ch_store *store, struct ch_write *first, bool *waits, struct problem *problem)
{
    struct ch_rows rows = {0};
    struct other *others = NULL;
    size_t count = 0, capacity = 0;
    gpufl_status status = others_read(store, first, &rows, problem);
    while (!status && ch_rows_next(&rows)) {
        if (count == capacity) {
            capacity = capacity ? capacity * 2 : 64;
            struct other *grown = realloc(others, capacity * sizeof *grown);
            if (!grown) {
                status = problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for a commit");
                break;
            }
            others = grown;
        }
        struct other *other = &others[count++];
        other->session_id = ch_text(&rows, NULL);
        other->write_id = ch_u64(&rows);
        other->state = (enum ch_write_state)ch_u8(&rows);
        other->number = ch_i64(&rows);
        other->channel = ch_text(&rows, NULL);
        other->window_id = ch_text(&rows, NULL);
        other->crc = ch_u32(&rows);
        other->generation = ch_u32(&rows);
        other->ranges = ch_text(&rows, &other->ranges_size);
    }
    if (!status)
        status = ch_rows_end(&rows, problem);
    if (!status)
        for (size_t i = 0; i < count && !status; i++)
            status = session_judge(first, &others[i]);
    if (!status)
        others_judge(first, others, count, waits);
    free(others);
    ch_rows_free(&rows);
    return status;
}

static gpufl_status verdicts_find(struct ch_store *store, struct ch_write *first, struct problem *problem)
{
    gpufl_status status = GPUFL_OK;
    bool waits = true;
    for (unsigned looks = 0; !status && waits && looks < LOOKS_MAX; looks++) {
        if (looks)
            nanosleep(&(struct timespec){.tv_nsec = LOOK_WAIT_MS * 1000000L}, NULL);
        waits = false;
        status = look_around(store, first, &waits, problem);
    }
    /* The outcome of the other write is still unknown: a write that has waited too long withdraws. */
    for (struct ch_write *write = first; write && !status; write = write->next)
        if (write->verdict != WRITE_VOID) {
            write->verdict = waits ? WRITE_VOID : WRITE_COMMITTED;
            if (waits)
                lose(write, GPUFL_E_BUSY, STORE_NEW);
        }
    return status;
}

/* Claims and data are inserted in parallel: nothing counts before the commit rows, which are written after both. */
static gpufl_status claims_insert(struct ch_store *store, struct ch_write *first, int64_t deadline_ns,
                                  struct problem *problem)
{
    struct ch_batch batches[DATA_BATCHES + 1];
    ch_data_make(first, batches);
    batches[DATA_BATCHES] = (struct ch_batch){.into = "write (" CLAIM_COLUMNS ")"};
    for (const struct ch_write *write = first; write; write = write->next)
        claim_put(write, WRITE_CLAIMED, &batches[DATA_BATCHES].rows);
    gpufl_status status = ch_insert_all(store->client, batches, DATA_BATCHES + 1, deadline_ns, problem);
    for (unsigned i = 0; i <= DATA_BATCHES; i++)
        bytes_free(&batches[i].rows);
    return status;
}

static gpufl_status known_join(struct ch_write *write, const struct sequence_set added[SEQUENCE_KINDS])
{
    gpufl_status status = GPUFL_OK;
    for (unsigned kind = 0; kind < SEQUENCE_KINDS; kind++)
        for (size_t i = 0; i < added[kind].count && !status; i++)
            status =
                sequence_set_add(&write->unit.known[kind], added[kind].ranges[i].first, added[kind].ranges[i].last);
    return status;
}

/* A commit row lists the lines that the session has including this write, so that readers need not scan all rows. */
static gpufl_status known_sum(struct ch_write *first, struct problem *problem)
{
    gpufl_status status = GPUFL_OK;
    for (struct ch_write *write = first; write && !status; write = write->next)
        for (const struct ch_write *before = first; before != write->next && !status; before = before->next)
            if (before->verdict == WRITE_COMMITTED && !strcmp(before->unit.session_id, write->unit.session_id))
                status = known_join(write, before->unit.added);
    return status ? problem_set(problem, status, "too many gaps in the line numbers of a session") : GPUFL_OK;
}

/* Counts revisions as if the writes had been committed one after the other. */
static void revisions_count(struct ch_write *first)
{
    for (struct ch_write *write = first; write; write = write->next)
        for (const struct ch_write *before = first; before != write->next; before = before->next)
            write->written.revision += before->verdict == WRITE_COMMITTED && before->unit.lines &&
                                       !strcmp(before->unit.session_id, write->unit.session_id);
}

void ch_group_commit(struct ch_store *store, struct ch_write *first)
{
    struct problem problem = {""};
    for (struct ch_write *write = first; write; write = write->next) {
        const struct write_unit *unit = &write->unit;
        write->received_ns = ch_unique_ns(store);
        write->written = (struct store_written){
            .lines = unit->lines, .repeated_lines = unit->repeated_lines, .rows = (uint64_t)unit->sums.facts.rows};
    }
    /* The claim's lifetime starts here. Half of it remains for other servers to see the claim after this server's
     * deadline. */
    int64_t deadline_ns = clock_mono_ns() + CLAIM_LIFE_S / 2 * INT64_C(1000000000);
    gpufl_status status = claims_insert(store, first, deadline_ns, &problem);
    if (!status)
        status = verdicts_find(store, first, &problem);
    if (!status && clock_mono_ns() >= deadline_ns)
        status = problem_set(&problem, GPUFL_E_BUSY, "ClickHouse is too slow; send again");
    if (!status)
        status = known_sum(first, &problem);
    bool is_sent = !status;
    if (is_sent)
        status = rows_insert(store, first, WRITE_COMMITTED, deadline_ns, &problem);
    for (struct ch_write *write = first; status && write; write = write->next) {
        if (write->status)
            continue;
        write->status = status;
        write->problem = problem;
        write->verdict = WRITE_VOID;
    }
    /* A void row releases waiting writers; without one the claim expires. If it is unknown whether the commit rows
     * arrived, no void row is written: if they arrived they count, and a repeated delivery finds them. */
    if (!is_sent || !status)
        (void)!rows_insert(store, first, WRITE_VOID, 0, NULL);
    if (!status)
        revisions_count(first);
}
