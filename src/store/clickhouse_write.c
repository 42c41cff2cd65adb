/* SPDX-License-Identifier: Apache-2.0 */
/* Deliveries up to their commit, and the thread that commits many of them together: ClickHouse prefers few, large
 * inserts. */
#include "store/clickhouse_store.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

enum { GROUP_BYTES_MAX = 64 << 20, GROUP_WRITES_MAX = 1024, UPKEEP_S = 3600 };

/* One row about the session's stored state. */
struct known_row {
    int64_t now_s; /* of the first row, which holds the time and the generation even if the session is new */
    uint32_t generation, crc;
    const char *channel, *window_id, *known, *host;
    size_t channel_size, window_size, known_size, host_size;
};

static struct known_row known_next(struct ch_rows *rows)
{
    struct known_row row = {.now_s = ch_i64(rows)};
    row.generation = ch_u32(rows);
    row.channel = ch_peek(rows, &row.channel_size);
    row.window_id = ch_peek(rows, &row.window_size);
    row.crc = ch_u32(rows);
    row.known = ch_peek(rows, &row.known_size);
    row.host = ch_peek(rows, &row.host_size);
    return row;
}

/* Reads the row's GPUs; machine NULL: skips them. */
static void gpus_next(struct ch_rows *rows, struct ch_machine *machine)
{
    int64_t devices[FACT_GPUS_MAX];
    size_t count = ch_count(rows), size;
    for (size_t i = 0; i < count; i++) {
        int64_t device_id = ch_i64(rows);
        if (i < FACT_GPUS_MAX)
            devices[i] = device_id;
    }
    size_t uuids = ch_count(rows);
    for (size_t i = 0; i < uuids; i++) {
        const char *uuid = ch_peek(rows, &size);
        if (machine && i < count && i < FACT_GPUS_MAX)
            ch_machine_learn_gpu(machine, devices[i], uuid, size);
    }
}

static bool is_text(const char *text, const char *bytes, size_t size)
{
    return strlen(text) == size && !memcmp(text, bytes, size);
}

static gpufl_status known_take(struct ch_write *write, struct ch_rows *rows, enum store_delivery *delivery)
{
    struct write_unit *unit = &write->unit;
    gpufl_status status = GPUFL_OK;
    for (ch_rows_rewind(rows); ch_rows_next(rows) && !status;) {
        const struct known_row row = known_next(rows);
        bool is_ours = !row.now_s && row.generation == write->generation;
        gpus_next(rows, is_ours ? &write->machine : NULL);
        if (!is_ours)
            continue;
        ch_machine_learn(&write->machine, row.host, row.host_size);
        status = ch_ranges_add(unit->known, row.known, row.known_size);
        if (unit->window_id[0] && is_text(unit->window_id, row.window_id, row.window_size) &&
            is_text(channel_text(unit->channel), row.channel, row.channel_size))
            *delivery = row.crc == unit->crc ? STORE_REPEATED : STORE_CONFLICT;
    }
    return status;
}

/* Loads what is stored of the session: line numbers, machine, and the window if it exists. */
static gpufl_status known_load(struct ch_store *store, struct ch_write *write, enum store_delivery *delivery,
                               struct problem *problem)
{
    struct bytes sql = {0};
    struct ch_rows rows = {0};
    const struct write_unit *unit = &write->unit;
    bytes_append_text(&sql, "SELECT now_s, generation, channel, window_id, crc, known, host, gpu_device, gpu_uuid FROM"
                            " (SELECT toInt64(now()) AS now_s, toUInt32(max(generation)) AS generation, '' AS channel,"
                            " '' AS window_id, toUInt32(0) AS crc, '' AS known, '' AS host, emptyArrayInt64() AS"
                            " gpu_device, emptyArrayString() AS gpu_uuid, toInt64(0) AS received_ns FROM change WHERE"
                            " session_id = ");
    ch_quote_text(&sql, unit->session_id);
    bytes_append_text(&sql, " UNION ALL SELECT toInt64(0) AS now_s, generation, channel, window_id, crc, known, host,"
                            " gpu_device, gpu_uuid, received_ns FROM write WHERE state = 1 AND session_id = ");
    ch_quote_text(&sql, unit->session_id);
    /* A commit row lists all lines committed up to half a claim's lifetime before it, so the latest commit rows
     * together list all of them. */
    bytes_append_text(&sql, " AND (at >= (SELECT max(at) FROM write WHERE state = 1 AND session_id = ");
    ch_quote_text(&sql, unit->session_id);
    bytes_append_format(
        &sql, ") - %d OR host != '' OR notEmpty(gpu_device) OR (window_id != '' AND window_id = ", 2 * CLAIM_LIFE_S);
    ch_quote_text(&sql, unit->window_id);
    bytes_append_text(&sql, "))) ORDER BY received_ns");
    gpufl_status status = ch_select(store->client, &sql, &rows, problem);
    /* The first row has no received_ns and is therefore sorted first. */
    if (!status && ch_rows_next(&rows)) {
        const struct known_row row = known_next(&rows);
        write->begun_s = row.now_s;
        write->generation = row.generation;
        status = known_take(write, &rows, delivery);
        if (status)
            problem_set(problem, status, "the line numbers of session %s cannot be read", write->unit.session_id);
    }
    if (!status)
        status = ch_rows_end(&rows, problem);
    ch_rows_free(&rows);
    bytes_free(&sql);
    return status;
}

