/* SPDX-License-Identifier: Apache-2.0 */
#include "store/clickhouse_client.h"

#include "base/clock.h"
#include "store/clickhouse_connection.h"
#include "store/clickhouse_error.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    REQUEST_TIMEOUT_MS = 60000,
    ROUNDS = 2,               /* through the list of hosts */
    RETURN_S = 10,            /* how long another host is used before the first one is tried again */
    QUORUM_TIMEOUT_MS = 4000, /* a replica that does not answer within this time is considered dead */
    QUORUM_PAUSE_S = 10,      /* and is not waited for during this time */
    SYNC_TRIES = 4,
    PREVIOUS_TRIES = 100,
    PREVIOUS_WAIT_MS = 40
};

struct ch_client {
    struct ch_location location;
    struct ch_connections *connections;
    atomic_bool lacks_types; /* a host is too old to include column types in its answers */
    pthread_mutex_t mutex;   /* guards everything below */
    unsigned host;           /* index of the host that gets requests */
    uint64_t host_changes;
    bool has_tables;
    unsigned synced;        /* index + 1 of the host that is known to be in sync; 0: unknown */
    int64_t host_until_ns;  /* when the first host is tried again */
    int64_t quorum_from_ns; /* when inserts ask for two replicas again */
};

gpufl_status ch_client_open(struct ch_client **out, const struct ch_location *location, struct problem *problem)
{
    struct ch_client *client = calloc(1, sizeof *client);
    if (client)
        client->connections = ch_connections_open(&client->location);
    if (!client || !client->connections) {
        free(client);
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for the store");
    }
    client->location = *location;
    pthread_mutex_init(&client->mutex, NULL);
    *out = client;
    return GPUFL_OK;
}

void ch_client_close(struct ch_client *client)
{
    if (!client)
        return;
    ch_connections_close(client->connections);
    pthread_mutex_destroy(&client->mutex);
    explicit_bzero(client->location.password, sizeof client->location.password);
    free(client);
}

/* ---- choosing a host ---- */

static unsigned host_first(struct ch_client *client)
{
    pthread_mutex_lock(&client->mutex);
    if (client->host && clock_mono_ns() >= client->host_until_ns) {
        client->host = 0;
        client->host_changes++;
    }
    unsigned host = client->host;
    pthread_mutex_unlock(&client->mutex);
    return host;
}

static void host_use(struct ch_client *client, unsigned host)
{
    pthread_mutex_lock(&client->mutex);
    if (client->host != host) {
        client->host = host;
        client->host_changes++;
        client->host_until_ns = clock_mono_ns() + RETURN_S * INT64_C(1000000000);
    }
    pthread_mutex_unlock(&client->mutex);
}

void ch_client_ready(struct ch_client *client)
{
    pthread_mutex_lock(&client->mutex);
    client->has_tables = true;
    pthread_mutex_unlock(&client->mutex);
}

/* A host that was not used recently may have been down: it first syncs the catalog tables from the other replicas. */
static gpufl_status host_sync(struct ch_client *client, unsigned host, bool *is_usable, struct problem *problem)
{
    static const char *const tables[] = {"write", "change"};
    struct bytes body = {0};
    struct ch_reply reply;
    char statement[160];
    gpufl_status status = GPUFL_OK;
    pthread_mutex_lock(&client->mutex);
    *is_usable = !client->has_tables || !client->location.cluster[0] || client->synced == host + 1;
    pthread_mutex_unlock(&client->mutex);
    if (*is_usable)
        return GPUFL_OK;
    *is_usable = true;
    for (size_t i = 0; i < sizeof tables / sizeof *tables && !status && *is_usable; i++) {
        snprintf(statement, sizeof statement, "SYSTEM SYNC REPLICA %s.%s", client->location.database, tables[i]);
        const struct ch_request request = {
            .parameters = "", .body = statement, .size = strlen(statement), .timeout_ms = REQUEST_TIMEOUT_MS};
        status = ch_connection_ask(client->connections, host, &request, &body, &reply, problem);
        *is_usable = reply.http_status == 200;
    }
    bytes_free(&body);
    if (!status && *is_usable) {
        pthread_mutex_lock(&client->mutex);
        client->synced = host + 1;
        pthread_mutex_unlock(&client->mutex);
    }
    return status;
}

/* The host did not answer, or it reported an internal problem: it may lag behind when it is back. */
static void host_doubt(struct ch_client *client, unsigned host)
{
    pthread_mutex_lock(&client->mutex);
    if (client->synced == host + 1)
        client->synced = 0;
    pthread_mutex_unlock(&client->mutex);
}

