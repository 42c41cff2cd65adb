/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves addresses of this process to "function@file:line". elfutils' libdw is loaded at run time where installed;
 * without it, or without debug information, a frame reads "function@module+0xoffset". Looking up an address takes up
 * to tens of milliseconds in a large library, so each is looked up once. One thread only. */
#ifndef GPUFL_CAPTURE_SYMBOLS_H
#define GPUFL_CAPTURE_SYMBOLS_H

#include "base/bytes.h"
#include "base/status.h"

struct symbols; /* opaque */

NODISCARD gpufl_status symbols_make(struct symbols **out);
void symbols_free(struct symbols *symbols);
/* Appends the frame's description. */
void symbols_describe(struct symbols *symbols, uint64_t address, struct bytes *out);
/* True for code of gpufl itself, CUPTI and the CUDA driver. */
bool symbols_is_profiler(struct symbols *symbols, uint64_t address);
size_t symbols_bytes(const struct symbols *symbols);

#endif
