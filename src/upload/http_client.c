/* SPDX-License-Identifier: Apache-2.0 */
#include "upload/http_client.h"

#include "base/ca_file.h"
#include "format/json.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum {
    ANSWER_BYTES_MAX = 64 << 10,
    CONNECT_TIMEOUT_MS = 10000,
    SILENCE_MAX_S = 30,
    KEY_SIZE_MAX = 256,
    PATH_SIZE_MAX = 160
};

struct http_client {
    CURL *curl;
    char address[1536];
    char key[KEY_SIZE_MAX + 1];
    char authorization[KEY_SIZE_MAX + 32];
    char reason[CURL_ERROR_SIZE];
    const atomic_bool *is_cancelled; /* borrowed; may be NULL */
};

static void global_setup(void)
{
    /* Never cleaned up: the program may use libcurl, too. */
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* A space or a control character could inject a header or change the request line. */
static bool is_one_word(const char *text)
{
    for (; *text; text++)
        if (*text <= ' ' || *text > '~')
            return false;
    return true;
}

static gpufl_status url_check(CURLU *url, const struct http_server *server, struct problem *problem)
{
    CURLUcode code = curl_url_set(url, CURLUPART_URL, server->url, CURLU_DISALLOW_USER | CURLU_NON_SUPPORT_SCHEME);
    if (code == CURLUE_USER_NOT_ALLOWED)
        return problem_set(problem, GPUFL_E_INVALID,
                           "the server's address must not contain a user name or password; pass the key as api_key, in "
                           "GPUFL_API_KEY or in a file");
    char *scheme = NULL, *path = NULL, *query = NULL;
    gpufl_status status = GPUFL_OK;
    bool is_good = !code && !curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) &&
                   (!strcmp(scheme, "http") || !strcmp(scheme, "https"));
    if (!is_good)
        status = problem_set(problem, GPUFL_E_INVALID,
                             "invalid server address '%.200s': use https://host or http://host:8080", server->url);
    bool has_path = is_good && !curl_url_get(url, CURLUPART_PATH, &path, 0) && strcmp(path, "/") != 0;
    bool has_more = is_good && (!curl_url_get(url, CURLUPART_QUERY, &query, 0) || strchr(server->url, '#'));
    if (has_path || has_more)
        status = problem_set(problem, GPUFL_E_INVALID,
                             "the server's address must end after host and port; put the path '%.100s' in "
                             "api_path (GPUFL_API_PATH, --api-path)",
                             has_path ? path : "?");
    curl_free(scheme);
    curl_free(path);
    curl_free(query);
    return status;
}

/* address: scheme, host, port and api_path. */
static gpufl_status address_make(char *address, size_t size, const struct http_server *server, struct problem *problem)
{
    CURLU *url = curl_url();
    if (!url)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for the connection");
    gpufl_status status = url_check(url, server, problem);
    size_t path_size = strlen(server->api_path);
    while (path_size && server->api_path[path_size - 1] == '/')
        path_size--;
    if (!status && (server->api_path[0] != '/' || !is_one_word(server->api_path) || strpbrk(server->api_path, "?#")))
        status = problem_set(problem, GPUFL_E_INVALID, "invalid api_path '%.100s': use a path such as /api/v1",
                             server->api_path);
    char *text = NULL;
    if (!status && (curl_url_set(url, CURLUPART_PATH, "/", 0) || curl_url_get(url, CURLUPART_URL, &text, 0) || !text))
        status = problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for the connection");
    if (!status && text) {
        size_t base = strlen(text) - 1; /* without the path's trailing slash */
        int needed = snprintf(address, size, "%.*s%.*s", (int)base, text, (int)path_size, server->api_path);
        if (needed < 0 || (size_t)needed >= size)
            status = problem_set(problem, GPUFL_E_INVALID, "the server's address is longer than %zu bytes", size - 1);
    }
    curl_free(text);
    curl_url_cleanup(url);
    return status;
}

static gpufl_status key_take(struct http_client *client, const char *key, struct problem *problem)
{
    size_t size = strlen(key);
    if (size > KEY_SIZE_MAX || !is_one_word(key))
        return problem_set(problem, GPUFL_E_INVALID,
                           "the API key is longer than %d characters or contains a space or a control character",
                           KEY_SIZE_MAX);
    if (size) {
        memcpy(client->key, key, size + 1);
        snprintf(client->authorization, sizeof client->authorization, "Authorization: Bearer %s", key);
    }
    return GPUFL_OK;
}

