/* SPDX-License-Identifier: Apache-2.0 */
/* What surrounds a body: the session's identity, the headers of GPUFlight's ingestion protocol, and the details of the
 * answer. Pure functions on the caller's memory. */
#ifndef GPUFL_UPLOAD_ENVELOPE_H
#define GPUFL_UPLOAD_ENVELOPE_H

#include "format/catalogue.h"
#include "upload/body_coder.h"
#include "upload/http_client.h"

enum { HEADER_SIZE = 160, HEADERS_MAX = 12 };

struct sender {
    char session_id[65], hostname[65]; /* safe to use in a header */
};
/* The id and host in the recording, or else the directory's name and this host. GPUFL_E_DAMAGED: the session cannot be
 * identified. */
NODISCARD gpufl_status sender_identify(struct sender *sender, const char *dir, struct problem *problem);

struct request_headers {
    char text[HEADERS_MAX][HEADER_SIZE];
    const char *list[HEADERS_MAX + 1]; /* for http_request */
    unsigned count;
};

struct window_name {
    const char *id; /* UUID */
    enum channel channel;
    uint64_t sequence;
    enum body_coding coding;
    uint32_t crc32; /* of the body */
};
void headers_for_window(struct request_headers *headers, const struct sender *sender, const struct window_name *name);
void headers_for_completion(struct request_headers *headers, const struct sender *sender);

/* The number of lines that the server reports as rejected, and the reason of the first. */
uint64_t answer_rejected_lines(const struct http_client *client, const struct http_answer *answer, char *reason,
                               size_t size);

#endif
