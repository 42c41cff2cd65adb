/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest client that can load a server: keep-alive connections to the loopback, bodies from memory. It ends the
 * program with a message when the server does not answer. A caller is one thread's at a time. */
#ifndef GPUFL_BENCH_HTTP_CALLER_H
#define GPUFL_BENCH_HTTP_CALLER_H

#include "base/bytes.h"

struct http_caller {
    int fd;
    struct bytes request;
    struct bytes answer; /* head and body as they came */
    size_t body_at;      /* in answer, once it is complete */
};

void http_caller_open(struct http_caller *caller, uint16_t port);
void http_caller_close(struct http_caller *caller);
/* headers: lines that end in CR LF. */
void http_caller_send(struct http_caller *caller, const char *method, const char *target, const char *headers,
                      const void *body, size_t size);
/* Reads what is there, waiting for the first byte: the status of a complete answer, 0 while some of it is missing. */
int http_caller_receive(struct http_caller *caller);
/* Sends and waits for the whole answer. */
int http_caller_get(struct http_caller *caller, const char *target);

/* Posts lines of a session; the headers of GPUFlight's agents are made here. Answers other than 202 end the program. */
struct window {
    const char *session_id, *channel, *coding; /* coding: "identity", "zstd" */
    uint64_t sequence;
    const void *body;
    size_t size;
    uint32_t crc32; /* of the body */
};
void http_caller_send_window(struct http_caller *caller, const struct window *window);
void http_caller_post_window(struct http_caller *caller, const struct window *window);
/* Says that the session has no more windows. */
void http_caller_complete(struct http_caller *caller, const char *session_id);

#endif
