/* SPDX-License-Identifier: Apache-2.0 */
/* Binary data inside a line: zstd, then base64 (the encoding "zstd+base64" of code objects). Pure functions on bytes,
 * any thread. */
#ifndef GPUFL_LOGFILE_PACKED_BYTES_H
#define GPUFL_LOGFILE_PACKED_BYTES_H

#include "base/bytes.h"
#include "base/status.h"

#define PACKED_BYTES_ENCODING "zstd+base64"

/* Appends the packed text of the data to out. */
NODISCARD gpufl_status packed_bytes_append(struct bytes *out, const void *data, size_t size, struct problem *problem);
/* Appends the data of a packed text, which must be one frame of exactly `plain_size` bytes (the size in the record, at
 * most limit). GPUFL_E_DAMAGED: it is not; GPUFL_E_LIMIT: the declared size exceeds limit. */
NODISCARD gpufl_status packed_bytes_read(struct bytes *out, const char *text, size_t size, uint64_t plain_size,
                                         uint64_t limit, struct problem *problem);

#endif
