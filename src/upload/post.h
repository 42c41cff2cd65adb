/* SPDX-License-Identifier: Apache-2.0 */
/* One POST of a small body to any server: what `gpufl monitor --otlp` sends with. On the calling thread. */
#ifndef GPUFL_UPLOAD_POST_H
#define GPUFL_UPLOAD_POST_H

#include "base/upload_library.h"

/* GPUFL_OK: the server answered 2xx. GPUFL_E_INVALID: a bad address. GPUFL_E_IO: anything else; message (never empty
 * then) says what. */
GPUFL_API gpufl_status gpufl_upload_post(const struct upload_post *post, char *message, size_t message_size);

#endif
