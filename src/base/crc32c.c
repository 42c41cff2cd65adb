/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crc32c.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

static uint32_t table[8][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint32_t (*implementation)(uint32_t crc, const unsigned char *at, size_t size);

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

#if defined(__x86_64__)
static bool has_hardware(void)
{
    return __builtin_cpu_supports("sse4.2");
}
#define HARDWARE_FUNCTION __attribute__((target("sse4.2")))
#define CRC_OF_8(crc, word) (crc) = (uint32_t)__builtin_ia32_crc32di(crc, word)
#define CRC_OF_1(crc, byte) (crc) = __builtin_ia32_crc32qi(crc, byte)
#elif defined(__aarch64__)
static bool has_hardware(void)
{
    enum { hwcap_crc32 = 1 << 7 }; /* asm/hwcap.h */
    return getauxval(AT_HWCAP) & hwcap_crc32;
}
/* gcc and clang have other names for the builtins, and for the target that allows them. */
#define HARDWARE_FUNCTION
#define CRC_OF_8(crc, word) __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"((uint64_t)(word)))
#define CRC_OF_1(crc, byte) __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(crc) : "r"((uint32_t)(byte)))
#endif

#ifdef HARDWARE_FUNCTION
HARDWARE_FUNCTION static uint32_t hardware(uint32_t crc, const unsigned char *at, size_t size)
{
    for (; size >= 8; size -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        CRC_OF_8(crc, word);
    }
    for (; size; size--, at++)
        CRC_OF_1(crc, *at);
    return crc;
}
#endif

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
    implementation = software;
#ifdef HARDWARE_FUNCTION
    if (has_hardware())
        implementation = hardware;
#endif
}

uint32_t crc32c(uint32_t crc, const void *data, size_t size)
{
    pthread_once(&once, setup);
    return ~implementation(~crc, data, size);
}
