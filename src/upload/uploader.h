/* SPDX-License-Identifier: Apache-2.0 */
/* Sends one body to the server, retries where that can help, waits as long as the server asks, and reports the result.
 * Blocks the caller until the deadline at most. Single-threaded. */
#ifndef GPUFL_UPLOAD_UPLOADER_H
#define GPUFL_UPLOAD_UPLOADER_H

#include "upload/http_client.h"

#define UPLOADER_TRIES_MAX 5

struct uploader {
    struct http_client *client; /* owned */
    int64_t deadline_mono_ns;
    int last_status;           /* of the server's last answer; 0: it never answered */
    struct http_answer answer; /* to the last request */
    gpufl_status stop_status;  /* after DELIVERY_STOPPED */
    struct problem problem;    /* after DELIVERY_REFUSED and DELIVERY_STOPPED */
};

enum delivery {
    DELIVERY_DONE,
    DELIVERY_REFUSED, /* this body is refused permanently; the next one can be sent */
    DELIVERY_STOPPED  /* no further body will get through now */
};

NODISCARD gpufl_status uploader_open(struct uploader *uploader, const struct http_server *server,
                                     int64_t deadline_mono_ns, struct problem *problem);
void uploader_close(struct uploader *uploader);
/* Sets request->timeout_ms. */
enum delivery uploader_send(struct uploader *uploader, struct http_request *request);
/* Sends a GET request once; path as in http_request. The result is in uploader->answer; status 0: no answer. */
void uploader_get(struct uploader *uploader, const char *path);

#endif
