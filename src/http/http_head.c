/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that is decided before the body is read. The library is lenient in ways that let a proxy and this server
 * see different requests in the same bytes; the checks here prevent that. */
#include "http/http_core.h"
#include "http/http_library.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { HEAD_BYTES_MAX = 32 << 10, HEADER_COUNT_MAX = 100 };

static const char *const method_names[HTTP_METHOD_COUNT] = {"GET", "POST", "PUT", "PATCH", "DELETE"};

bool http_library_is_lenient(void)
{
    unsigned major = 0, minor = 0, patch = 0;
    int count = sscanf(MHD_get_version(), "%u.%u.%u", &major, &minor, &patch);
    return count == 3 && major == 0 && (minor < 9 || (minor == 9 && patch < 77));
}

struct head {
    const char *next; /* where the next header's name must begin */
    bool is_layout_known, is_contiguous, is_clean;
    unsigned count, host_count, length_count, encoding_count, token_count;
    const char *host, *length, *encoding, *authorization;
};

static void once_note(const char *name, const char *value, const char *wanted, unsigned *count, const char **slot)
{
    if (!strcasecmp(name, wanted)) {
        ++*count;
        *slot = value;
    }
}

/* Before 0.9.77 the library joins folded lines in a way that changes the header's name, accepts a bare LF as a line
 * end, and truncates a value at a NUL. In each of these cases its pieces are not adjacent in its buffer in the order
 * name, colon, white space, value, CR, LF. */
static bool header_is_contiguous(const struct head *head, const char *name, const char *value)
{
    const char *between = name + strlen(name) + 1;
    return name == head->next && between <= value && value - between < HEAD_BYTES_MAX &&
           strspn(between, " \t") >= (size_t)(value - between);
}

static http_library_result header_read(void *argument, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    struct head *head = argument;
    value = value ? value : "";
    head->count++;
    if (head->is_layout_known) {
        head->is_contiguous = head->is_contiguous && header_is_contiguous(head, name, value);
        head->next = value + strlen(value) + 2;
    }
    head->is_clean = head->is_clean && http_header_name_is_valid(name) && http_header_value_is_valid(value);
    once_note(name, value, "Host", &head->host_count, &head->host);
    once_note(name, value, "Content-Length", &head->length_count, &head->length);
    once_note(name, value, "Transfer-Encoding", &head->encoding_count, &head->encoding);
    once_note(name, value, "Authorization", &head->token_count, &head->authorization);
    return MHD_YES;
}

/* Answers and closes the connection, because it is unknown where the next request begins. */
static bool head_refuse(struct http_exchange *exchange, int status, const char *code, const char *message)
{
    http_respond_error(exchange, status, code, "%s", message);
    exchange->response.is_closing = true;
    return false;
}

/* Whether the empty line follows the last header. size: of the head, or minus that of the empty line, which is what
 * old libraries such as 0.9.72 report. All CRs and LFs have become NULs. */
static bool head_ends_here(const struct head *head, const char *method, size_t size)
{
    if (size <= HTTP_POOL_BYTES)
        return head->next + 2 == method + size;
    return size == (size_t)-2 && !memcmp(head->next - 2, "\0\0\0", 4);
}

static bool head_read(struct http_exchange *exchange, struct head *head, const char *method, const char *version)
{
    struct MHD_Connection *mhd = exchange->connection->mhd;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    const size_t size = info ? info->header_size : 0;
    if (size > HEAD_BYTES_MAX && size <= HTTP_POOL_BYTES)
        return head_refuse(exchange, 431, "head_too_large", "the request's head is larger than 32 KiB");
    head->is_clean = http_header_name_is_valid(method) && !strchr(exchange->target_text, ' ');
    head->is_contiguous = true;
    head->is_layout_known = http_library_is_lenient();
    head->next = version + strlen(version) + 2;
    MHD_get_connection_values(mhd, MHD_HEADER_KIND, header_read, head);
    if (head->is_layout_known) {
        const char *target = method + strlen(method) + 1;
        head->is_contiguous = head->is_contiguous && target == exchange->target_at &&
                              target + exchange->target_size + 1 == version && head_ends_here(head, method, size);
    }
    if (head->is_contiguous && size > HTTP_POOL_BYTES && head->next - method > HEAD_BYTES_MAX)
        return head_refuse(exchange, 431, "head_too_large", "the request's head is larger than 32 KiB");
    if (head->count > HEADER_COUNT_MAX)
        return head_refuse(exchange, 431, "head_too_large", "the request has more than 100 headers");
    if (!head->is_contiguous || !head->is_clean)
        return head_refuse(exchange, 400, "request_malformed",
                           "a line of the request's head is folded, has no CR, or has invalid characters");
    return true;
}

