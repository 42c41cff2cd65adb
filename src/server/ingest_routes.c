/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol of GPUFlight's agents and uploaders: parses headers, writes answers. */
#include "server/server.h"

#include "base/clock.h"
#include "format/json.h"
#include "http/http_exchange.h"
#include "http/http_parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

enum { LEGACY_BODY_BYTES_MAX = 16 << 20 };

static bool respond_400(struct http_exchange *exchange, const char *code, const char *what)
{
    http_respond_error(exchange, 400, code, "%s", what);
    return false;
}

static void sender_write(struct ingest_head *head, const struct http_exchange *exchange)
{
    snprintf(head->sender, sizeof head->sender, "%.40s from %.48s", key_entry_name(http_exchange_principal(exchange)),
             http_exchange_peer(exchange));
}

static bool session_read(struct http_exchange *exchange, struct ingest_head *head)
{
    const char *session_id = http_exchange_header(exchange, "X-GpuFlight-Session-Id");
    if (!session_id)
        return respond_400(exchange, "session_missing", "the header X-GpuFlight-Session-Id is missing");
    if (!ingest_id_is_valid(session_id, STORE_SESSION_ID_MAX))
        return respond_400(exchange, "session_invalid", "X-GpuFlight-Session-Id is not a session id");
    const char *version = http_exchange_header(exchange, "X-GpuFlight-Wire-Version");
    if (version && strcmp(version, WIRE_VERSION) != 0)
        return respond_400(exchange, "wire_version_unsupported", "this server supports wire version " WIRE_VERSION);
    const char *host = http_exchange_header(exchange, "X-GpuFlight-Hostname");
    snprintf(head->session_id, sizeof head->session_id, "%s", session_id);
    snprintf(head->host, sizeof head->host, "%s", host ? host : "");
    sender_write(head, exchange);
    head->channel = CHANNEL_COUNT;
    return true;
}

static bool channel_parse(const char *text, enum channel *channel)
{
    for (unsigned i = 0; i < CHANNEL_COUNT; i++)
        if (!strcmp(text, channel_names[i])) {
            *channel = (enum channel)i;
            return true;
        }
    return false;
}

/* Reads the window's identity: all of its headers or none. */
static bool window_read(struct http_exchange *exchange, struct ingest_head *head)
{
    const char *id = http_exchange_header(exchange, "X-GpuFlight-Window-Id");
    const char *channel = http_exchange_header(exchange, "X-GpuFlight-Window-Channel");
    const char *sequence = http_exchange_header(exchange, "X-GpuFlight-Window-Sequence");
    const char *crc32 = http_exchange_header(exchange, "X-GpuFlight-Window-CRC32");
    uint64_t number = 0;
    if (id && !ingest_id_is_valid(id, STORE_WINDOW_ID_MAX))
        return respond_400(exchange, "window_invalid", "X-GpuFlight-Window-Id is not a window id");
    if (id && (!channel || !crc32))
        return respond_400(exchange, "window_invalid",
                           "a window also needs X-GpuFlight-Window-Channel and X-GpuFlight-Window-CRC32");
    if (channel && !channel_parse(channel, &head->channel))
        return respond_400(exchange, "window_invalid",
                           "X-GpuFlight-Window-Channel is not one of device, scope, system, sass");
    if (sequence && !http_size_parse(sequence, &number))
        return respond_400(exchange, "window_invalid", "X-GpuFlight-Window-Sequence is not a number");
    if (crc32 && (!http_size_parse(crc32, &number) || number > UINT32_MAX))
        return respond_400(exchange, "window_invalid", "X-GpuFlight-Window-CRC32 is not an unsigned number of 32 bits");
    snprintf(head->window_id, sizeof head->window_id, "%s", id ? id : "");
    head->has_crc32 = crc32;
    head->crc32 = crc32 ? (uint32_t)number : 0;
    return true;
}

