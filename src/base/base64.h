/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 (RFC 4648, the standard alphabet, padded). Pure functions: any thread. */
#ifndef GPUFL_BASE_BASE64_H
#define GPUFL_BASE_BASE64_H

#include "base/bytes.h"

/* Appends the text; out->failed: it did not fit. */
void base64_encode(struct bytes *out, const void *data, size_t size);
/* Appends the bytes. Strict: no white space, full padding, no stray bits. False: not base64, `out` is unchanged, and
 * *bad_at (may be NULL) is the position of the first invalid character (SIZE_MAX: no memory). */
bool base64_decode(struct bytes *out, const char *text, size_t size, size_t *bad_at);

#endif
