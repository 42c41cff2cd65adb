/* SPDX-License-Identifier: Apache-2.0 */
#include "store/clickhouse_client.h"

#include "base/clock.h"
#include "store/clickhouse_error.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    CONNECT_TIMEOUT_MS = 3000,
    REQUEST_TIMEOUT_MS = 60000,
    IDLE_MAX = 16,
    ANSWER_BYTES_MAX = 1 << 30,
    ROUNDS = 2,               /* through the hosts */
    RETURN_S = 10,            /* how long another host than the first is used before the first is tried again */
    QUORUM_TIMEOUT_MS = 4000, /* a replica that died is given up after this */
    QUORUM_PAUSE_S = 10,      /* and not waited for again for this long */
    SYNC_TRIES = 4,
    PREVIOUS_TRIES = 100,
    PREVIOUS_WAIT_MS = 40
};

struct handle {
    CURL *curl;
    unsigned host; /* that it is connected to */
    struct handle *next;
};

struct ch_client {
    struct ch_location location;
    pthread_mutex_t mutex; /* everything below */
    struct handle *idle;
    unsigned idle_count;
    unsigned host; /* where requests go */
    uint64_t host_changes;
    bool has_tables;
    unsigned synced;        /* the host, and one more, that is known not to lag behind; 0: none */
    int64_t host_until_ns;  /* when the first one is tried again */
    int64_t quorum_from_ns; /* when two replicas are asked for again */
};

static pthread_once_t global_once = PTHREAD_ONCE_INIT;
static void global_setup(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

gpufl_status ch_client_open(struct ch_client **out, const struct ch_location *location, struct problem *problem)
{
    struct ch_client *client = calloc(1, sizeof *client);
    if (!client)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for the store");
    pthread_once(&global_once, global_setup);
    client->location = *location;
    pthread_mutex_init(&client->mutex, NULL);
    *out = client;
    return GPUFL_OK;
}

static void handle_free(struct handle *handle)
{
    curl_easy_cleanup(handle->curl);
    free(handle);
}

void ch_client_close(struct ch_client *client)
{
    if (!client)
        return;
    while (client->idle) {
        struct handle *handle = client->idle;
        client->idle = handle->next;
        handle_free(handle);
    }
    pthread_mutex_destroy(&client->mutex);
    explicit_bzero(client->location.password, sizeof client->location.password);
    free(client);
}

/* ---- one request to one host ---- */

struct answer {
    struct bytes *body;
    bool is_too_large;
};

static size_t body_take(char *data, size_t unit, size_t count, void *user)
{
    struct answer *answer = user;
    size_t size = unit * count;
    if (size > ANSWER_BYTES_MAX - answer->body->size)
        answer->is_too_large = true;
    else
        bytes_append(answer->body, data, size);
    return answer->is_too_large || answer->body->failed ? 0 : size;
}

static struct handle *handle_take(struct ch_client *client, unsigned host)
{
    struct handle *handle = NULL;
    pthread_mutex_lock(&client->mutex);
    for (struct handle **at = &client->idle; *at; at = &(*at)->next)
        if ((*at)->host == host) {
            handle = *at;
            *at = handle->next;
            client->idle_count--;
            break;
        }
    pthread_mutex_unlock(&client->mutex);
    if (handle)
        return handle;
    handle = calloc(1, sizeof *handle);
    if (handle && !(handle->curl = curl_easy_init())) {
        free(handle);
        return NULL;
    }
    if (handle)
        handle->host = host;
    return handle;
}

static void handle_give(struct ch_client *client, struct handle *handle, bool is_good)
{
    pthread_mutex_lock(&client->mutex);
    if (is_good && client->idle_count < IDLE_MAX) {
        handle->next = client->idle;
        client->idle = handle;
        client->idle_count++;
        handle = NULL;
    }
    pthread_mutex_unlock(&client->mutex);
    if (handle)
        handle_free(handle);
}

struct request {
    const char *parameters; /* of the address, escaped */
    const void *body;
    size_t size;
    long timeout_ms;
    int64_t deadline_ns; /* 0: none */
};

/* What is left for one try. */
static long request_timeout_ms(const struct request *request)
{
    int64_t left_ms = request->deadline_ns ? (request->deadline_ns - clock_mono_ns()) / 1000000 : request->timeout_ms;
    return left_ms < 1 ? 1 : left_ms < request->timeout_ms ? (long)left_ms : request->timeout_ms;
}

static bool is_late(const struct request *request)
{
    return request->deadline_ns && clock_mono_ns() >= request->deadline_ns;
}

static bool handle_prepare(const struct ch_client *client, CURL *curl, const char *url, const struct request *request,
                           struct answer *answer, char *reason)
{
    const struct ch_location *location = &client->location;
    curl_easy_reset(curl);
    bool is_good =
        !curl_easy_setopt(curl, CURLOPT_URL, url) && !curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) &&
        !curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https") && !curl_easy_setopt(curl, CURLOPT_PROXY, "") &&
        !curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS) &&
        !curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, request_timeout_ms(request)) &&
        !curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L) && !curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, reason) &&
        !curl_easy_setopt(curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC) &&
        !curl_easy_setopt(curl, CURLOPT_USERNAME, location->user) &&
        !curl_easy_setopt(curl, CURLOPT_PASSWORD, location->password) &&
        !curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, body_take) &&
        !curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer) && !curl_easy_setopt(curl, CURLOPT_POST, 1L) &&
        !curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body) &&
        !curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->size);
    return is_good && (!location->ca_file[0] || !curl_easy_setopt(curl, CURLOPT_CAINFO, location->ca_file));
}

