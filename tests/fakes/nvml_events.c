/* SPDX-License-Identifier: Apache-2.0 */
/* Events of the look-alike NVML: one Xid, when its time has come. */
#include "faults.h"
#include "nvml_fake.h"

#include <stdatomic.h>

int nvmlDeviceGetSupportedEventTypes(void *device, unsigned long long *types)
{
    int result = nvml_check("nvmlDeviceGetSupportedEventTypes", device);
    if (result == NVML_ABI_SUCCESS)
        *types = 0x11full;
    return result;
}

/* One set for all: the fake has one event, delivered once to the first waiter after its time. */
static int event_set;
static atomic_bool is_event_delivered;

int nvmlEventSetCreate(void **set)
{
    int result = nvml_check("nvmlEventSetCreate", NULL);
    if (result == NVML_ABI_SUCCESS)
        *set = &event_set;
    return result;
}

int nvmlEventSetFree(void *set)
{
    return set == &event_set ? nvml_check("nvmlEventSetFree", NULL) : NVML_ABI_INVALID_ARGUMENT;
}

int nvmlDeviceRegisterEvents(void *device, unsigned long long types, void *set)
{
    int result = nvml_check("nvmlDeviceRegisterEvents", device);
    return result != NVML_ABI_SUCCESS               ? result
           : set != &event_set || types & ~0x11full ? NVML_ABI_INVALID_ARGUMENT
                                                    : NVML_ABI_SUCCESS;
}

int nvmlEventSetWait_v2(void *set, struct nvml_abi_event *event, unsigned timeout_ms)
{
    int result = nvml_check("nvmlEventSetWait_v2", NULL);
    if (result != NVML_ABI_SUCCESS || set != &event_set || timeout_ms != 0)
        return result != NVML_ABI_SUCCESS ? result : NVML_ABI_INVALID_ARGUMENT;
    if (!fault_has_begun("xid_after_ms") || atomic_exchange(&is_event_delivered, true))
        return NVML_ABI_TIMEOUT;
    *event = (struct nvml_abi_event){.device = nvml_first_device(),
                                     .type = NVML_ABI_EVENT_XID,
                                     .data = (unsigned long long)fault_number("xid", 79),
                                     .gpu_instance_id = NVML_ABI_NO_INSTANCE,
                                     .compute_instance_id = NVML_ABI_NO_INSTANCE};
    return NVML_ABI_SUCCESS;
}
