/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU that all look-alike libraries pretend to be, as a real one answers. */
#ifndef FAKES_H200_H
#define FAKES_H200_H

#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define H200_NAME "NVIDIA H200"
#define H200_DRIVER "580.159.04"
enum { H200_CUDA_VERSION = 13000, H200_LIMIT = 16 };
#define H200_MEMORY_BYTES (143771ull << 20)

/* FAKE_GPU_COUNT, 1 when unset; at most H200_LIMIT. */
static inline int h200_count(void)
{
    const char *text = getenv("FAKE_GPU_COUNT");
    long count = text != NULL ? strtol(text, NULL, 10) : 1;
    return count < 0 ? 0 : count > H200_LIMIT ? H200_LIMIT : (int)count;
}

static inline void h200_uuid(int device, unsigned char bytes[16])
{
    static const unsigned char first[16] = {0x97, 0xa2, 0xcf, 0x6e, 0xc1, 0x89, 0x64, 0x50,
                                            0x73, 0x34, 0xc7, 0x6e, 0x54, 0xd3, 0xec, 0x0e};
    for (int i = 0; i < 16; i++)
        bytes[i] = first[i];
    bytes[15] = (unsigned char)(bytes[15] + device);
    /* Each process has a separate machine; processes that share one give it a number, 0 for the real one. */
    const char *machine = getenv("FAKE_MACHINE");
    uint32_t number = machine ? (uint32_t)strtoul(machine, NULL, 10) : (uint32_t)getpid();
    for (int i = 0; i < 4 && number; i++)
        bytes[10 + i] = (unsigned char)(number >> 8 * i);
}

#endif
