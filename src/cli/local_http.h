/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to a server on this machine, without TLS and without a library. Single-threaded. */
#ifndef GPUFL_CLI_LOCAL_HTTP_H
#define GPUFL_CLI_LOCAL_HTTP_H

#include "base/bytes.h"
#include "base/status.h"

#include <stdint.h>

/* GET of 127.0.0.1:port; body: what follows the head, replaced. The answer's status, or 0 with the problem set: nobody
 * answers, the answer is no HTTP, or it is larger than 4 MiB. Each step may take a second. */
int local_http_get(uint16_t port, const char *path, struct bytes *body, struct problem *problem);

#endif
