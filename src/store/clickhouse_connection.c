/* SPDX-License-Identifier: Apache-2.0 */
#include "store/clickhouse_connection.h"

#include "base/ca_file.h"
#include "base/clock.h"
#include "store/clickhouse_error.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { CONNECT_TIMEOUT_MS = 3000, IDLE_MAX = 16, ANSWER_BYTES_MAX = 1 << 30 };
_Static_assert((int)CH_REASON_MAX >= (int)CURL_ERROR_SIZE, "curl's messages fit");

struct handle {
    CURL *curl;
    unsigned host; /* to which it is connected */
    struct handle *next;
};

struct ch_connections {
    const struct ch_location *location;
    pthread_mutex_t mutex; /* guards everything below */
    struct handle *idle;
    unsigned idle_count;
};

static pthread_once_t global_once = PTHREAD_ONCE_INIT;
static void global_setup(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

struct ch_connections *ch_connections_open(const struct ch_location *location)
{
    struct ch_connections *connections = calloc(1, sizeof *connections);
    if (!connections)
        return NULL;
    pthread_once(&global_once, global_setup);
    connections->location = location;
    pthread_mutex_init(&connections->mutex, NULL);
    return connections;
}

static void handle_free(struct handle *handle)
{
    curl_easy_cleanup(handle->curl);
    free(handle);
}

/* Closes the idle connections of one host, or of all hosts. */
static void idle_free(struct ch_connections *connections, unsigned host, bool is_every)
{
    for (struct handle **at = &connections->idle; *at;) {
        struct handle *handle = *at;
        if (!is_every && handle->host != host) {
            at = &handle->next;
            continue;
        }
        *at = handle->next;
        connections->idle_count--;
        handle_free(handle);
    }
}

void ch_connections_close(struct ch_connections *connections)
{
    if (!connections)
        return;
    idle_free(connections, 0, true);
    pthread_mutex_destroy(&connections->mutex);
    free(connections);
}

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

static struct handle *handle_take(struct ch_connections *connections, unsigned host)
{
    struct handle *handle = NULL;
    pthread_mutex_lock(&connections->mutex);
    for (struct handle **at = &connections->idle; *at; at = &(*at)->next)
        if ((*at)->host == host) {
            handle = *at;
            *at = handle->next;
            connections->idle_count--;
            break;
        }
    pthread_mutex_unlock(&connections->mutex);
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

static void handle_give(struct ch_connections *connections, struct handle *handle, bool is_good)
{
    pthread_mutex_lock(&connections->mutex);
    if (!is_good)
        idle_free(connections, handle->host, false); /* the other idle connections are probably broken too */
    if (is_good && connections->idle_count < IDLE_MAX) {
        handle->next = connections->idle;
        connections->idle = handle;
        connections->idle_count++;
        handle = NULL;
    }
    pthread_mutex_unlock(&connections->mutex);
    if (handle)
        handle_free(handle);
}

/* The time left for one try. */
static long request_timeout_ms(const struct ch_request *request)
{
    int64_t left_ms = request->deadline_ns ? (request->deadline_ns - clock_mono_ns()) / 1000000 : request->timeout_ms;
    return left_ms < 1 ? 1 : left_ms < request->timeout_ms ? (long)left_ms : request->timeout_ms;
}

bool ch_request_is_late(const struct ch_request *request)
{
    return request->deadline_ns && clock_mono_ns() >= request->deadline_ns;
}

static bool handle_prepare(const struct ch_connections *connections, CURL *curl, const char *url,
                           const struct ch_request *request, struct answer *answer, char *reason)
{
    const struct ch_location *location = connections->location;
    curl_easy_reset(curl);
    bool is_good = !curl_easy_setopt(curl, CURLOPT_URL, url) && !curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) &&
                   !curl_easy_setopt(curl, CURLOPT_PROXY, "") &&
                   !curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS) &&
                   !curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, request_timeout_ms(request)) &&
                   !curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L) &&
                   !curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, reason) &&
                   !curl_easy_setopt(curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC) &&
                   !curl_easy_setopt(curl, CURLOPT_USERNAME, location->user) &&
                   !curl_easy_setopt(curl, CURLOPT_PASSWORD, location->password) &&
                   !curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, body_take) &&
                   !curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer) && !curl_easy_setopt(curl, CURLOPT_POST, 1L) &&
                   !curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body) &&
                   !curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->size);
    /* curl retries when a kept-alive connection turns out to be dead. */
    is_good = is_good && !curl_easy_setopt(curl, CURLOPT_FRESH_CONNECT, (long)request->is_once) &&
              !curl_easy_setopt(curl, CURLOPT_FORBID_REUSE, (long)request->is_once);
#if LIBCURL_VERSION_NUM >= 0x075500
    is_good = is_good && !curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    is_good = is_good && !curl_easy_setopt(curl, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
    const char *ca_file = ca_file_choose(location->ca_file);
    return is_good && (!ca_file || !curl_easy_setopt(curl, CURLOPT_CAINFO, ca_file));
}

/* After a failure: true if no byte of the body was sent. */
static bool is_unsent(CURL *curl)
{
    curl_off_t sent = 1;
    return !curl_easy_getinfo(curl, CURLINFO_SIZE_UPLOAD_T, &sent) && !sent;
}

gpufl_status ch_connection_ask(struct ch_connections *connections, unsigned host, const struct ch_request *request,
                               struct bytes *body, struct ch_reply *reply, struct problem *problem)
{
    const struct ch_location *location = connections->location;
    struct bytes url = {0};
    struct answer answer = {.body = body};
    /* Without this header curl first asks for permission to send, which costs a round trip. */
    struct curl_slist *headers = curl_slist_append(NULL, "Expect:");
    struct handle *handle = handle_take(connections, host);
    gpufl_status status = GPUFL_OK;
    bytes_clear(body);
    *reply = (struct ch_reply){0};
    bytes_append_format(&url, "%s://%s/?%s", location->has_tls ? "https" : "http", location->hosts[host],
                        request->parameters);
    bytes_append_char(&url, '\0');
    if (!headers || !handle || url.failed ||
        !handle_prepare(connections, handle->curl, url.data, request, &answer, reply->reason) ||
        curl_easy_setopt(handle->curl, CURLOPT_HTTPHEADER, headers)) {
        status = GPUFL_E_NO_MEMORY;
        (void)problem_set(problem, status, "no memory for a request to ClickHouse");
    }
    CURLcode code = status ? CURLE_OK : curl_easy_perform(handle->curl);
    if (!status && !code) {
        curl_easy_getinfo(handle->curl, CURLINFO_RESPONSE_CODE, &reply->http_status);
        reply->code = reply->http_status == 200 ? 0 : ch_error_code(body);
    } else if (!status && body->failed) {
        status = problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for ClickHouse's answer");
    } else if (!status && answer.is_too_large) {
        status = problem_set(problem, GPUFL_E_LIMIT, "ClickHouse's answer is larger than 1 GiB");
    } else if (!status) {
        reply->is_unsent = is_unsent(handle->curl);
        if (!reply->reason[0])
            snprintf(reply->reason, sizeof reply->reason, "%s", curl_easy_strerror(code));
    }
    if (handle)
        handle_give(connections, handle, !status && !code);
    curl_slist_free_all(headers);
    bytes_free(&url);
    return status;
}
