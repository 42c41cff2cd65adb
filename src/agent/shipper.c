/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shipper.h"

#include "base/clock.h"
#include "base/key_file.h"
#include "base/log.h"
#include "format/json.h"
#include "upload/backoff.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    REQUEST_TIMEOUT_MS = 120000,
    VERSION_TIMEOUT_MS = 5000,
    PAUSE_FIRST_MS = 500,
    PAUSE_MAX_MS = 60000,
    REFUSED_PAUSE_MS = 60000,
    RETRY_AFTER_MAX_S = 3600
};

static gpufl_status client_open(struct shipper *shipper, struct problem *problem)
{
    if (shipper->options.api_key_file) {
        gpufl_status status = key_file_read(shipper->options.api_key_file, shipper->key, sizeof shipper->key, problem);
        if (status)
            return status;
        shipper->options.server.api_key = shipper->key;
    }
    struct http_client *client;
    gpufl_status status = http_client_open(&client, &shipper->options.server, problem);
    if (status)
        return status;
    http_client_close(shipper->client);
    shipper->client = client;
    return GPUFL_OK;
}

gpufl_status shipper_open(struct shipper *shipper, const struct shipper_options *options,
                          struct agent_counters *counters, struct problem *problem)
{
    *shipper = (struct shipper){.options = *options,
                                .counters = counters,
                                .coding = BODY_GZIP,
                                .tokens = (double)options->rate_bytes_per_s,
                                .tokens_ns = clock_mono_ns()};
    return client_open(shipper, problem);
}

void shipper_close(struct shipper *shipper)
{
    http_client_close(shipper->client);
    http_answer_free(&shipper->answer);
    explicit_bzero(shipper->key, sizeof shipper->key);
    shipper->client = NULL;
}

const char *shipper_address(const struct shipper *shipper)
{
    return http_client_address(shipper->client);
}

static void log_once(struct shipper *shipper, gpufl_log_level level)
{
    if (strcmp(shipper->reported, shipper->problem.text) == 0)
        return;
    memcpy(shipper->reported, shipper->problem.text, sizeof shipper->reported);
    log_message(level, "%s", shipper->problem.text);
}

void shipper_ask_version(struct shipper *shipper)
{
    const char *const headers[] = {"Accept: application/json", NULL};
    const struct http_request request = {.path = "/info/version", .headers = headers, .timeout_ms = VERSION_TIMEOUT_MS};
    struct json_document document;
    if (shipper->has_asked || http_get(shipper->client, &request, &shipper->answer) || !shipper->answer.status)
        return;
    shipper->has_asked = true;
    const struct bytes *text = &shipper->answer.text;
    if (shipper->answer.status != 200 || !text->size || json_parse(&document, text->data, text->size, NULL))
        return;
    const struct json_value *encodings = json_member(document.root, "encodings");
    for (const struct json_value *value = encodings && encodings->kind == JSON_ARRAY ? encodings->child : NULL; value;
         value = value->next)
        if (value->kind == JSON_STRING && !strcmp(value->text, body_coding_names[BODY_ZSTD]))
            shipper->coding = BODY_ZSTD;
    json_free(&document);
}

static void pay(struct shipper *shipper, size_t bytes)
{
    const double rate = (double)shipper->options.rate_bytes_per_s;
    if (rate <= 0)
        return;
    int64_t now_ns = clock_mono_ns();
    shipper->tokens += (double)(now_ns - shipper->tokens_ns) / 1e9 * rate;
    shipper->tokens = (shipper->tokens < rate ? shipper->tokens : rate) - (double)bytes;
    shipper->tokens_ns = now_ns;
    if (shipper->tokens < 0) {
        int64_t ready_ns = now_ns + (int64_t)(-shipper->tokens / rate * 1e9);
        shipper->not_before_ns = ready_ns > shipper->not_before_ns ? ready_ns : shipper->not_before_ns;
    }
}

static void explain(struct shipper *shipper, gpufl_status status, const char *what)
{
    char text[160];
    http_answer_explain(shipper->client, &shipper->answer, text, sizeof text);
    problem_set(&shipper->problem, status, "%.160s %s%s%s", shipper_address(shipper), what, *text ? ": " : "", text);
}

static enum shipment postpone(struct shipper *shipper, const char *what)
{
    int64_t wait_ms = backoff_ms(++shipper->failures, PAUSE_FIRST_MS, PAUSE_MAX_MS);
    if (shipper->answer.retry_after_s > 0)
        wait_ms = 1000 * (shipper->answer.retry_after_s < RETRY_AFTER_MAX_S ? shipper->answer.retry_after_s
                                                                            : RETRY_AFTER_MAX_S);
    shipper->not_before_ns = clock_mono_ns() + wait_ms * 1000000;
    counter_add(&shipper->counters->requests_failed, 1);
    explain(shipper, GPUFL_E_IO, what);
    log_once(shipper, GPUFL_LOG_WARNING);
    return SHIPMENT_RETRY;
}

static enum shipment refuse(struct shipper *shipper)
{
    const int status = shipper->answer.status;
    char what[160];
    bool is_key = status == 401 || status == 403;
    if (is_key)
        snprintf(what, sizeof what,
                 http_client_has_key(shipper->client) ? "refused the API key (HTTP %d)"
                                                      : "requires an API key (HTTP %d); set GPUFL_API_KEY",
                 status);
    else
        snprintf(what, sizeof what,
                 status == 404 ? "does not support this protocol (HTTP %d): wrong address or path, or an older server"
                               : "redirects (HTTP %d), which is not followed; use the final address",
                 status);
    explain(shipper, is_key ? GPUFL_E_PERMISSION : GPUFL_E_IO, what);
    log_once(shipper, GPUFL_LOG_ERROR);
    atomic_store(&shipper->counters->is_refused, 1);
    counter_add(&shipper->counters->requests_failed, 1);
    shipper->failures++;
    shipper->not_before_ns = clock_mono_ns() + (int64_t)REFUSED_PAUSE_MS * 1000000;
    if (is_key && client_open(shipper, NULL) == GPUFL_OK)
        shipper->has_asked = false; /* with the current content of the key file */
    return SHIPMENT_REFUSED;
}

