/* SPDX-License-Identifier: Apache-2.0 */
/* A minimal HTTP server for scrapers: GET of a few fixed paths, one answer per connection, on a separate thread. At
 * most 16 connections with requests of 4 KiB; a client that takes longer than five seconds is disconnected. No keys and
 * no TLS: it should listen on the loopback. */
#ifndef GPUFL_BASE_ENDPOINT_H
#define GPUFL_BASE_ENDPOINT_H

#include "base/bytes.h"
#include "base/status.h"

struct endpoint_answer {
    int status;
    const char *content_type; /* static storage */
    struct bytes *body;       /* to append to */
};
struct endpoint_page {
    const char *path; /* "/metrics" */
    /* Called on the endpoint's thread. accept: the request's Accept header, or "". */
    void (*render)(void *user, const char *accept, struct endpoint_answer *answer);
};

struct endpoint; /* opaque */

/* address: "127.0.0.1:9400", "[::1]:0", ":9400" (all interfaces). pages: ends with path NULL; borrowed, like user. */
NODISCARD gpufl_status endpoint_start(struct endpoint **out, const char *address, const struct endpoint_page *pages,
                                      void *user, struct problem *problem);
/* The same in two steps: clients that connect in between are answered after the second. */
NODISCARD gpufl_status endpoint_open(struct endpoint **out, const char *address, const struct endpoint_page *pages,
                                     void *user, struct problem *problem);
NODISCARD gpufl_status endpoint_run(struct endpoint *endpoint, struct problem *problem);
/* The actual address, e.g. "127.0.0.1:41234" if port 0 was requested. */
const char *endpoint_address(const struct endpoint *endpoint);
void endpoint_stop(struct endpoint *endpoint); /* NULL is a no-op */

#endif