/* True when asking the next host is unnecessary or not allowed. */
static bool is_final(const struct ch_reply *reply, const struct ch_request *request)
{
    if (reply->http_status == 200 || (reply->http_status && !ch_error_is_of_host(reply->code)))
        return true;
    return request->is_once && !reply->is_unsent && !ch_error_is_refusal(reply->code);
}

/* Asks the first host that can answer. GPUFL_E_BUSY: no host can, or it is unknown whether the last one carried out the
 * request. */
static gpufl_status ask(struct ch_client *client, const struct ch_request *request, struct bytes *body,
                        struct ch_reply *reply, struct problem *problem)
{
    unsigned count = client->location.host_count, first = host_first(client), host = first;
    bool is_done = false;
    *reply = (struct ch_reply){0};
    for (unsigned i = 0; i < count * ROUNDS && !is_done && (!i || !ch_request_is_late(request)); i++) {
        bool is_usable;
        host = (first + i) % count;
        gpufl_status status = host_sync(client, host, &is_usable, problem);
        if (!status && !is_usable)
            continue;
        if (!status)
            status = ch_connection_ask(client->connections, host, request, body, reply, problem);
        if (status)
            return status;
        if (!reply->http_status || ch_error_is_of_host(reply->code))
            host_doubt(client, host);
        is_done = is_final(reply, request);
    }
    if (!reply->http_status && is_done)
        return problem_set(problem, GPUFL_E_BUSY,
                           "the connection to ClickHouse host %s was lost after the request was sent; send again: %s",
                           client->location.hosts[host], reply->reason);
    if (!reply->http_status)
        return problem_set(problem, GPUFL_E_BUSY, "no ClickHouse host answers; the last one tried, %s, reports: %s",
                           client->location.hosts[host], reply->reason);
    if (is_done && !ch_error_is_of_host(reply->code))
        host_use(client, host);
    return GPUFL_OK;
}

static gpufl_status select_in(struct ch_client *client, const char *database, struct bytes *sql, struct ch_rows *rows,
                              struct problem *problem)
{
    struct ch_reply reply;
    char parameters[512];
    size_t size = sql->size;
    bool has_types = !atomic_load(&client->lacks_types);
    /* ClickHouse completes the answer before it sends the first byte, so an error is reported by the HTTP status. */
    snprintf(parameters, sizeof parameters,
             "database=%s&wait_end_of_query=1&max_query_size=67108864&max_ast_elements=1000000&"
             "max_expanded_ast_elements=2000000%s",
             database,
             client->location.cluster[0] ? "&load_balancing=in_order&max_replica_delay_for_distributed_queries=5" : "");
    rows->at = rows->begin = rows->column_count = 0;
    rows->is_damaged = false;
    ch_rows_rewind(rows);
    bytes_append_text(sql, has_types ? " FORMAT RowBinaryWithNamesAndTypes" : " FORMAT RowBinary");
    if (sql->failed)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for a request to ClickHouse");
    const struct ch_request request = {
        .parameters = parameters, .body = sql->data, .size = sql->size, .timeout_ms = REQUEST_TIMEOUT_MS};
    gpufl_status status = ask(client, &request, &rows->body, &reply, problem);
    if (!status && reply.code == CODE_UNKNOWN_FORMAT && has_types) {
        atomic_store(&client->lacks_types, true);
        sql->size = size;
        return select_in(client, database, sql, rows, problem);
    }
    if (!status && reply.http_status == 200 && has_types)
        ch_rows_describe(rows);
    return status || reply.http_status == 200 ? status
                                              : ch_error_status(reply.code, reply.http_status, &rows->body, problem);
}

gpufl_status ch_select(struct ch_client *client, struct bytes *sql, struct ch_rows *rows, struct problem *problem)
{
    return select_in(client, client->location.database, sql, rows, problem);
}

gpufl_status ch_select_outside(struct ch_client *client, struct bytes *sql, struct ch_rows *rows,
                               struct problem *problem)
{
    return select_in(client, "system", sql, rows, problem);
}

static uint64_t host_changes(struct ch_client *client)
{
    pthread_mutex_lock(&client->mutex);
    uint64_t changes = client->host_changes;
    pthread_mutex_unlock(&client->mutex);
    return changes;
}

gpufl_status ch_select_latest(struct ch_client *client, const char *table, struct bytes *sql, struct ch_rows *rows,
                              struct problem *problem)
{
    char statement[256];
    snprintf(statement, sizeof statement, "SYSTEM SYNC REPLICA %s.%s", client->location.database, table);
    size_t size = sql->size;
    /* Both requests must go to the same host. */
    for (unsigned tries = 0; tries < SYNC_TRIES; tries++) {
        sql->size = size;
        gpufl_status status = client->location.cluster[0] ? ch_run(client, statement, "", problem) : GPUFL_OK;
        uint64_t changes = host_changes(client);
        if (!status)
            status = ch_select(client, sql, rows, problem);
        if (status || changes == host_changes(client))
            return status;
    }
    return problem_set(problem, GPUFL_E_BUSY, "the ClickHouse hosts are changing; try again");
}