static size_t answer_take(char *data, size_t unit, size_t count, void *user)
{
    struct bytes *text = user;
    size_t size = unit * count, room = ANSWER_BYTES_MAX - text->size;
    bytes_append(text, data, size < room ? size : room);
    return size;
}

/* One header line, not NUL-terminated. */
static size_t header_take(char *data, size_t unit, size_t count, void *user)
{
    static const char name[] = "etag:";
    struct http_answer *answer = user;
    size_t size = unit * count, at = sizeof name - 1, end = size;
    if (size < at || strncasecmp(data, name, at) != 0)
        return size;
    while (at < end && (data[at] == ' ' || data[at] == '\t'))
        at++;
    while (end > at && (unsigned char)data[end - 1] <= ' ')
        end--;
    bool is_usable = end - at < sizeof answer->etag;
    for (size_t i = at; i < end; i++)
        is_usable = is_usable && data[i] > ' ' && data[i] <= '~';
    if (is_usable) {
        memcpy(answer->etag, data + at, end - at);
        answer->etag[end - at] = '\0';
    }
    return size;
}

static int progress_check(void *user, curl_off_t down_total, curl_off_t down, curl_off_t up_total, curl_off_t up)
{
    (void)down_total, (void)down, (void)up_total, (void)up;
    const struct http_client *client = user;
    return client->is_cancelled && atomic_load(client->is_cancelled);
}

static bool handle_setup(struct http_client *client, const char *ca_file)
{
    CURL *curl = client->curl;
    bool is_good =
        !curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) && !curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L) &&
        !curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L) && !curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2L) &&
        !curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2) &&
        !curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS) &&
        !curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L) &&
        !curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)SILENCE_MAX_S) &&
        !curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, client->reason) &&
        !curl_easy_setopt(curl, CURLOPT_USERAGENT, "gpufl/" GPUFL_VERSION_STRING) &&
        !curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, answer_take) &&
        !curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, header_take) &&
        !curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L) && !curl_easy_setopt(curl, CURLOPT_XFERINFODATA, client) &&
        !curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, progress_check);
#if LIBCURL_VERSION_NUM >= 0x075500
    is_good = is_good && !curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    is_good = is_good && !curl_easy_setopt(curl, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
    /* An unresponsive DNS server must not block past the timeout. */
    is_good = is_good && !curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);
#endif
    ca_file = ca_file_choose(ca_file);
    if (ca_file)
        is_good = is_good && !curl_easy_setopt(curl, CURLOPT_CAINFO, ca_file);
    return is_good;
}

gpufl_status http_client_open(struct http_client **out, const struct http_server *server, struct problem *problem)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, global_setup);
    struct http_client *client = calloc(1, sizeof *client);
    if (!client)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for the connection");
    client->is_cancelled = server->is_cancelled;
    gpufl_status status = address_make(client->address, sizeof client->address, server, problem);
    if (!status && server->api_key)
        status = key_take(client, server->api_key, problem);
    if (!status) {
        client->curl = curl_easy_init();
        if (!client->curl || !handle_setup(client, server->ca_file))
            status = problem_set(problem, GPUFL_E_NO_MEMORY, "libcurl could not be set up");
    }
    if (status) {
        http_client_close(client);
        return status;
    }
    *out = client;
    return GPUFL_OK;
}

void http_client_close(struct http_client *client)
{
    if (!client)
        return;
    if (client->curl)
        curl_easy_cleanup(client->curl);
    explicit_bzero(client->key, sizeof client->key);
    explicit_bzero(client->authorization, sizeof client->authorization);
    free(client);
}

const char *http_client_address(const struct http_client *client)
{
    return client->address;
}

bool http_client_has_key(const struct http_client *client)
{
    return client->key[0] != '\0';
}

void http_answer_free(struct http_answer *answer)
{
    bytes_free(&answer->text);
}

static struct curl_slist *headers_make(const struct http_client *client, const struct http_request *request)
{
    /* Expect: 100-continue would delay the request by a second with servers that do not support it. */
    struct curl_slist *list = curl_slist_append(NULL, "Expect:");
    const char *const *header = request->headers;
    const char *next = client->authorization[0] ? client->authorization : *header ? *header++ : NULL;
    while (list && next) {
        struct curl_slist *longer = curl_slist_append(list, next);
        if (!longer) {
            curl_slist_free_all(list);
            return NULL;
        }
        list = longer;
        next = *header ? *header++ : NULL;
    }
    return list;
}

