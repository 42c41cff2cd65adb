/* SPDX-License-Identifier: Apache-2.0 */
/* The only code that uses libcurl: one server, one persistent connection, one request at a time. Certificates are
 * verified, redirects are not followed, and the key appears in no message. A client owns its handle.
 * Single-threaded. */
#ifndef GPUFL_UPLOAD_HTTP_CLIENT_H
#define GPUFL_UPLOAD_HTTP_CLIENT_H

#include "base/bytes.h"
#include "base/status.h"

#include <stdatomic.h>

struct http_server {
    const char *url;      /* http:// or https://, host and port only */
    const char *api_path; /* starts with '/' */
    const char *api_key;  /* NULL or "": not sent */
    const char *ca_file;  /* NULL or "": the system's certificates */
    /* May be NULL. Checked about once a second: true cancels the current request. */
    const atomic_bool *is_cancelled;
};

struct http_client; /* opaque */

/* GPUFL_E_INVALID: a bad address, path or key. */
NODISCARD gpufl_status http_client_open(struct http_client **client, const struct http_server *server,
                                        struct problem *problem);
void http_client_close(struct http_client *client); /* NULL is a no-op */
/* Scheme, host, port and path; contains no secret. */
const char *http_client_address(const struct http_client *client);
bool http_client_has_key(const struct http_client *client);

struct http_answer {
    int status;            /* 0: no answer */
    int64_t retry_after_s; /* requested by the server; 0: none */
    struct bytes text;     /* the first 64 KiB of the body; owned, starts zeroed, reused */
    char etag[128];        /* as the server sent it; "": none */
    char reason[200];      /* why there is no answer */
};
void http_answer_free(struct http_answer *answer);

struct http_request {
    const char *path;           /* below api_path, starts with '/' */
    const char *const *headers; /* "Name: value", NULL-terminated */
    const void *body;           /* of http_post */
    size_t size;
    int64_t timeout_ms; /* at least 1 */
};
/* GPUFL_E_NO_MEMORY; otherwise GPUFL_OK, even without an answer. */
NODISCARD gpufl_status http_post(struct http_client *client, const struct http_request *request,
                                 struct http_answer *answer);
NODISCARD gpufl_status http_get(struct http_client *client, const struct http_request *request,
                                struct http_answer *answer);
/* Server text as one line of printable ASCII, with the key removed. */
void http_text_clean(const struct http_client *client, const char *text, char *out, size_t size);
/* The server's error message, from JSON or plain text, cleaned; "": none. */
void http_answer_explain(const struct http_client *client, const struct http_answer *answer, char *out, size_t size);

#endif
