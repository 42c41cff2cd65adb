/* SPDX-License-Identifier: Apache-2.0 */
/* The domains and strings that a program registers with NVTX. Their handles are numbers in the shape of pointers, so
 * an invalid handle is recognized and never dereferenced. They are kept for the life of the process, because NVTX
 * never announces that they are no longer used. Registering takes a lock; lookups do not. Any thread. */
#ifndef GPUFL_CAPTURE_NVTX_HANDLES_H
#define GPUFL_CAPTURE_NVTX_HANDLES_H

#include "base/status.h"

#include <stddef.h>

enum { NVTX_STRINGS_MAX = 65536, NVTX_STRING_BYTES_MAX = 16 << 20, NVTX_TEXT_BYTES_MAX = 4096 };

struct nvtx_name {
    uint32_t size, next; /* next: number of the next entry with this hash, from 1 */
    char text[];
};

/* Schema enum payload_type, of which these are not integers. */
enum { NVTX_PAYLOAD_DOUBLE = 3, NVTX_PAYLOAD_FLOAT = 6 };

enum nvtx_found { NVTX_FOUND, NVTX_FULL /* registered after the table was full */, NVTX_UNKNOWN };

/* The same text always has the same handle; never NULL. */
void *nvtx_domain_handle(const char *name, size_t size);
void *nvtx_string_handle(const char *text, size_t size);
/* *domain and *string are set only when found. number: of the domain, from 0. */
enum nvtx_found nvtx_domain_find(const void *handle, const struct nvtx_name **domain, uint32_t *number);
enum nvtx_found nvtx_string_find(const void *handle, const struct nvtx_name **string);

/* Ranges and marks that are incomplete because a table was full. */
enum nvtx_loss { NVTX_LOSS_STRING, NVTX_LOSS_DOMAIN, NVTX_LOSS_COUNT };
void nvtx_lose(enum nvtx_loss loss);
uint64_t nvtx_lost(enum nvtx_loss loss);
void nvtx_handles_abandon(void); /* in a forked child: another thread of the parent may have held the lock */
size_t nvtx_handles_bytes(void);

#endif
