/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"

#include <string.h>

static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t value, unsigned bits)
{
    return value >> bits | value << (32 - bits);
}

static void add_block(uint32_t state[8], const uint8_t *block)
{
    uint32_t words[64];
    for (unsigned i = 0; i < 16; i++)
        words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 |
                   block[4 * i + 3];
    for (unsigned i = 16; i < 64; i++) {
        uint32_t a = words[i - 15], b = words[i - 2];
        words[i] = words[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + words[i - 7] +
                   (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
    uint32_t s[8];
    memcpy(s, state, sizeof s);
    for (unsigned i = 0; i < 64; i++) {
        uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]), majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
        uint32_t first =
            s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) + choice + round_constants[i] + words[i];
        uint32_t second = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) + majority;
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += first;
        s[0] = first + second;
    }
    for (unsigned i = 0; i < 8; i++)
        state[i] += s[i];
}

void sha256_begin(struct sha256 *hash)
{
    *hash = (struct sha256){
        .state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void sha256_add(struct sha256 *hash, const void *data, size_t size)
{
    const uint8_t *from = data;
    size_t used = hash->size % sizeof hash->block;
    hash->size += size;
    if (used) {
        size_t part = sizeof hash->block - used < size ? sizeof hash->block - used : size;
        memcpy(hash->block + used, from, part);
        from += part;
        size -= part;
        if (used + part < sizeof hash->block)
            return;
        add_block(hash->state, hash->block);
    }
    for (; size >= sizeof hash->block; from += sizeof hash->block, size -= sizeof hash->block)
        add_block(hash->state, from);
    if (size)
        memcpy(hash->block, from, size);
}

void sha256_end(struct sha256 *hash, uint8_t out[SHA256_SIZE])
{
    static const uint8_t padding[64] = {0x80};
    uint8_t length[8];
    for (unsigned i = 0; i < 8; i++)
        length[i] = (uint8_t)(hash->size * 8 >> (56 - 8 * i));
    size_t used = hash->size % 64;
    sha256_add(hash, padding, used < 56 ? 56 - used : 120 - used);
    sha256_add(hash, length, sizeof length);
    for (unsigned i = 0; i < SHA256_SIZE; i++)
        out[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256_end_hex(struct sha256 *hash, char out[SHA256_HEX_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t bytes[SHA256_SIZE];
    sha256_end(hash, bytes);
    for (unsigned i = 0; i < SHA256_SIZE; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[SHA256_HEX_SIZE - 1] = '\0';
}

void sha256_hex_of(const void *data, size_t size, char out[SHA256_HEX_SIZE])
{
    struct sha256 hash;
    sha256_begin(&hash);
    sha256_add(&hash, data, size);
    sha256_end_hex(&hash, out);
}

bool bytes_are_equal_secretly(const void *a, const void *b, size_t size)
{
    const volatile uint8_t *left = a, *right = b;
    uint8_t difference = 0;
    for (size_t i = 0; i < size; i++)
        difference |= left[i] ^ right[i];
    return difference == 0;
}
