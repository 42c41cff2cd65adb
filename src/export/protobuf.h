/* SPDX-License-Identifier: Apache-2.0 */
/* Writes protocol buffers. Nested messages are written in place; their length is filled in at the end. */
#ifndef GPUFL_EXPORT_PROTOBUF_H
#define GPUFL_EXPORT_PROTOBUF_H

#include "base/bytes.h"

void protobuf_varint(struct bytes *out, uint64_t value);
void protobuf_uint(struct bytes *out, unsigned field, uint64_t value);
void protobuf_int(struct bytes *out, unsigned field, int64_t value); /* int64: not zigzag */
void protobuf_fixed64(struct bytes *out, unsigned field, uint64_t value);
void protobuf_double(struct bytes *out, unsigned field, double value);
void protobuf_text(struct bytes *out, unsigned field, const char *text); /* as valid UTF-8 */
/* Returns the argument for protobuf_end. */
size_t protobuf_begin(struct bytes *out, unsigned field);
void protobuf_end(struct bytes *out, size_t begin);

#endif
