/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of an exchange, from the handler's data to what the library sends. Owned by the exchange; used by the
 * thread that has the exchange. */
#ifndef GPUFL_HTTP_HTTP_RESPONSE_H
#define GPUFL_HTTP_HTTP_RESPONSE_H

#include "http/http_connection.h"
#include "http/http_exchange.h"

enum { HTTP_SOURCE_WAIT = -2 }; /* of a source's read: suspend until the connection is woken */

/* A source while it is being sent. */
struct http_pull {
    const struct http_source *source;
    void *state;
    struct http_connection *connection; /* of the exchange */
    uint64_t bytes;                     /* sent so far */
};

struct http_response {
    int status; /* 0: not answered */
    char type[96];
    const char *encoding; /* of the content; NULL: none */
    struct bytes headers; /* name NUL value NUL ... */
    struct bytes body;
    const void *constant; /* instead of body */
    size_t constant_size;
    struct http_pull *pull;   /* instead of both; owned until it is sent */
    struct MHD_Response *mhd; /* our reference, from sending to the end of the exchange */
    uint64_t bytes_out;
    bool is_closing; /* the connection is not reused */
};

const char *http_status_phrase(int status);
void http_response_free(struct http_response *response);
/* Discards the answer but keeps its headers. */
void http_response_reset(struct http_response *response);
/* Compresses if worthwhile. Runs on the thread that ran the handler. */
void http_response_finish(struct http_exchange *exchange);
/* Event thread: passes the answer to the library; false: it failed. */
bool http_response_send(struct http_exchange *exchange);
/* Body bytes that were sent or are being sent. */
uint64_t http_response_bytes(const struct http_response *response);

#endif