/* An answer that is not JSON comes from a proxy and acknowledges nothing. */
static bool is_from_server(struct shipper *shipper)
{
    struct json_document document;
    const struct bytes *text = &shipper->answer.text;
    if (!text->size) {
        shipper->is_acknowledged = false;
        return true;
    }
    if (json_parse(&document, text->data, text->size, NULL))
        return false;
    bool is_object = document.root->kind == JSON_OBJECT;
    shipper->is_acknowledged = is_object && json_get_bool(document.root, "window_acknowledged", false);
    json_free(&document);
    return is_object;
}

static enum shipment judge(struct shipper *shipper)
{
    const int status = shipper->answer.status;
    char what[300];
    if (!status && shipper->options.server.is_cancelled && atomic_load(shipper->options.server.is_cancelled)) {
        problem_set(&shipper->problem, GPUFL_E_NOT_RUNNING, "stopped");
        return SHIPMENT_STOPPED;
    }
    if (!status) {
        snprintf(what, sizeof what, "did not answer: %s; trying again", shipper->answer.reason);
        return postpone(shipper, what);
    }
    if (status == 408 || status == 425 || status == 429 || status >= 500) {
        snprintf(what, sizeof what, "answered HTTP %d; trying again", status);
        return postpone(shipper, what);
    }
    if (status >= 200 && status < 300) {
        if (!is_from_server(shipper))
            return postpone(shipper, "answered, but not with JSON; trying again");
        shipper->failures = 0;
        shipper->reported[0] = '\0';
        atomic_store(&shipper->counters->is_refused, 0);
        atomic_store(&shipper->counters->last_success_s, (uint64_t)(clock_wall_ns() / 1000000000));
        return SHIPMENT_TAKEN;
    }
    if (status == 401 || status == 403 || status == 404 || status < 400)
        return refuse(shipper);
    snprintf(what, sizeof what, "refused the window with HTTP %d%s", status,
             status == 402   ? ", the plan's limit is reached"
             : status == 409 ? ", the server has other data under this id, or the session is closed"
             : status == 413 ? ", too large for the server"
                             : "");
    explain(shipper, GPUFL_E_IO, what);
    shipper->failures = 0;
    return SHIPMENT_POISON;
}

static enum shipment post(struct shipper *shipper, const char *path, const struct request_headers *headers,
                          const struct bytes *body)
{
    struct http_request request = {.path = path,
                                   .headers = headers->list,
                                   .body = body ? body->data : NULL,
                                   .size = body ? body->size : 0,
                                   .timeout_ms = REQUEST_TIMEOUT_MS};
    if (http_post(shipper->client, &request, &shipper->answer)) {
        shipper->answer.status = 0;
        snprintf(shipper->answer.reason, sizeof shipper->answer.reason, "no memory");
    }
    pay(shipper, request.size);
    return judge(shipper);
}

enum shipment shipper_send(struct shipper *shipper, const struct sender *sender, enum channel channel,
                           const struct stream_window *window)
{
    struct request_headers headers;
    const struct window_name name = {.id = window->id,
                                     .channel = channel,
                                     .sequence = window->first,
                                     .coding = window->coding,
                                     .crc32 = window->window.crc32};
    headers_for_window(&headers, sender, &name);
    enum shipment shipment = post(shipper, "/events/stream", &headers, &window->window.body);
    if (shipment == SHIPMENT_POISON && shipper->answer.status == 415 && window->coding == BODY_ZSTD) {
        shipper->coding = BODY_GZIP; /* nothing was stored, so the coding may change */
        return postpone(shipper, "does not accept zstd; using gzip");
    }
    if (shipment != SHIPMENT_TAKEN)
        return shipment;
    char reason[120];
    uint64_t rejected = shipper->rejected_lines =
        answer_rejected_lines(shipper->client, &shipper->answer, reason, sizeof reason);
    if (rejected) {
        counter_add(&shipper->counters->lines_rejected, rejected);
        log_message(GPUFL_LOG_WARNING, "session %s: the server rejected %" PRIu64 " lines%s%s", sender->session_id,
                    rejected, *reason ? ": " : "", reason);
    }
    counter_add(&shipper->counters->windows_sent, 1);
    counter_add(&shipper->counters->lines_sent, window->window.lines);
    counter_add(&shipper->counters->bytes_sent, window->window.body.size);
    counter_add(&shipper->counters->raw_bytes_sent, window->window.raw_bytes);
    return SHIPMENT_TAKEN;
}

enum shipment shipper_complete(struct shipper *shipper, const struct sender *sender)
{
    struct request_headers headers;
    headers_for_completion(&headers, sender);
    enum shipment shipment = post(shipper, "/events/session-complete", &headers, NULL);
    /* A server that refuses this request detects the session's end by itself. */
    bool is_unwanted = shipment == SHIPMENT_POISON || (shipment == SHIPMENT_REFUSED && shipper->answer.status == 404);
    if (is_unwanted) {
        shipper->not_before_ns = 0;
        shipper->reported[0] = '\0';
    }
    return is_unwanted ? SHIPMENT_TAKEN : shipment;
}
