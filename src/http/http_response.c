/* SPDX-License-Identifier: Apache-2.0 */
#include "http/http_response.h"

#include "format/json.h"
#include "http/http_compression.h"
#include "http/http_core.h"

#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { COMPRESSED_BYTES_MIN = 1024, HEADERS_BYTES_MAX = 16 << 10, PULL_BYTES = 32 << 10 };

/* Pages load nothing from other sites, cannot be framed, and cannot run injected text as code. */
static const char page_policy[] = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
                                  "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'self'; "
                                  "frame-ancestors 'none'";
static const char data_policy[] = "default-src 'none'; frame-ancestors 'none'";

const char *http_status_phrase(int status)
{
    switch (status) {
    case 400:
        return "Bad Request";
    case 408:
        return "Request Timeout";
    case 413:
        return "Content Too Large";
    case 503:
        return "Service Unavailable";
    default:
        return "Error";
    }
}

static void pull_free(void *argument)
{
    struct http_pull *pull = argument;
    if (pull->source->close)
        pull->source->close(pull->state);
    free(pull);
}

void http_response_reset(struct http_response *response)
{
    response->status = 0;
    response->type[0] = '\0';
    response->encoding = NULL;
    bytes_free(&response->body);
    response->constant = NULL;
    response->constant_size = 0;
    if (response->pull)
        pull_free(response->pull);
    response->pull = NULL;
}

void http_response_free(struct http_response *response)
{
    if (response->mhd) {
        response->pull = NULL; /* owned by the library */
        MHD_destroy_response(response->mhd);
    }
    http_response_reset(response);
    bytes_free(&response->headers);
}

bool http_exchange_is_answered(const struct http_exchange *exchange)
{
    return exchange->response.status != 0;
}

void http_respond_header(struct http_exchange *exchange, const char *name, const char *value)
{
    struct bytes *headers = &exchange->response.headers;
    const size_t needed = strlen(name) + strlen(value) + 2;
    /* Values that a handler copies from a request must not end a header. */
    if (!http_header_name_is_valid(name) || !http_header_value_is_valid(value) ||
        headers->size + needed > HEADERS_BYTES_MAX || !bytes_reserve(headers, needed))
        return;
    bytes_append(headers, name, strlen(name) + 1);
    bytes_append(headers, value, strlen(value) + 1);
}

static struct http_response *answer_begin(struct http_exchange *exchange, int status, const char *type)
{
    struct http_response *response = &exchange->response;
    http_response_reset(response);
    response->status = status;
    snprintf(response->type, sizeof response->type, "%s", type);
    return response;
}

void http_respond_bytes(struct http_exchange *exchange, int status, const char *type, struct bytes *body)
{
    if (body->failed) {
        bytes_free(body);
        http_respond_error(exchange, 500, "answer_too_large", "no memory for the complete answer");
        return;
    }
    struct http_response *response = answer_begin(exchange, status, type);
    response->body = *body;
    memset(body, 0, sizeof *body);
}

void http_respond_constant(struct http_exchange *exchange, int status, const char *type, const char *encoding,
                           const void *data, size_t size)
{
    struct http_response *response = answer_begin(exchange, status, type);
    response->encoding = encoding;
    response->constant = data;
    response->constant_size = size;
}

void http_respond_empty(struct http_exchange *exchange, int status)
{
    answer_begin(exchange, status, "");
}

void http_respond_error(struct http_exchange *exchange, int status, const char *code, const char *format, ...)
{
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    struct bytes body = {0};
    bytes_append_text(&body, "{\"error\":{\"code\":");
    json_text(&body, code);
    bytes_append_text(&body, ",\"message\":");
    json_text(&body, message);
    bytes_append_text(&body, "}}\n");
    struct http_response *response = answer_begin(exchange, status, "application/json");
    if (body.failed)
        bytes_free(&body);
    response->body = body;
}

void http_respond_source(struct http_exchange *exchange, int status, const char *type, const struct http_source *source,
                         void *state)
{
    struct http_pull *pull = malloc(sizeof *pull);
    if (!pull) {
        if (source->close)
            source->close(state);
        http_respond_error(exchange, 503, "no_memory", "no memory for the answer");
        return;
    }
    *pull = (struct http_pull){.source = source, .state = state, .connection = exchange->connection};
    answer_begin(exchange, status, type)->pull = pull;
}

void http_etag_of(const void *data, size_t size, char etag[HTTP_ETAG_SIZE])
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (const unsigned char *at = data, *end = at + size; at < end; at++)
        hash = (hash ^ *at) * 0x100000001b3u;
    snprintf(etag, HTTP_ETAG_SIZE, "%016llx", (unsigned long long)hash);
}

bool http_respond_if_known(struct http_exchange *exchange, const char *etag)
{
    char quoted[160];
    /* Weak, because the same version may be sent with or without compression. */
    snprintf(quoted, sizeof quoted, "W/\"%.128s\"", etag);
    http_respond_header(exchange, "ETag", quoted);
    if (!http_etag_matches(http_exchange_header(exchange, "If-None-Match"), quoted))
        return false;
    http_respond_empty(exchange, 304);
    return true;
}

