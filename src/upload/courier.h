/* SPDX-License-Identifier: Apache-2.0 */
/* Brings one body to the server: tries again where that can help, waits as long as the server asks, and says what
 * became of it. Blocks its caller, never beyond the deadline; one thread at a time. */
#ifndef GPUFL_UPLOAD_COURIER_H
#define GPUFL_UPLOAD_COURIER_H

#include "upload/http_client.h"

#define COURIER_TRIES_MAX 5

struct courier {
    struct http_client *client; /* owned */
    int64_t deadline_mono_ns;
    int last_status;           /* of the server's last answer; 0: it never gave one */
    struct http_answer answer; /* to the last request */
    gpufl_status stop_status;  /* after DELIVERY_STOPPED */
    struct problem problem;    /* after DELIVERY_REFUSED and DELIVERY_STOPPED */
};

enum delivery {
    DELIVERY_DONE,
    DELIVERY_REFUSED, /* this body, for good; the next may be taken */
    DELIVERY_STOPPED  /* no body will get through now */
};

NODISCARD gpufl_status courier_open(struct courier *courier, const struct http_server *server, int64_t deadline_mono_ns,
                                    struct problem *problem);
void courier_close(struct courier *courier);
/* request->timeout_ms is set here. */
enum delivery courier_deliver(struct courier *courier, struct http_request *request);
/* A question that is asked once; path as in http_request. courier->answer has what came, status 0: nothing did. */
void courier_ask(struct courier *courier, const char *path);

#endif