gpufl_status ch_write_begin(struct store *base, const struct store_identity *identity, struct store_write **out,
                            enum store_delivery *delivery, struct problem *problem)
{
    struct ch_store *store = ch_store_of(base);
    struct ch_write *write = calloc(1, sizeof *write);
    *delivery = STORE_NEW;
    if (!write)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for a delivery");
    write->base.store = base;
    write_unit_init(&write->unit, identity, store->options.write_bytes_max);
    gpufl_status status = GPUFL_OK;
    if (getrandom(&write->write_id, sizeof write->write_id, 0) != (ssize_t)sizeof write->write_id)
        status = problem_set(problem, GPUFL_E_IO, "no random number for a delivery");
    if (!status)
        status = known_load(store, write, delivery, problem);
    if (status || *delivery != STORE_NEW) {
        ch_write_abort(&write->base);
        return status;
    }
    *out = &write->base;
    return GPUFL_OK;
}

gpufl_status ch_write_line(struct store_write *write, const struct log_line *line, const char *text, size_t size,
                           bool *is_repeated, struct problem *problem)
{
    return write_unit_line(&ch_write_of(write)->unit, line, text, size, is_repeated, problem);
}

void ch_write_name(struct store_write *write, const char *window_id, uint32_t crc)
{
    struct write_unit *unit = &ch_write_of(write)->unit;
    snprintf(unit->window_id, sizeof unit->window_id, "%s", window_id);
    unit->crc = crc;
}

void ch_write_abort(struct store_write *base)
{
    struct ch_write *write = ch_write_of(base);
    write_unit_free(&write->unit);
    free(write);
}

gpufl_status ch_write_commit(struct store_write *base, struct store_written *written, struct problem *problem)
{
    struct ch_store *store = ch_store_of(base->store);
    struct ch_write *write = ch_write_of(base);
    gpufl_status status = write_unit_finish(&write->unit, problem);
    uint64_t bytes = write_unit_bytes(&write->unit);
    pthread_mutex_lock(&store->mutex);
    if (!status && store->queue_count && store->queue_bytes + bytes > store->options.queue_bytes_max)
        status = problem_set(problem, GPUFL_E_BUSY, "too many writes wait for ClickHouse; try again");
    if (!status) {
        *(store->last ? &store->last->next : &store->first) = write;
        store->last = write;
        store->queue_count++;
        store->queue_bytes += bytes;
        pthread_cond_signal(&store->changed);
        while (!write->is_done)
            pthread_cond_wait(&store->done, &store->mutex);
        store->queue_bytes -= bytes;
        status = write->status;
        if (status && problem)
            *problem = write->problem;
    }
    pthread_mutex_unlock(&store->mutex);
    if (!status)
        *written = write->written;
    ch_write_abort(base);
    return status;
}

static void group_end(struct ch_store *store, struct ch_write *first)
{
    pthread_mutex_lock(&store->mutex);
    store->commit_groups++;
    for (struct ch_write *write = first, *next; write; write = next) {
        next = write->next; /* the owner may free the write once it sees is_done */
        store->queue_count--;
        *(write->status ? &store->failed_commits : &store->commits) += 1;
        if (!write->status)
            store->last_commit_ns = clock_wall_ns();
        store->commit_status = write->status;
        store->commit_problem = write->problem;
        write->is_done = true;
    }
    pthread_cond_broadcast(&store->done);
}

void *ch_writer_main(void *arg)
{
    struct ch_store *store = arg;
    int64_t upkeep_ns = clock_mono_ns();
    pthread_mutex_lock(&store->mutex);
    for (;;) {
        while (!store->first && !store->is_closing)
            pthread_cond_wait(&store->changed, &store->mutex);
        if (!store->first)
            break;
        /* Writes that arrived while the previous group was written form the next group. */
        struct ch_write *first = store->first, *last = first;
        uint64_t bytes = write_unit_bytes(&first->unit), count = 1;
        for (; last->next && count < GROUP_WRITES_MAX; last = last->next, count++) {
            bytes += write_unit_bytes(&last->next->unit);
            if (bytes > GROUP_BYTES_MAX)
                break;
        }
        store->first = last->next;
        if (!store->first)
            store->last = NULL;
        last->next = NULL;
        pthread_mutex_unlock(&store->mutex);
        ch_group_commit(store, first);
        group_end(store, first); /* unlocks and locks the mutex */
        if (store->options.no_background || clock_mono_ns() - upkeep_ns < UPKEEP_S * INT64_C(1000000000))
            continue;
        upkeep_ns = clock_mono_ns();
        pthread_mutex_unlock(&store->mutex);
        (void)!ch_maintain(&store->base, NULL); /* tried again in an hour */
        pthread_mutex_lock(&store->mutex);
    }
    pthread_mutex_unlock(&store->mutex);
    return NULL;
}
