/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's connection to the server: one connection, a bandwidth limit, and the interpretation of each answer. Never
 * waits: not_before_ns is the time of the next request. Single-threaded. */
#ifndef GPUFL_AGENT_SHIPPER_H
#define GPUFL_AGENT_SHIPPER_H

#include "agent/agent_counters.h"
#include "agent/channel_stream.h"
#include "upload/envelope.h"

enum shipment {
    SHIPMENT_TAKEN,
    SHIPMENT_POISON,  /* this body is refused permanently */
    SHIPMENT_RETRY,   /* try again at not_before_ns */
    SHIPMENT_REFUSED, /* the key or every request is refused; tried again from time to time */
    SHIPMENT_STOPPED  /* stopped during the request */
};

struct shipper_options {
    struct http_server server;
    const char *api_key_file; /* NULL: server.api_key */
    uint64_t rate_bytes_per_s;
};

struct shipper {
    struct shipper_options options;
    struct http_client *client; /* owned */
    char key[4096];
    struct http_answer answer;
    struct agent_counters *counters; /* borrowed */
    enum body_coding coding;         /* accepted by the server */
    bool has_asked;                  /* coding was negotiated */
    bool is_acknowledged;            /* the last accepted window is durable on the server */
    uint64_t rejected_lines;         /* of the last accepted window */
    unsigned failures;               /* consecutive */
    int64_t not_before_ns;           /* mono; earliest time of the next request */
    double tokens;                   /* bytes that may be sent immediately */
    int64_t tokens_ns;
    struct problem problem; /* set unless SHIPMENT_TAKEN */
    char reported[512];     /* the last logged problem, so that it is logged once */
};

/* GPUFL_E_INVALID: a bad address or key; GPUFL_E_IO: the key file cannot be read. */
NODISCARD gpufl_status shipper_open(struct shipper *shipper, const struct shipper_options *options,
                                    struct agent_counters *counters, struct problem *problem);
void shipper_close(struct shipper *shipper);
const char *shipper_address(const struct shipper *shipper);

/* Asks once which encodings the server accepts. If the server does not answer, gzip is used and the question is
 * repeated later. */
void shipper_ask_version(struct shipper *shipper);
enum shipment shipper_send(struct shipper *shipper, const struct sender *sender, enum channel channel,
                           const struct stream_window *window);
enum shipment shipper_complete(struct shipper *shipper, const struct sender *sender);

#endif