/* What one host said: its HTTP status, 0 when none came, then with the reason. */
static gpufl_status host_ask(struct ch_client *client, unsigned host, const struct request *request, struct bytes *body,
                             long *http_status, char reason[CURL_ERROR_SIZE], struct problem *problem)
{
    struct bytes url = {0};
    struct answer answer = {.body = body};
    /* Without this header curl asks for a go-ahead first, which costs a round trip. */
    struct curl_slist *headers = curl_slist_append(NULL, "Expect:");
    struct handle *handle = handle_take(client, host);
    gpufl_status status = GPUFL_OK;
    bytes_clear(body);
    *http_status = 0;
    reason[0] = '\0';
    bytes_append_format(&url, "%s://%s/?%s", client->location.has_tls ? "https" : "http", client->location.hosts[host],
                        request->parameters);
    bytes_append_char(&url, '\0');
    if (!headers || !handle || url.failed ||
        !handle_prepare(client, handle->curl, url.data, request, &answer, reason) ||
        curl_easy_setopt(handle->curl, CURLOPT_HTTPHEADER, headers)) {
        status = GPUFL_E_NO_MEMORY;
        (void)problem_set(problem, status, "no memory for a request to ClickHouse");
    }
    CURLcode code = status ? CURLE_OK : curl_easy_perform(handle->curl);
    if (!status && !code)
        curl_easy_getinfo(handle->curl, CURLINFO_RESPONSE_CODE, http_status);
    else if (!status && body->failed)
        status = problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for ClickHouse's answer");
    else if (!status && answer.is_too_large)
        status = problem_set(problem, GPUFL_E_LIMIT, "ClickHouse's answer is larger than 1 GiB");
    else if (!status && !reason[0])
        snprintf(reason, CURL_ERROR_SIZE, "%s", curl_easy_strerror(code));
    if (handle)
        handle_give(client, handle, !status && !code);
    curl_slist_free_all(headers);
    bytes_free(&url);
    return status;
}

/* ---- through the hosts ---- */

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

/* A host that is used anew may have been away: it first gets what the others have of the catalog. */
static gpufl_status host_sync(struct ch_client *client, unsigned host, bool *is_usable, struct problem *problem)
{
    static const char *const tables[] = {"write", "change"};
    struct bytes body = {0};
    long http_status;
    char reason[CURL_ERROR_SIZE], statement[160];
    gpufl_status status = GPUFL_OK;
    pthread_mutex_lock(&client->mutex);
    *is_usable = !client->has_tables || !client->location.cluster[0] || client->synced == host + 1;
    pthread_mutex_unlock(&client->mutex);
    if (*is_usable)
        return GPUFL_OK;
    *is_usable = true;
    for (size_t i = 0; i < sizeof tables / sizeof *tables && !status && *is_usable; i++) {
        snprintf(statement, sizeof statement, "SYSTEM SYNC REPLICA %s.%s", client->location.database, tables[i]);
        const struct request request = {
            .parameters = "", .body = statement, .size = strlen(statement), .timeout_ms = REQUEST_TIMEOUT_MS};
        status = host_ask(client, host, &request, &body, &http_status, reason, problem);
        *is_usable = http_status == 200;
    }
    bytes_free(&body);
    if (!status && *is_usable) {
        pthread_mutex_lock(&client->mutex);
        client->synced = host + 1;
        pthread_mutex_unlock(&client->mutex);
    }
    return status;
}

/* The first host that can answer; *code: ClickHouse's number of the error, 0: done. */
static gpufl_status ask(struct ch_client *client, const struct request *request, struct bytes *body, int *code,
                        long *http_status, struct problem *problem)
{
    unsigned count = client->location.host_count, first = host_first(client);
    char reason[CURL_ERROR_SIZE] = "";
    *code = 0;
    *http_status = 0;
    for (unsigned i = 0; i < count * ROUNDS && (!i || !is_late(request)); i++) {
        unsigned host = (first + i) % count;
        bool is_usable;
        gpufl_status status = host_sync(client, host, &is_usable, problem);
        if (!status && !is_usable)
            continue;
        if (!status)
            status = host_ask(client, host, request, body, http_status, reason, problem);
        if (status)
            return status;
        *code = *http_status && *http_status != 200 ? ch_error_code(body) : 0;
        if (*http_status == 200 || (*http_status && !ch_error_is_of_host(*code))) {
            host_use(client, host);
            return GPUFL_OK;
        }
    }
    if (*http_status)
        return GPUFL_OK;
    return problem_set(problem, GPUFL_E_BUSY, "no ClickHouse host answers; the last one, %s: %s",
                       client->location.hosts[(first + count - 1) % count], reason);
}

