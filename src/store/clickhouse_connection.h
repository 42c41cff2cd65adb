/* SPDX-License-Identifier: Apache-2.0 */
/* One request to one ClickHouse host over kept-alive connections. Thread-safe. Private to the ClickHouse client. */
#ifndef GPUFL_STORE_CLICKHOUSE_CONNECTION_H
#define GPUFL_STORE_CLICKHOUSE_CONNECTION_H

#include "base/bytes.h"
#include "base/status.h"
#include "store/clickhouse_location.h"

#include <stddef.h>
#include <stdint.h>

enum { CH_REASON_MAX = 256 };

struct ch_request {
    const char *parameters; /* of the URL, escaped */
    const void *body;
    size_t size;
    long timeout_ms;
    int64_t deadline_ns; /* 0: none */
    bool is_once;        /* must not be carried out twice */
};
/* True when the deadline has passed. */
bool ch_request_is_late(const struct ch_request *request);

struct ch_reply {
    long http_status; /* 0: no answer */
    int code;         /* ClickHouse's error number; 0: none */
    bool is_unsent;   /* no answer came, and the host certainly did not receive the request */
    char reason[CH_REASON_MAX];
};

struct ch_connections; /* opaque */

/* NULL: no memory. location belongs to the caller and must outlive the result. */
struct ch_connections *ch_connections_open(const struct ch_location *location);
void ch_connections_close(struct ch_connections *connections); /* NULL is a no-op */
/* A host that does not answer is not a failure here; see reply. body is cleared first. */
NODISCARD gpufl_status ch_connection_ask(struct ch_connections *connections, unsigned host,
                                         const struct ch_request *request, struct bytes *body, struct ch_reply *reply,
                                         struct problem *problem);

#endif
