/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/calls.h"

#include <sys/mman.h>

gpufl_status calls_open(struct calls *calls)
{
    /* mmap: pages are taken only as ids reach them. */
    void *memory =
        mmap(NULL, CALL_SLOTS * sizeof(struct call), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    calls->slots = memory == MAP_FAILED ? NULL : memory;
    return calls->slots ? GPUFL_OK : GPUFL_E_NO_MEMORY;
}

void calls_close(struct calls *calls)
{
    if (calls->slots)
        munmap(calls->slots, CALL_SLOTS * sizeof(struct call));
    calls->slots = NULL;
}
