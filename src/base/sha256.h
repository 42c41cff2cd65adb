/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4), for values that must not be reversible: the fingerprints of keys, the names of bodies. Pure
 * functions on the caller's memory: any thread. */
#ifndef GPUFL_BASE_SHA256_H
#define GPUFL_BASE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHA256_SIZE = 32, SHA256_HEX_SIZE = 65 };

struct sha256 {
    uint32_t state[8];
    uint64_t size; /* bytes so far */
    uint8_t block[64];
};

void sha256_begin(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const void *data, size_t size);
void sha256_end(struct sha256 *hash, uint8_t out[SHA256_SIZE]);
/* The same in lower-case hexadecimal digits, NUL-terminated. */
void sha256_end_hex(struct sha256 *hash, char out[SHA256_HEX_SIZE]);
void sha256_hex_of(const void *data, size_t size, char out[SHA256_HEX_SIZE]);

/* Takes constant time, so that timing does not reveal where the bytes differ. */
bool bytes_are_equal_secretly(const void *a, const void *b, size_t size);

#endif
