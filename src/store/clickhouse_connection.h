/* SPDX-License-Identifier: Apache-2.0 */
/* One request to one ClickHouse host, over connections that are kept open. Any number of threads. Private to the
 * ClickHouse client. */
#ifndef GPUFL_STORE_CLICKHOUSE_CONNECTION_H
#define GPUFL_STORE_CLICKHOUSE_CONNECTION_H

#include "base/bytes.h"
#include "base/status.h"
#include "store/clickhouse_location.h"

#include <stddef.h>
#include <stdint.h>

enum { CH_REASON_MAX = 256 };

struct ch_request {
    const char *parameters; /* of the address, escaped */
    const void *body;
    size_t size;
    long timeout_ms;
    int64_t deadline_ns; /* 0: none */
    bool is_once;        /* must not be carried out twice */
};
/* Whether the time for it is over. */
bool ch_request_is_late(const struct ch_request *request);

struct ch_reply {
    long http_status; /* 0: none came */
    int code;         /* ClickHouse's number of the error; 0: there is none */
    bool is_unsent;   /* no answer came, and the host has certainly not got the request */
    char reason[CH_REASON_MAX];
};

struct ch_connections; /* opaque */

/* NULL: no memory. location is the caller's, and outlives it. */
struct ch_connections *ch_connections_open(const struct ch_location *location);
void ch_connections_close(struct ch_connections *connections); /* NULL is a no-op */
/* A host that does not answer is no failure: reply tells. body is cleared first. */
NODISCARD gpufl_status ch_connection_ask(struct ch_connections *connections, unsigned host,
                                         const struct ch_request *request, struct bytes *body, struct ch_reply *reply,
                                         struct problem *problem);

#endif