static bool body_setup(CURL *curl, const struct http_request *request, bool is_post)
{
    if (!is_post)
        return !curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
    return !curl_easy_setopt(curl, CURLOPT_POST, 1L) &&
           !curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->size ? request->body : "") &&
           !curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->size);
}

static gpufl_status perform(struct http_client *client, const struct http_request *request, bool is_post,
                            struct http_answer *answer)
{
    CURL *curl = client->curl;
    char url[sizeof client->address + PATH_SIZE_MAX];
    snprintf(url, sizeof url, "%s%.*s", client->address, PATH_SIZE_MAX - 1, request->path);
    struct curl_slist *headers = headers_make(client, request);
    bytes_clear(&answer->text);
    answer->status = 0;
    answer->retry_after_s = 0;
    answer->reason[0] = answer->etag[0] = client->reason[0] = '\0';
    long timeout_ms = request->timeout_ms < 1           ? 1
                      : request->timeout_ms > INT32_MAX ? INT32_MAX
                                                        : (long)request->timeout_ms;
    bool is_ready = headers && !curl_easy_setopt(curl, CURLOPT_URL, url) &&
                    !curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers) && body_setup(curl, request, is_post) &&
                    !curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, timeout_ms) &&
                    !curl_easy_setopt(curl, CURLOPT_HEADERDATA, answer) &&
                    !curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer->text);
    if (!is_ready) {
        curl_slist_free_all(headers);
        return GPUFL_E_NO_MEMORY;
    }
    CURLcode code = curl_easy_perform(curl);
    long status = 0;
    curl_off_t retry_after_s = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &retry_after_s);
    /* A server that rejects a request early may answer and close the connection during the upload: use its answer. */
    if (code == CURLE_OK || (status >= 400 && code == CURLE_SEND_ERROR))
        answer->status = (int)status;
    else
        snprintf(answer->reason, sizeof answer->reason, "%.190s",
                 client->reason[0] ? client->reason : curl_easy_strerror(code));
    answer->retry_after_s = retry_after_s > 0 ? (int64_t)retry_after_s : 0;
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(headers);
    return GPUFL_OK;
}

gpufl_status http_post(struct http_client *client, const struct http_request *request, struct http_answer *answer)
{
    return perform(client, request, true, answer);
}

gpufl_status http_get(struct http_client *client, const struct http_request *request, struct http_answer *answer)
{
    return perform(client, request, false, answer);
}

void http_text_clean(const struct http_client *client, const char *text, char *out, size_t size)
{
    const size_t key_size = strlen(client->key);
    size_t used = 0;
    while (*text && used + 4 < size) {
        if (key_size && !strncmp(text, client->key, key_size)) {
            memcpy(out + used, "***", 3);
            used += 3;
            text += key_size;
            continue;
        }
        char c = *text++;
        if (c <= ' ' || c > '~')
            c = ' ';
        if (c != ' ' || (used && out[used - 1] != ' '))
            out[used++] = c;
    }
    while (used && out[used - 1] == ' ')
        used--;
    out[used] = '\0';
}

void http_answer_explain(const struct http_client *client, const struct http_answer *answer, char *out, size_t size)
{
    static const char *const members[] = {"message", "error", "reason", "detail"};
    struct bytes text = {.limit = ANSWER_BYTES_MAX + 1};
    struct json_document document = {0};
    bool is_json = answer->text.size && !json_parse(&document, answer->text.data, answer->text.size, NULL);
    const struct json_value *error = is_json ? json_member(document.root, "error") : NULL;
    const struct json_value *object = error && error->kind == JSON_OBJECT ? error : document.root;
    for (size_t i = 0; is_json && !text.size && i < sizeof members / sizeof *members; i++)
        bytes_append_text(&text, json_get_text(object, members[i], ""));
    /* An HTML page explains nothing. */
    if (!is_json && answer->text.size && answer->text.data[0] != '<')
        bytes_append(&text, answer->text.data, answer->text.size);
    json_free(&document);
    http_text_clean(client, bytes_text(&text), out, size);
    bytes_free(&text);
}
