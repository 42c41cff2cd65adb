/* SPDX-License-Identifier: Apache-2.0 */
/* Compresses an answer's body. Pure function; thread-safe. */
#ifndef GPUFL_HTTP_HTTP_COMPRESSION_H
#define GPUFL_HTTP_HTTP_COMPRESSION_H

#include "base/bytes.h"
#include "http/http_parse.h"

/* Replaces the body by its compressed form; false (and the body is unchanged): it would not be smaller, or no
 * memory. */
bool http_compress(struct bytes *body, enum http_encoding encoding);

#endif