static bool type_is(const char *type, const char *prefix)
{
    return !strncasecmp(type, prefix, strlen(prefix));
}

static bool is_compressible(const struct http_response *response)
{
    const char *type = response->type;
    return response->body.size >= COMPRESSED_BYTES_MIN && !response->encoding &&
           (type_is(type, "application/json") || type_is(type, "text/") || type_is(type, "application/x-ndjson") ||
            type_is(type, "application/openmetrics-text"));
}

void http_response_finish(struct http_exchange *exchange)
{
    struct http_response *response = &exchange->response;
    if (!http_exchange_is_answered(exchange))
        http_respond_error(exchange, 500, "no_answer", "the request was not answered");
    if (!is_compressible(response))
        return;
    http_respond_header(exchange, "Vary", "Accept-Encoding");
    enum http_encoding encoding = http_encoding_choose(http_exchange_header(exchange, "Accept-Encoding"));
    if (http_compress(&response->body, encoding))
        response->encoding = http_encoding_name(encoding);
}

static ssize_t pull_read(void *argument, uint64_t position, char *out, size_t size)
{
    (void)position;
    struct http_pull *pull = argument;
    for (;;) {
        int64_t got = pull->source->read(pull->state, out, size);
        if (got > 0) {
            pull->bytes += (uint64_t)got;
            return (ssize_t)got;
        }
        if (got != HTTP_SOURCE_WAIT)
            return got ? MHD_CONTENT_READER_END_WITH_ERROR : MHD_CONTENT_READER_END_OF_STREAM;
        enum http_suspension suspension = http_connection_suspend(pull->connection);
        if (suspension == HTTP_SUSPENDED)
            return 0;
        if (suspension == HTTP_CLOSING)
            return MHD_CONTENT_READER_END_OF_STREAM;
    }
}

static struct MHD_Response *response_make(struct http_response *response)
{
    struct MHD_Response *mhd;
    if (response->pull) {
        mhd = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, PULL_BYTES, pull_read, response->pull, pull_free);
    } else if (response->constant) {
        response->bytes_out = response->constant_size;
        mhd = MHD_create_response_from_buffer(response->constant_size, (void *)response->constant,
                                              MHD_RESPMEM_PERSISTENT);
    } else {
        response->bytes_out = response->body.size;
        mhd = MHD_create_response_from_buffer(response->body.size, response->body.data, MHD_RESPMEM_MUST_FREE);
        if (mhd)
            memset(&response->body, 0, sizeof response->body);
    }
    return mhd;
}

/* Reads the header at *offset and advances it; false at the end. */
static bool header_next(const struct bytes *headers, size_t *offset, const char **name, const char **value)
{
    if (*offset >= headers->size)
        return false;
    *name = headers->data + *offset;
    *value = *name + strlen(*name) + 1;
    *offset += strlen(*name) + strlen(*value) + 2;
    return true;
}

static bool has_header(const struct http_response *response, const char *wanted)
{
    size_t offset = 0;
    const char *name, *value;
    while (header_next(&response->headers, &offset, &name, &value))
        if (!strcasecmp(name, wanted))
            return true;
    return false;
}

static bool headers_add(const struct http_exchange *exchange, struct MHD_Response *mhd)
{
    const struct http_response *response = &exchange->response;
    const bool is_page = type_is(response->type, "text/html");
    /* Browsers merge the headers of a 304 into the cached answer: a page would lose its policy. */
    const char *policy = is_page ? page_policy : response->status == 304 ? NULL : data_policy;
    const char *const fixed[][2] = {
        {"X-Request-Id", exchange->id},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Content-Security-Policy", policy},
        {"Cross-Origin-Opener-Policy", is_page ? "same-origin" : NULL},
        {"X-Frame-Options", is_page ? "DENY" : NULL},
        {"Content-Type", response->type[0] ? response->type : NULL},
        {"Content-Encoding", response->encoding},
        {"Connection", response->is_closing ? "close" : NULL},
        {"Cache-Control", has_header(response, "Cache-Control") ? NULL : "no-store"},
    };
    bool is_good = true;
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        if (fixed[i][1])
            is_good = is_good && MHD_add_response_header(mhd, fixed[i][0], fixed[i][1]) == MHD_YES;
    size_t offset = 0;
    const char *name, *value;
    while (is_good && header_next(&response->headers, &offset, &name, &value))
        is_good = MHD_add_response_header(mhd, name, value) == MHD_YES;
    return is_good;
}

bool http_response_send(struct http_exchange *exchange)
{
    struct http_response *response = &exchange->response;
    response->mhd = response_make(response);
    return response->mhd && headers_add(exchange, response->mhd) &&
           MHD_queue_response(exchange->connection->mhd, (unsigned)response->status, response->mhd) == MHD_YES;
}

uint64_t http_response_bytes(const struct http_response *response)
{
    return response->mhd && response->pull ? response->pull->bytes : response->bytes_out;
}
