/* SPDX-License-Identifier: Apache-2.0 */
/* Resources that a server needs before it can start: its socket, its certificate and key. */
#ifndef GPUFL_HTTP_HTTP_LISTENER_H
#define GPUFL_HTTP_HTTP_LISTENER_H

#include "base/bytes.h"
#include "http/http_parse.h"

/* Opens a listening socket; the address has the assigned port. */
NODISCARD gpufl_status http_listener_open(int *fd, struct http_address *address, const char *text,
                                          struct problem *problem);
/* Reads a PEM file; NUL-terminated. what: "certificate" or "key", for messages. */
NODISCARD gpufl_status http_pem_read(struct bytes *out, const char *path, const char *what, struct problem *problem);

#endif
