/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crc32c.h"

#include <pthread.h>
#include <string.h>

static uint32_t table[8][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int has_hardware;

static void setup(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (0x82f63b78u & (0u - (crc & 1)));
        table[0][i] = crc;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int slice = 1; slice < 8; slice++)
            table[slice][i] = (table[slice - 1][i] >> 8) ^ table[0][table[slice - 1][i] & 255];
#if defined(__x86_64__)
    has_hardware = __builtin_cpu_supports("sse4.2");
#endif
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t hardware(uint32_t crc, const unsigned char *at, size_t size)
{
    uint64_t wide = crc;
    for (; size >= 8; size -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    crc = (uint32_t)wide;
    for (; size; size--)
        crc = __builtin_ia32_crc32qi(crc, *at++);
    return crc;
}
#endif

static uint32_t software(uint32_t crc, const unsigned char *at, size_t size)
{
    for (; size >= 8; size -= 8, at += 8) {
        uint32_t low, high;
        memcpy(&low, at, 4);
        memcpy(&high, at + 4, 4);
        low ^= crc;
        crc = table[7][low & 255] ^ table[6][(low >> 8) & 255] ^ table[5][(low >> 16) & 255] ^ table[4][low >> 24] ^
              table[3][high & 255] ^ table[2][(high >> 8) & 255] ^ table[1][(high >> 16) & 255] ^ table[0][high >> 24];
    }
    for (; size; size--)
        crc = (crc >> 8) ^ table[0][(crc ^ *at++) & 255];
    return crc;
}

uint32_t crc32c(uint32_t crc, const void *data, size_t size)
{
    pthread_once(&once, setup);
    crc = ~crc;
#if defined(__x86_64__)
    if (has_hardware)
        return ~hardware(crc, data, size);
#endif
    return ~software(crc, data, size);
}
