/* SPDX-License-Identifier: Apache-2.0 */
/* The only code that sees libcurl: one server, one connection that is kept open, one request at a time. Certificates
 * are checked, redirects are not followed, the key is in no message. A client owns its handle; one thread at a time. */
#ifndef GPUFL_UPLOAD_HTTP_CLIENT_H
#define GPUFL_UPLOAD_HTTP_CLIENT_H

#include "base/bytes.h"
#include "base/status.h"

#include <stdatomic.h>

struct http_server {
    const char *url;      /* http:// or https://, host and port only */
    const char *api_path; /* starts with '/' */
    const char *api_key;  /* NULL or "": none is sent */
    const char *ca_file;  /* NULL or "": the system's certificates */
    /* NULL, or looked at about once a second: when true the request under way ends without an answer. */
    const atomic_bool *is_cancelled;
};

struct http_client; /* opaque */

/* GPUFL_E_INVALID: a bad address, path or key. */
NODISCARD gpufl_status http_client_open(struct http_client **client, const struct http_server *server,
                                        struct problem *problem);
void http_client_close(struct http_client *client); /* NULL is a no-op */
/* Scheme, host, port and path, without anything secret. */
const char *http_client_address(const struct http_client *client);
bool http_client_has_key(const struct http_client *client);

struct http_answer {
    int status;            /* 0: none came */
    int64_t retry_after_s; /* what the server asks for; 0: nothing */
    struct bytes text;     /* the answer's first 64 KiB; owned, starts zeroed, reused */
    char etag[128];        /* as the server wrote it; "": none */
    char reason[200];      /* why no answer came */
};
void http_answer_free(struct http_answer *answer);

struct http_request {
    const char *path;           /* below api_path, starts with '/' */
    const char *const *headers; /* "Name: value", NULL-terminated */
    const void *body;           /* of http_post */
    size_t size;
    int64_t timeout_ms; /* at least 1 */
};
/* GPUFL_E_NO_MEMORY, or GPUFL_OK with or without an answer. */
NODISCARD gpufl_status http_post(struct http_client *client, const struct http_request *request,
                                 struct http_answer *answer);
NODISCARD gpufl_status http_get(struct http_client *client, const struct http_request *request,
                                struct http_answer *answer);
/* What a server wrote, as one line of printable ASCII in which the key does not appear. */
void http_text_clean(const struct http_client *client, const char *text, char *out, size_t size);
/* The server's own explanation, from JSON or plain text, cleaned; "" if it gave none. */
void http_answer_explain(const struct http_client *client, const struct http_answer *answer, char *out, size_t size);

#endif