static gpufl_status select_in(struct ch_client *client, const char *database, struct bytes *sql, struct ch_rows *rows,
                              struct problem *problem)
{
    int code;
    long http_status;
    char parameters[512];
    /* The whole answer is made before its first byte is sent: an error is told by the HTTP status. */
    snprintf(parameters, sizeof parameters,
             "database=%s&wait_end_of_query=1&max_query_size=67108864&max_ast_elements=1000000&"
             "max_expanded_ast_elements=2000000%s",
             database,
             client->location.cluster[0] ? "&load_balancing=in_order&max_replica_delay_for_distributed_queries=5" : "");
    rows->at = 0;
    rows->is_damaged = false;
    bytes_append_text(sql, " FORMAT RowBinary");
    if (sql->failed)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for a question to ClickHouse");
    const struct request request = {
        .parameters = parameters, .body = sql->data, .size = sql->size, .timeout_ms = REQUEST_TIMEOUT_MS};
    gpufl_status status = ask(client, &request, &rows->body, &code, &http_status, problem);
    return status || http_status == 200 ? status : ch_error_status(code, http_status, &rows->body, problem);
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
    /* Both have to be the same host's. */
    for (unsigned tries = 0; tries < SYNC_TRIES; tries++) {
        sql->size = size;
        gpufl_status status = client->location.cluster[0] ? ch_run(client, statement, "", problem) : GPUFL_OK;
        uint64_t changes = host_changes(client);
        if (!status)
            status = ch_select(client, sql, rows, problem);
        if (status || changes == host_changes(client))
            return status;
    }
    return problem_set(problem, GPUFL_E_BUSY, "the ClickHouse hosts come and go; try again");
}

gpufl_status ch_run(struct ch_client *client, const char *sql, const char *settings, struct problem *problem)
{
    struct bytes body = {0};
    int code;
    long http_status;
    const struct request request = {
        .parameters = settings, .body = sql, .size = strlen(sql), .timeout_ms = 3 * REQUEST_TIMEOUT_MS};
    gpufl_status status = ask(client, &request, &body, &code, &http_status, problem);
    if (!status && http_status != 200)
        status = ch_error_status(code, http_status, &body, problem);
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

gpufl_status ch_insert(struct ch_client *client, const char *into, const struct bytes *rows, struct problem *problem)
{
    return ch_insert_until(client, into, rows, 0, problem);
}

gpufl_status ch_insert_until(struct ch_client *client, const char *into, const struct bytes *rows, int64_t deadline_ns,
                             struct problem *problem)
{
    struct bytes body = {0}, parameters = {0};
    gpufl_status status = rows->failed ? problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for rows") : GPUFL_OK;
    int code = 0;
    long http_status = 0;
    bool has_quorum = quorum_wanted(client);
    for (unsigned tries = 0; !status && rows->size;) {
        bytes_clear(&parameters);
        parameters_make(client, into, has_quorum, &parameters);
        if (parameters.failed) {
            status = problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for a request to ClickHouse");
            break;
        }
        const struct request request = {.parameters = parameters.data,
                                        .body = rows->data,
                                        .size = rows->size,
                                        .timeout_ms = REQUEST_TIMEOUT_MS,
                                        .deadline_ns = deadline_ns};
        status = ask(client, &request, &body, &code, &http_status, problem);
        if (status || http_status == 200)
            break;
        /* Another insert with a quorum is under way: older servers take one at a time. */
        if (has_quorum && code == CODE_QUORUM_PREVIOUS && tries++ < PREVIOUS_TRIES && !is_late(&request)) {
            nanosleep(&(struct timespec){.tv_nsec = PREVIOUS_WAIT_MS * 1000000L}, NULL);
            continue;
        }
        /* The second replica is gone. What was written is written; the same block again is known by its hash. */
        bool is_alone = code == CODE_TOO_FEW_REPLICAS || code == CODE_QUORUM_UNKNOWN || code == CODE_QUORUM_PREVIOUS ||
                        code == CODE_TIMEOUT;
        if (has_quorum && is_alone && !is_late(&request)) {
            quorum_pause(client);
            has_quorum = false;
            continue;
        }
        status = ch_error_status(code, http_status, &body, problem);
    }
    bytes_free(&body);
    bytes_free(&parameters);
    return status;
}
