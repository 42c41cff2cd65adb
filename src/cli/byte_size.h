/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes as people write them: 1048576, 500M, 2G, 1.5GiB. */
#ifndef GPUFL_CLI_BYTE_SIZE_H
#define GPUFL_CLI_BYTE_SIZE_H

#include <stdbool.h>
#include <stdint.h>

/* K, M, G and T are powers of 1024; B or iB may follow. False: the text is not a size, or the size is too large. */
bool byte_size_parse(const char *text, int64_t *bytes);

#endif
