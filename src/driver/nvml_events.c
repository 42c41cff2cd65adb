/* SPDX-License-Identifier: Apache-2.0 */
/* Events reported by the driver: Xid errors, ECC errors, changes of the MIG layout. */
#include "driver/nvml_table.h"

static const struct {
    unsigned long long type;
    enum gpu_event_kind kind;
} kinds[] = {
    {NVML_ABI_EVENT_XID, GPU_EVENT_XID},
    {NVML_ABI_EVENT_ECC_UNCORRECTED, GPU_EVENT_ECC_UNCORRECTED},
    {NVML_ABI_EVENT_ECC_CORRECTED, GPU_EVENT_ECC_CORRECTED},
    {NVML_ABI_EVENT_MIG_CHANGED, GPU_EVENT_MIG_CHANGED},
};
enum { kind_count = sizeof kinds / sizeof kinds[0] };

bool nvml_events_listen(struct nvml *nvml)
{
    const struct nvml_table *call = &nvml->call;
    if (nvml->event_set)
        return true;
    if (!call->event_set_create || !call->event_register || !call->event_wait || !call->event_set_free ||
        call->event_set_create(&nvml->event_set) != NVML_ABI_SUCCESS) {
        nvml->event_set = NULL;
        return false;
    }
    unsigned long long wanted = 0;
    for (int i = 0; i < kind_count; i++)
        wanted |= kinds[i].type;
    bool has_any = false;
    for (uint32_t i = 0; i < nvml->device_count; i++) {
        unsigned long long offered = wanted;
        void *handle = nvml->devices[i].handle;
        if (!handle || (call->event_types && call->event_types(handle, &offered) != NVML_ABI_SUCCESS) ||
            !(offered & wanted))
            continue;
        has_any |= call->event_register(handle, offered & wanted, nvml->event_set) == NVML_ABI_SUCCESS;
    }
    if (!has_any)
        nvml_events_release(nvml);
    return has_any;
}

void nvml_events_release(struct nvml *nvml)
{
    if (nvml->event_set)
        nvml->call.event_set_free(nvml->event_set);
    nvml->event_set = NULL;
}

bool nvml_events_take(struct nvml *nvml, struct gpu_event *event)
{
    struct nvml_abi_event given = {0};
    if (!nvml->event_set || nvml->call.event_wait(nvml->event_set, &given, 0) != NVML_ABI_SUCCESS)
        return false;
    *event = (struct gpu_event){.kind = GPU_EVENT_XID};
    for (int i = kind_count; i-- > 0;)
        if (given.type & kinds[i].type)
            event->kind = kinds[i].kind;
    for (uint32_t i = 0; i < nvml->device_count && !event->has_device; i++) {
        event->has_device = given.device && nvml->devices[i].handle == given.device;
        event->index = event->has_device ? i : 0;
    }
    event->has_instance = given.gpu_instance_id != NVML_ABI_NO_INSTANCE;
    event->gpu_instance_id = event->has_instance ? given.gpu_instance_id : 0;
    event->compute_instance_id = event->has_instance ? given.compute_instance_id : 0;
    event->xid = event->kind == GPU_EVENT_XID ? given.data : 0;
    return true;
}
