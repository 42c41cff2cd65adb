/* SPDX-License-Identifier: Apache-2.0 */
/* One POST of a small body to any server, used by `gpufl monitor --otlp`. Runs on the calling thread. */
#ifndef GPUFL_UPLOAD_POST_H
#define GPUFL_UPLOAD_POST_H

#include "base/upload_library.h"

/* GPUFL_OK: the server answered 2xx. GPUFL_E_INVALID: a bad address. GPUFL_E_IO: any other error. After an error,
 * message says what failed and is never empty. */
GPUFL_API gpufl_status gpufl_upload_post(const struct upload_post *post, char *message, size_t message_size);

#endif
