/* SPDX-License-Identifier: Apache-2.0 */
/* Lets `gpufl serve keys` and similar commands reach a running server: a socket in its data directory, for the server's
 * user and root only. One JSON object in, one out, then the connection is closed. A separate listener thread answers
 * requests one after the other. */
#ifndef GPUFL_SERVER_CONTROL_H
#define GPUFL_SERVER_CONTROL_H

#include "base/bytes.h"
#include "base/status.h"

struct control; /* opaque */

/* Appends the answer, a JSON object without line ends. */
typedef void control_handler(void *user, const char *request, size_t size, struct bytes *answer);

NODISCARD gpufl_status control_start(struct control **control, const char *data_dir, control_handler *handler,
                                     void *user, struct problem *problem);
/* Waits for the current request. NULL is a no-op. */
void control_stop(struct control *control);

/* The client side. GPUFL_E_NOT_FOUND: no server runs on that directory. Waits as long as the answer takes. */
NODISCARD gpufl_status control_call(const char *data_dir, const struct bytes *request, struct bytes *answer,
                                    struct problem *problem);

#endif
