/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's way to the server: one connection, a bandwidth limit, and what each answer means. Never waits by itself:
 * it says when the next request may go. One thread. */
#ifndef GPUFL_AGENT_SHIPPER_H
#define GPUFL_AGENT_SHIPPER_H

#include "agent/agent_counters.h"
#include "agent/channel_stream.h"
#include "upload/envelope.h"

enum shipment {
    SHIPMENT_TAKEN,
    SHIPMENT_POISON,  /* this body, for good */
    SHIPMENT_RETRY,   /* later; not_before_ns says when */
    SHIPMENT_REFUSED, /* the key, or everything; tried again from time to time */
    SHIPMENT_STOPPED  /* we were told to stop while it was on its way */
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
    enum body_coding coding;         /* that the server takes */
    bool has_asked;                  /* which that is */
    bool is_acknowledged;            /* the last window taken is durable at the server */
    uint64_t rejected_lines;         /* of the last window taken */
    unsigned failures;               /* in a row */
    int64_t not_before_ns;           /* mono; of the next request */
    double tokens;                   /* bytes that may go at once */
    int64_t tokens_ns;
    struct problem problem; /* after anything but SHIPMENT_TAKEN */
    char said[512];         /* the last trouble told in the log, so that it is told once */
};

/* GPUFL_E_INVALID: a bad address or key; GPUFL_E_IO: the key file cannot be read. */
NODISCARD gpufl_status shipper_open(struct shipper *shipper, const struct shipper_options *options,
                                    struct agent_counters *counters, struct problem *problem);
void shipper_close(struct shipper *shipper);
const char *shipper_address(const struct shipper *shipper);

/* Asks once which encodings the server takes; without an answer gzip is used, and it is asked again later. */
void shipper_ask_version(struct shipper *shipper);
enum shipment shipper_send(struct shipper *shipper, const struct sender *sender, enum channel channel,
                           const struct stream_window *window);
enum shipment shipper_complete(struct shipper *shipper, const struct sender *sender);

#endif
