/* SPDX-License-Identifier: Apache-2.0 */
/* Look-alike libcheckpoint: saves and restores one piece of memory that the test
 * calls the device's. */
#include "driver/checkpoint_abi.h"
#include "fake_gpu.h"
#include "faults.h"

#include <stdlib.h>
#include <string.h>

#define CHECKPOINT_PROTOTYPE(member, symbol, parameters) FAKE_API int symbol parameters;
CHECKPOINT_ABI_FUNCTIONS(CHECKPOINT_PROTOTYPE)
#undef CHECKPOINT_PROTOTYPE
FAKE_API void fake_checkpoint_memory(void *memory, size_t bytes);

enum { SUCCESS = 0, INVALID_PARAMETER = 1, OUT_OF_MEMORY = 8, NOT_INITIALIZED = 15, UNKNOWN = 999 };

static void *device_memory;
static size_t device_bytes;

void fake_checkpoint_memory(void *memory, size_t bytes)
{
    device_memory = memory;
    device_bytes = bytes;
}

int cuptiCheckpointSave(struct checkpoint_abi *handle)
{
    int result = fault_result_sized("cuptiCheckpointSave", handle->struct_bytes, sizeof *handle);
    if (result != SUCCESS)
        return result;
    if (handle->priv && !handle->allow_overwrite)
        return UNKNOWN;
    if (!handle->priv)
        handle->priv = malloc(device_bytes);
    if (!handle->priv)
        return OUT_OF_MEMORY;
    memcpy(handle->priv, device_memory, device_bytes);
    return SUCCESS;
}

int cuptiCheckpointRestore(struct checkpoint_abi *handle)
{
    int result = fault_result_sized("cuptiCheckpointRestore", handle->struct_bytes, sizeof *handle);
    if (result != SUCCESS)
        return result;
    if (!handle->priv)
        return NOT_INITIALIZED;
    memcpy(device_memory, handle->priv, device_bytes);
    return SUCCESS;
}

int cuptiCheckpointFree(struct checkpoint_abi *handle)
{
    int result = fault_result_sized("cuptiCheckpointFree", handle->struct_bytes, sizeof *handle);
    if (result != SUCCESS)
        return result;
    if (!handle->priv)
        return INVALID_PARAMETER;
    free(handle->priv);
    handle->priv = NULL;
    return SUCCESS;
}