gpufl_status ch_run(struct ch_client *client, const char *sql, const char *settings, struct problem *problem)
{
    struct bytes body = {0};
    struct ch_reply reply;
    const struct ch_request request = {
        .parameters = settings, .body = sql, .size = strlen(sql), .timeout_ms = 3 * REQUEST_TIMEOUT_MS};
    gpufl_status status = ask(client, &request, &body, &reply, problem);
    if (!status && reply.http_status != 200)
        status = ch_error_status(reply.code, reply.http_status, &body, problem);
    bytes_free(&body);
    return status;
}

/* ---- inserts ---- */

static bool quorum_wanted(struct ch_client *client)
{
    pthread_mutex_lock(&client->mutex);
    bool is_wanted = client->location.cluster[0] && clock_mono_ns() >= client->quorum_from_ns;
    pthread_mutex_unlock(&client->mutex);
    return is_wanted;
}

static void quorum_pause(struct ch_client *client)
{
    pthread_mutex_lock(&client->mutex);
    client->quorum_from_ns = clock_mono_ns() + QUORUM_PAUSE_S * INT64_C(1000000000);
    pthread_mutex_unlock(&client->mutex);
}

static void parameters_make(const struct ch_client *client, const char *into, bool has_quorum, struct bytes *out)
{
    bytes_append_format(out, "database=%s", client->location.database);
    if (client->location.cluster[0])
        bytes_append_text(out, "&insert_distributed_sync=1&load_balancing=in_order");
    if (has_quorum)
        bytes_append_format(out, "&insert_quorum=2&insert_quorum_timeout=%d", QUORUM_TIMEOUT_MS);
    bytes_append_text(out, "&query=INSERT%20INTO%20");
    for (; *into; into++)
        if (*into == ' ')
            bytes_append_text(out, "%20");
        else
            bytes_append_char(out, *into);
    bytes_append_text(out, "%20FORMAT%20RowBinary");
    bytes_append_char(out, '\0');
}

/* Rows are sent again only if they were certainly not accepted. ClickHouse deduplicates identical rows by their hash,
 * but not if a column holds the time of the insert, nor in tables that are not replicated. Rows that only a dead host
 * had accepted with a quorum are later discarded by the other replicas, with or without a matching hash. */
gpufl_status ch_insert(struct ch_client *client, const char *into, const struct bytes *rows, struct problem *problem)
{
    return ch_insert_until(client, into, rows, 0, problem);
}

gpufl_status ch_insert_until(struct ch_client *client, const char *into, const struct bytes *rows, int64_t deadline_ns,
                             struct problem *problem)
{
    struct bytes body = {0}, parameters = {0};
    struct ch_reply reply;
    gpufl_status status = rows->failed ? problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for rows") : GPUFL_OK;
    bool has_quorum = quorum_wanted(client);
    for (unsigned tries = 0; !status && rows->size;) {
        bytes_clear(&parameters);
        parameters_make(client, into, has_quorum, &parameters);
        if (parameters.failed) {
            status = problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for a request to ClickHouse");
            break;
        }
        const struct ch_request request = {.parameters = parameters.data,
                                           .body = rows->data,
                                           .size = rows->size,
                                           .timeout_ms = REQUEST_TIMEOUT_MS,
                                           .deadline_ns = deadline_ns,
                                           .is_once = true};
        status = ask(client, &request, &body, &reply, problem);
        if (status || reply.http_status == 200)
            break;
        /* Another insert with a quorum is in progress: older servers accept one at a time. */
        if (has_quorum && reply.code == CODE_QUORUM_PREVIOUS && tries++ < PREVIOUS_TRIES &&
            !ch_request_is_late(&request)) {
            nanosleep(&(struct timespec){.tv_nsec = PREVIOUS_WAIT_MS * 1000000L}, NULL);
            continue;
        }
        bool is_refused = reply.code == CODE_TOO_FEW_REPLICAS || reply.code == CODE_QUORUM_PREVIOUS;
        if (has_quorum && (is_refused || reply.code == CODE_QUORUM_UNKNOWN || reply.code == CODE_TIMEOUT))
            quorum_pause(client); /* the second replica is down */
        if (has_quorum && is_refused && !ch_request_is_late(&request)) {
            has_quorum = false;
            continue;
        }
        status = ch_error_status(reply.code, reply.http_status, &body, problem);
    }
    bytes_free(&body);
    bytes_free(&parameters);
    return status;
}