/* The end of the body must be unambiguous. */
static bool framing_check(struct http_exchange *exchange, const struct head *head, const char *version)
{
    const bool is_old = !strcmp(version, "HTTP/1.0");
    if (!is_old && strcmp(version, "HTTP/1.1") != 0)
        return head_refuse(exchange, 505, "version_unsupported", "the server supports only HTTP/1.1");
    if (head->length_count + head->encoding_count > 1)
        return head_refuse(exchange, 400, "framing_ambiguous",
                           "more than one Content-Length or Transfer-Encoding header");
    if (head->encoding && (is_old || strcasecmp(head->encoding, "chunked") != 0))
        return head_refuse(exchange, 400, "framing_unsupported", "the only supported Transfer-Encoding is chunked");
    if (head->host_count > 1 || (!is_old && !head->host_count))
        return head_refuse(exchange, 400, "host_missing", "a request must have exactly one Host header");
    if (head->token_count > 1)
        return head_refuse(exchange, 400, "request_malformed", "a request may have only one Authorization header");
    return true;
}

static bool host_is_allowed(const struct http_server_options *options, const char *host)
{
    char name[HTTP_HOST_SIZE];
    if (!http_host_parse(host, name))
        return false;
    bool is_allowed = http_host_is_safe(name);
    for (const char *const *at = options->allowed_hosts; !is_allowed && at && *at; at++)
        is_allowed = !strcmp(*at, "*") || !strcasecmp(*at, name);
    return is_allowed;
}

/* A page of another site, open in a browser on a machine that needs no key, may neither read nor write. */
static bool browser_check(struct http_exchange *exchange, const struct head *head, enum http_method method)
{
    if (head->host && !http_bearer_token(head->authorization).size &&
        !host_is_allowed(&exchange->server->options, head->host)) {
        http_respond_error(exchange, 421, "host_unknown",
                           "the name in the Host header is not allowed; use an IP address or localhost, "
                           "send a key, or allow the name");
        return false;
    }
    const char *origin = http_exchange_header(exchange, "Origin");
    const char *site = http_exchange_header(exchange, "Sec-Fetch-Site");
    bool is_foreign = (origin && !(head->host && http_origin_is_own(origin, head->host))) ||
                      (site && strcasecmp(site, "same-origin") != 0 && strcasecmp(site, "none") != 0);
    if (!http_cors_allow(exchange, origin) && method != HTTP_GET && is_foreign) {
        http_respond_error(exchange, 403, "origin_foreign",
                           "pages of other sites may not change anything on this server");
        return false;
    }
    return true;
}

static bool method_find(struct http_exchange *exchange, const char *name, enum http_method *method)
{
    *method = HTTP_GET;
    if (!strcmp(name, "HEAD"))
        return true;
    for (; *method < HTTP_METHOD_COUNT; ++*method)
        if (!strcmp(method_names[*method], name))
            return true;
    http_respond_error(exchange, 501, "method_unknown", "supported methods are GET, HEAD, POST, PUT, PATCH and DELETE");
    return false;
}

static bool target_read(struct http_exchange *exchange)
{
    struct problem problem = {""};
    gpufl_status status = http_target_parse(&exchange->target, exchange->target_text, &problem);
    if (!status)
        return true;
    if (status == GPUFL_E_NO_MEMORY)
        http_respond_error(exchange, 503, "no_memory", "%s", problem.text);
    else
        http_respond_error(exchange, status == GPUFL_E_LIMIT ? 414 : 400, "target_invalid", "%s", problem.text);
    return false;
}

static bool values_copy(struct http_exchange *exchange)
{
    for (unsigned i = 0; i < exchange->match.count; i++) {
        const struct http_span *value = &exchange->match.values[i];
        exchange->values[i] = strndup(value->at, value->size);
        if (!exchange->values[i]) {
            exchange->match.count = 0;
            http_respond_error(exchange, 503, "no_memory", "no memory for the request");
            return false;
        }
    }
    return true;
}

