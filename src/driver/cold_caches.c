/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/cold_caches.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

/* Larger than the first-level caches of instructions (32 to 64 KiB) and data and the branch target buffer; smaller
 * than the second-level cache, which keeps frequently used data. */
enum { code_bytes = 256 << 10, data_bytes = 512 << 10, line_bytes = 64 };

/* A jump per cache line to the next one, then a return. */
static bool code_fill(unsigned char *code)
{
#if defined __x86_64__
    static const unsigned char jump[] = {0xeb, line_bytes - 2}, ret[] = {0xc3};
#elif defined __aarch64__
    static const unsigned char jump[] = {line_bytes / 4, 0, 0, 0x14}, ret[] = {0xc0, 0x03, 0x5f, 0xd6};
#else
    static const unsigned char jump[] = {0}, ret[] = {0};
    return false;
#endif
    for (size_t at = 0; at + line_bytes < code_bytes; at += line_bytes)
        memcpy(code + at, jump, sizeof jump);
    memcpy(code + code_bytes - line_bytes, ret, sizeof ret);
    __builtin___clear_cache((char *)code, (char *)code + code_bytes);
    return true;
}

static unsigned char *map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

bool cold_caches_open(struct cold_caches *caches)
{
    caches->code = map(code_bytes);
    caches->data = map(data_bytes);
    if (caches->code && (!code_fill(caches->code) || mprotect(caches->code, code_bytes, PROT_READ | PROT_EXEC))) {
        munmap(caches->code, code_bytes); /* forbidden by a hardened kernel */
        caches->code = NULL;
    }
    return caches->code || caches->data;
}

void cold_caches_make(struct cold_caches *caches)
{
    if (caches->data)
        for (size_t at = 0; at < data_bytes; at += line_bytes)
            (*(volatile unsigned char *)(caches->data + at))++;
    if (caches->code) {
        void (*run)(void);
        memcpy(&run, &caches->code, sizeof run);
        run();
    }
}

void cold_caches_close(struct cold_caches *caches)
{
    if (caches->code)
        munmap(caches->code, code_bytes);
    if (caches->data)
        munmap(caches->data, data_bytes);
    *caches = (struct cold_caches){NULL, NULL};
}
