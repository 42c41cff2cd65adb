/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest HTTP server that a scraper needs: GET of a few fixed paths, one
 * answer per connection, on a thread of its own. At most 16 connections of 4 KiB
 * request each; who takes longer than five seconds is cut off. No keys and no
 * TLS: it listens where it is told, which should be the loopback. */
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
    /* On the endpoint's thread. accept: the request's Accept header, "" when it has none. */
    void (*render)(void *user, const char *accept, struct endpoint_answer *answer);
};

struct endpoint; /* opaque */

/* address: "127.0.0.1:9400", "[::1]:0", ":9400" (all interfaces). pages: ends with path NULL; borrowed like user. */
NODISCARD gpufl_status endpoint_start(struct endpoint **out, const char *address, const struct endpoint_page *pages,
                                      void *user, struct problem *problem);
/* The same in two steps: who connects between them is answered after the second. */
NODISCARD gpufl_status endpoint_open(struct endpoint **out, const char *address, const struct endpoint_page *pages,
                                     void *user, struct problem *problem);
NODISCARD gpufl_status endpoint_run(struct endpoint *endpoint, struct problem *problem);
/* As it really listens, e.g. "127.0.0.1:41234" when asked for port 0. */
const char *endpoint_address(const struct endpoint *endpoint);
void endpoint_stop(struct endpoint *endpoint); /* NULL is a no-op */

#endif