static bool content_read(struct http_exchange *exchange, struct ingest_head *head)
{
    static const char *const types[] = {"application/x-ndjson", "application/ndjson", "application/json"};
    const char *type = http_exchange_header(exchange, "Content-Type");
    const char *coding = http_exchange_header(exchange, "Content-Encoding");
    bool is_known = !type;
    for (size_t i = 0; type && i < sizeof types / sizeof *types; i++) {
        size_t size = strlen(types[i]);
        is_known = is_known || (!strncasecmp(type, types[i], size) && (!type[size] || strchr("; ", type[size])));
    }
    if (!is_known)
        http_respond_error(exchange, 415, "content_type_unsupported", "send application/x-ndjson");
    else if (!content_coding_parse(coding, &head->coding))
        http_respond_error(exchange, 415, "content_encoding_unsupported", "send gzip, zstd or identity");
    return is_known && !http_exchange_is_answered(exchange);
}

static void errors_write(struct bytes *out, const struct ingest_answer *answer)
{
    json_key(out, "errors");
    bytes_append_char(out, '[');
    for (unsigned i = 0; i < answer->error_count; i++) {
        bytes_append_text(out, i ? ",{" : "{");
        json_key(out, "line");
        json_uint(out, answer->errors[i].line);
        json_key(out, "type");
        json_text(out, answer->errors[i].type);
        json_key(out, "reason");
        json_text(out, answer->errors[i].reason);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
}

static void answer_send(struct http_exchange *exchange, const struct ingest_answer *answer)
{
    struct bytes out = {0};
    bytes_append_char(&out, '{');
    if (answer->status >= 300) {
        json_key(&out, "error");
        bytes_append_char(&out, '{');
        json_key(&out, "code");
        json_text(&out, answer->code);
        json_key(&out, "message");
        json_text(&out, answer->message);
        bytes_append_char(&out, '}');
    } else {
        json_key(&out, "accepted_for_processing");
        json_bool(&out, true);
        json_key(&out, "spool_id");
        json_text(&out, http_exchange_id(exchange));
        json_key(&out, "window_acknowledged"); /* it is on disk */
        json_bool(&out, true);
        json_key(&out, "repeated");
        json_uint(&out, answer->repeated);
    }
    json_key(&out, "accepted");
    json_uint(&out, answer->accepted);
    json_key(&out, "rejected");
    json_uint(&out, answer->rejected);
    if (answer->rejected)
        errors_write(&out, answer);
    if (answer->quarantined[0]) {
        json_key(&out, "quarantined");
        json_text(&out, answer->quarantined);
    }
    bytes_append_text(&out, "}\n");
    char seconds[16];
    snprintf(seconds, sizeof seconds, "%u", answer->retry_after_s);
    if (answer->retry_after_s)
        http_respond_header(exchange, "Retry-After", seconds);
    http_respond_bytes(exchange, answer->status, "application/json", &out);
}

static void stream_open(struct http_exchange *exchange, void *user)
{
    struct server *server = user;
    struct ingest_head head = {.session_id = ""};
    struct ingest_answer answer;
    if (!session_read(exchange, &head) || !window_read(exchange, &head) || !content_read(exchange, &head))
        return;
    struct ingest_body *body;
    if (ingest_body_open(&body, &server->ingest, &head, &answer))
        answer_send(exchange, &answer);
    else
        http_exchange_set_state(exchange, body);
}

static size_t stream_data(struct http_exchange *exchange, void *user, const void *data, size_t size)
{
    (void)user;
    ingest_body_data(http_exchange_state(exchange), data, size);
    return size;
}

static void stream_end(struct http_exchange *exchange, void *user)
{
    struct server *server = user;
    struct ingest_answer answer;
    ingest_body_end(http_exchange_state(exchange), &answer);
    key_ring_count_bytes(server->keys, http_exchange_principal(exchange), http_exchange_body_size(exchange));
    answer_send(exchange, &answer);
}

static void stream_abort(struct http_exchange *exchange, void *user)
{
    (void)user;
    ingest_body_abort(http_exchange_state(exchange));
}

static const struct http_stream stream = {stream_open, stream_data, stream_end, stream_abort};

static void session_complete(struct http_exchange *exchange, void *user)
{
    struct server *server = user;
    struct ingest_head head = {.session_id = ""};
    if (!session_read(exchange, &head))
        return;
    struct problem problem = {""};
    gpufl_status status = store_session_end(server->store, head.session_id, &problem);
    if (status == GPUFL_E_NOT_FOUND) {
        http_respond_error(exchange, 404, "session_unknown", "no data of session %s has arrived", head.session_id);
    } else if (status) {
        http_respond_header(exchange, "Retry-After", "5");
        http_respond_error(exchange, 503, "store_unavailable", "%s", problem.text);
    } else {
        const struct live_change change = {
            .session_id = head.session_id, .app = "", .host = head.host, .state = "complete", .at_ns = clock_wall_ns()};
        live_session_changed(server->live, &change);
        struct bytes out = {0};
        bytes_append_text(&out, "{\"session_id\":");
        json_text(&out, head.session_id);
        bytes_append_text(&out, ",\"state\":\"complete\"}\n");
        http_respond_bytes(exchange, 200, "application/json", &out);
    }
}

static void version(struct http_exchange *exchange, void *user)
{
    (void)user;
    static const char text[] =
        "{\"product\":\"gpufl\",\"supported\":[\"" WIRE_VERSION "\"],\"encodings\":[\"zstd\",\"gzip\",\"identity\"]}\n";
    http_respond_constant(exchange, 200, "application/json", NULL, text, sizeof text - 1);
}

/* The older protocol: one record, as a string, in an object. */
static void legacy_event(struct http_exchange *exchange, void *user)
{
    struct server *server = user;
    const struct bytes *content = http_exchange_body(exchange);
    struct json_document envelope = {0}, record = {0};
    struct json_error error = {0};
    struct ingest_head head = {.channel = CHANNEL_COUNT};
    struct ingest_answer answer;
    struct ingest_body *body;
    if (json_parse(&envelope, content->data ? content->data : "", content->size, &error)) {
        http_respond_error(exchange, 400, "body_invalid", "line %" PRIu32 ", column %" PRIu32 ": %s", error.line,
                           error.column, error.text);
        return;
    }
    const struct json_value *data = json_member(envelope.root, "data");
    if (!data || data->kind != JSON_STRING || json_parse(&record, data->text, data->text_size, &error)) {
        respond_400(exchange, "body_invalid", "its member 'data' is not a record in a string");
        goto done;
    }
    const char *session_id = json_get_text(record.root, "session_id", "");
    if (!ingest_id_is_valid(session_id, STORE_SESSION_ID_MAX)) {
        respond_400(exchange, "session_missing", "the record has no session_id");
        goto done;
    }
    snprintf(head.session_id, sizeof head.session_id, "%s", session_id);
    snprintf(head.host, sizeof head.host, "%s", json_get_text(envelope.root, "hostname", ""));
    sender_write(&head, exchange);
    if (!ingest_body_open(&body, &server->ingest, &head, &answer)) {
        ingest_body_data(body, data->text, data->text_size);
        ingest_body_data(body, "\n", 1);
        ingest_body_end(body, &answer);
        key_ring_count_bytes(server->keys, http_exchange_principal(exchange), content->size);
    }
    answer_send(exchange, &answer);
done:
    json_free(&record);
    json_free(&envelope);
}

struct api_table ingest_table(void)
{
    static const struct api_route routes[] = {
        {.http = {.method = HTTP_POST,
                  .pattern = "/api/v1/events/stream",
                  .scope = HTTP_SCOPE_INGEST,
                  .stream = &stream,
                  .body_bytes_max = (uint64_t)64 << 20},
         .name = "ingestStream",
         .summary = "receive a window of NDJSON records; answered when it is on disk",
         .schema = "IngestAnswer"},
        {.http = {.method = HTTP_POST,
                  .pattern = "/api/v1/events/session-complete",
                  .scope = HTTP_SCOPE_INGEST,
                  .handle = session_complete},
         .name = "completeSession",
         .summary = "mark the session as complete",
         .schema = "SessionState"},
        {.http = {.method = HTTP_GET,
                  .pattern = "/api/v1/info/version",
                  .scope = HTTP_SCOPE_INGEST,
                  .flags = HTTP_ROUTE_INLINE,
                  .handle = version},
         .name = "ingestVersion",
         .summary = "supported wire versions and encodings",
         .schema = "IngestVersion"},
        {.http = {.method = HTTP_POST,
                  .pattern = "/api/v1/events/{type}",
                  .scope = HTTP_SCOPE_INGEST,
                  .handle = legacy_event,
                  .body_bytes_max = LEGACY_BODY_BYTES_MAX},
         .name = "ingestEvent",
         .summary = "receive one record in the envelope of older agents",
         .schema = "IngestAnswer"},
    };
    return (struct api_table){routes, sizeof routes / sizeof *routes};
}
