/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C (Castagnoli), hardware-assisted where the CPU has it. */
#ifndef GPUFL_BASE_CRC32C_H
#define GPUFL_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Start with crc = 0; feed the result back in to continue. */
uint32_t crc32c(uint32_t crc, const void *data, size_t size);

#endif
