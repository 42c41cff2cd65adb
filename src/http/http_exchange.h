/* SPDX-License-Identifier: Apache-2.0 */
/* One request, as its handler sees it, and functions to answer it. An exchange belongs to the server and is used by one
 * thread at a time: the one that runs the callback. Text returned by getters lives as long as the exchange. */
#ifndef GPUFL_HTTP_HTTP_EXCHANGE_H
#define GPUFL_HTTP_HTTP_EXCHANGE_H

#include "base/bytes.h"
#include "http/http_server.h"

/* The request. */
const char *http_exchange_id(const struct http_exchange *exchange);   /* also in the answer's X-Request-Id */
const char *http_exchange_peer(const struct http_exchange *exchange); /* the client's address, without port */
bool http_exchange_is_loopback(const struct http_exchange *exchange);
void *http_exchange_principal(const struct http_exchange *exchange); /* set by authorize */
const char *http_exchange_path_value(const struct http_exchange *exchange,
                                     const char *name);                                   /* "" when there is none */
const char *http_exchange_header(const struct http_exchange *exchange, const char *name); /* NULL: absent */
struct bytes *http_exchange_body(struct http_exchange *exchange);       /* complete; the handler may take the bytes */
uint64_t http_exchange_body_size(const struct http_exchange *exchange); /* bytes received so far */

/* The query. */
const char *http_exchange_query(const struct http_exchange *exchange, const char *name); /* the first; NULL: absent */
size_t http_exchange_query_count(const struct http_exchange *exchange);
const char *http_exchange_query_at(const struct http_exchange *exchange, size_t index, const char **value);
/* GPUFL_E_INVALID: not a decimal number from min to max. Absent: *value is unchanged. */
NODISCARD gpufl_status http_exchange_query_int(const struct http_exchange *exchange, const char *name, int64_t min,
                                               int64_t max, int64_t *value, struct problem *problem);
/* GPUFL_E_INVALID: a parameter that is not in the list (NULL-terminated) or appears twice. */
NODISCARD gpufl_status http_exchange_query_check(const struct http_exchange *exchange, const char *const *names,
                                                 struct problem *problem);

/* Streamed bodies. */
void http_exchange_set_state(struct http_exchange *exchange, void *state);
void *http_exchange_state(const struct http_exchange *exchange);
/* Thread-safe until end or abort is called: the consumer accepts more data. */
void http_exchange_continue(struct http_exchange *exchange);

/* The answer: the last one given counts. Security headers, request id and "Cache-Control: no-store", unless set, are
 * added. JSON and text above a minimum size are compressed if the client accepts it. */
bool http_exchange_is_answered(const struct http_exchange *exchange);
void http_respond_header(struct http_exchange *exchange, const char *name, const char *value);
/* Takes the bytes and leaves the struct empty. Failed bytes become a 500. */
void http_respond_bytes(struct http_exchange *exchange, int status, const char *type, struct bytes *body);
/* The data must outlive the server. encoding: of the data, NULL for none. */
void http_respond_constant(struct http_exchange *exchange, int status, const char *type, const char *encoding,
                           const void *data, size_t size);
void http_respond_empty(struct http_exchange *exchange, int status); /* 202, 204, 304, ... */
/* {"error":{"code":"...","message":"..."}}; code: a stable word for programs, such as "session_unknown". */
void http_respond_error(struct http_exchange *exchange, int status, const char *code, const char *format, ...)
    PRINTF_LIKE(4, 5);
/* An answer of unknown size, sent in chunks. read (event thread, must not wait): at most size bytes; 0 at the end, -1
 * if the answer cannot be completed. close (event thread): called exactly once, also when the client disconnects. */
struct http_source {
    int64_t (*read)(void *state, void *data, size_t size);
    void (*close)(void *state);
};
void http_respond_source(struct http_exchange *exchange, int status, const char *type, const struct http_source *source,
                         void *state);

/* Sets the ETag; true (the answer is 304) when the client has this version. etag: without quotes. */
bool http_respond_if_known(struct http_exchange *exchange, const char *etag);
enum { HTTP_ETAG_SIZE = 17 };
/* A hash of the content, without quotes. */
void http_etag_of(const void *data, size_t size, char etag[HTTP_ETAG_SIZE]);

#endif