static bool route_find(struct http_exchange *exchange, enum http_method method)
{
    const struct http_server_options *options = &exchange->server->options;
    unsigned allowed = 0;
    for (size_t i = 0; i < options->route_count; i++) {
        const struct http_route *route = &options->routes[i];
        if (!http_pattern_matches(route->pattern, &exchange->target, &exchange->match))
            continue;
        allowed |= 1u << route->method;
        if (route->method == method) {
            exchange->route = route;
            return values_copy(exchange);
        }
    }
    exchange->match.count = 0;
    if (!allowed) {
        http_respond_error(exchange, 404, "not_found", "no such URL");
        return false;
    }
    struct bytes allow = {0};
    for (unsigned i = 0; i < HTTP_METHOD_COUNT; i++)
        if (allowed & 1u << i)
            bytes_append_format(&allow, "%s%s", allow.size ? ", " : "", i == HTTP_GET ? "GET, HEAD" : method_names[i]);
    http_respond_header(exchange, "Allow", bytes_text(&allow));
    bytes_free(&allow);
    http_respond_error(exchange, 405, "method_not_allowed", "this URL does not support %s", exchange->method);
    return false;
}

/* A local proxy is not the client: requests that came through one are not treated as local. */
static bool client_is_local(const struct http_exchange *exchange)
{
    static const char *const marks[] = {"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Via"};
    bool is_local = exchange->connection->is_loopback;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        is_local = is_local && !http_exchange_header(exchange, marks[i]);
    return is_local;
}

static bool permission_ask(struct http_exchange *exchange, const struct head *head)
{
    const struct http_server_options *options = &exchange->server->options;
    if (exchange->route->scope == HTTP_SCOPE_NONE)
        return true;
    struct http_span token = http_bearer_token(head->authorization);
    const struct http_credentials credentials = {
        .scope = exchange->route->scope,
        .token = token.size ? token.at : NULL,
        .token_size = token.size,
        .peer = exchange->connection->peer,
        .is_loopback = exchange->is_local,
    };
    struct http_access *access = &exchange->access;
    options->authorize(options->user, &credentials, access);
    if (!access->status)
        return true;
    const char *reason = access->reason;
    if (access->status == 401) {
        http_respond_header(exchange, "WWW-Authenticate", "Bearer");
        http_respond_error(exchange, 401, "key_missing", "%s", *reason ? reason : "a valid key is required");
    } else if (access->status == 429) {
        char seconds[16];
        snprintf(seconds, sizeof seconds, "%u", access->retry_after_s ? access->retry_after_s : 1);
        http_respond_header(exchange, "Retry-After", seconds);
        http_respond_error(exchange, 429, "rate_limited", "%s",
                           *reason ? reason : "too many requests; try again later");
    } else {
        http_respond_error(exchange, 403, "key_forbids", "%s", *reason ? reason : "the key does not allow this");
    }
    return false;
}

static bool body_expect(struct http_exchange *exchange, const struct head *head)
{
    const struct http_route *route = exchange->route;
    uint64_t length = 0;
    exchange->body_bytes_max = route->body_bytes_max ? route->body_bytes_max : exchange->server->options.body_bytes_max;
    exchange->body.limit = exchange->body_bytes_max;
    if (head->length && (!http_size_parse(head->length, &length) || length > exchange->body_bytes_max)) {
        http_respond_error(exchange, 413, "body_too_large", "the body is larger than %llu bytes",
                           (unsigned long long)exchange->body_bytes_max);
        exchange->response.is_closing = true;
        return false;
    }
    const char *encoding = http_exchange_header(exchange, "Content-Encoding");
    if (!route->stream && encoding && strcasecmp(encoding, "identity") != 0) {
        http_respond_error(exchange, 415, "encoding_unsupported", "this URL accepts no compressed body");
        return false;
    }
    return true;
}

bool http_head_accept(struct http_exchange *exchange, const char *method_name, const char *version)
{
    struct head head = {0};
    enum http_method method;
    bool is_word = http_header_name_is_valid(method_name);
    snprintf(exchange->method, sizeof exchange->method, "%s", is_word ? method_name : "?");
    if (!head_read(exchange, &head, method_name, version) || !framing_check(exchange, &head, version))
        return false;
    exchange->is_local = client_is_local(exchange);
    if (http_cors_preflight(exchange, method_name) || !method_find(exchange, method_name, &method) ||
        !target_read(exchange) || !browser_check(exchange, &head, method) || !route_find(exchange, method) ||
        !permission_ask(exchange, &head) || !body_expect(exchange, &head))
        return false;
    if (exchange->route->stream) {
        exchange->is_stream_open = true;
        exchange->route->stream->open(exchange, exchange->server->options.user);
        if (http_exchange_is_answered(exchange)) {
            exchange->is_stream_open = false;
            return false;
        }
    }
    return true;
}
