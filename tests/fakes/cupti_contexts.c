/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts and modules as CUPTI reports them. FAKE_CUBIN=FILE: that file is the code of every context's only module,
 * reported right after the context itself. */
#include "cupti_callbacks.h"
#include "cupti_fake.h"
#include "gpu_timeline.h"
#include "faults.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

int cuptiGetContextId(void *context, uint32_t *id)
{
    int result = fault_result("cuptiGetContextId");
    if (result == CUPTI_ABI_SUCCESS)
        *id = ((struct fake_context *)context)->id;
    return result;
}

int cuptiGetDeviceId(void *context, uint32_t *device)
{
    int result = fault_result("cuptiGetDeviceId");
    if (result == CUPTI_ABI_SUCCESS)
        *device = (uint32_t)((struct fake_context *)context)->device;
    return result;
}

int cuptiGetStreamIdEx(void *context, void *stream, uint8_t is_per_thread, uint32_t *id)
{
    int result = fault_result("cuptiGetStreamIdEx");
    (void)is_per_thread;
    if (result == CUPTI_ABI_SUCCESS)
        *id = (uintptr_t)stream <= 2 ? ((struct fake_context *)context)->default_stream->id
                                     : ((struct fake_stream *)stream)->id;
    return result;
}

int cuptiGetCubinCrc(struct cupti_abi_cubin_crc_params *params)
{
    int result = fault_result("cuptiGetCubinCrc");
    const unsigned char *bytes = params->cubin;
    uint32_t crc = 2166136261u;
    for (size_t i = 0; i < params->cubin_bytes; i++)
        crc = (crc ^ bytes[i]) * 16777619u;
    params->crc = crc;
    return result;
}

void callbacks_context(uint32_t cbid, void *context, void *stream)
{
    callbacks_resource(cbid, context, stream, NULL);
    const char *path = getenv("FAKE_CUBIN");
    if (cbid != CUPTI_ABI_RESOURCE_CONTEXT_CREATED || !path)
        return;
    static _Atomic uint32_t modules;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;
    char *cubin = size > 0 ? malloc((size_t)size) : NULL;
    if (cubin && pread(fd, cubin, (size_t)size, 0) == size) {
        struct cupti_abi_module_data module = {atomic_fetch_add(&modules, 1) + 1, (size_t)size, cubin};
        callbacks_resource(CUPTI_ABI_RESOURCE_MODULE_LOADED, context, NULL, &module);
    }
    free(cubin);
    if (fd >= 0)
        close(fd);
}
