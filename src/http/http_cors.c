/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of other sites that the operator has allowed may use the server from a browser (CORS). Such a page sets the key
 * in a header itself; browsers send nothing along, so credentials are not allowed. */
#include "http/http_core.h"

#include "http/http_exchange.h"

#include <strings.h>

bool http_cors_allow(struct http_exchange *exchange, const char *origin)
{
    const char *const *at = exchange->server->options.cors_origins;
    if (!at || !origin)
        return false;
    /* Caches must not reuse an answer for another site. */
    http_respond_header(exchange, "Vary", "Origin");
    while (*at && strcasecmp(*at, origin) != 0)
        at++;
    if (!*at)
        return false;
    http_respond_header(exchange, "Access-Control-Allow-Origin", *at);
    http_respond_header(exchange, "Access-Control-Expose-Headers", "ETag, Retry-After, X-Request-Id");
    return true;
}

bool http_cors_preflight(struct http_exchange *exchange, const char *method)
{
    const char *origin = http_exchange_header(exchange, "Origin");
    if (!exchange->server->options.cors_origins || strcmp(method, "OPTIONS") != 0 || !origin ||
        !http_exchange_header(exchange, "Access-Control-Request-Method"))
        return false;
    if (http_cors_allow(exchange, origin)) {
        http_respond_header(exchange, "Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE");
        http_respond_header(exchange, "Access-Control-Allow-Headers",
                            "Authorization, Content-Type, If-Match, If-None-Match");
        http_respond_header(exchange, "Access-Control-Max-Age", "600");
        http_respond_empty(exchange, 204);
    } else {
        http_respond_error(exchange, 403, "origin_foreign", "pages of this site may not use the server");
    }
    return true;
}
