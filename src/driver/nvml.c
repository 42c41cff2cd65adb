/* SPDX-License-Identifier: Apache-2.0 */
/* Opens NVML and reads what does not change: the list of devices. */
#include "base/watch.h"
#include "driver/nvml_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { device_max = 1024, process_max = 65536 };

static gpufl_status bind_functions(struct nvml *nvml, struct problem *problem)
{
    static const char *const names[] = {"libnvidia-ml.so.1", NULL};
    const struct library_search search = {"libnvidia-ml.so", "GPUFL_NVML_PATH", NULL, names};
    struct problem cause = {""};
    if (library_open(&nvml->library, &search, &cause) != GPUFL_OK)
        return problem_set(problem, GPUFL_E_NO_DRIVER, "no NVIDIA driver: %s", cause.text);
#define NVML_BIND(member, symbol, parameters) \
    nvml->call.member = __extension__(int(*) parameters) library_symbol(&nvml->library, #symbol);
    NVML_ABI_FUNCTIONS(NVML_BIND)
#undef NVML_BIND
    nvml->call.error_string =
        __extension__(nvml_abi_error_string_fn *) library_symbol(&nvml->library, "nvmlErrorString");
    if (!nvml->call.throttle) /* older drivers lack the newer name */
        nvml->call.throttle = nvml->call.clock_events;
    if (!nvml->call.init || !nvml->call.shutdown || !nvml->call.device_count || !nvml->call.device_handle)
        return problem_set(problem, GPUFL_E_UNSUPPORTED, "%s lacks functions that every NVML has", nvml->library.path);
    return GPUFL_OK;
}

static gpufl_status failure(const struct nvml *nvml, const char *function, int result, struct problem *problem)
{
    const char *text = nvml->call.error_string ? nvml->call.error_string(result) : NULL;
    gpufl_status status = result == NVML_ABI_NO_PERMISSION      ? GPUFL_E_PERMISSION
                          : result == NVML_ABI_VERSION_MISMATCH ? GPUFL_E_UNSUPPORTED
                                                                : GPUFL_E_NO_DRIVER;
    return problem_set(problem, status, "%s failed: %s (%d); check the driver with nvidia-smi", function,
                       text ? text : "unknown error", result);
}

static gpufl_status open_devices(struct nvml *nvml, struct problem *problem)
{
    unsigned count = 0;
    int result = nvml->call.device_count(&count);
    if (result != NVML_ABI_SUCCESS)
        return failure(nvml, "nvmlDeviceGetCount_v2", result, problem);
    if (count > device_max)
        count = device_max;
    nvml->devices = calloc(count ? count : 1, sizeof *nvml->devices);
    if (!nvml->devices)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory");
    nvml->device_count = count;
    for (unsigned i = 0; i < count; i++) {
        /* A device that cannot be opened (no permission, lost) stays unknown; the others work. */
        if (nvml->call.device_handle(i, &nvml->devices[i].handle) != NVML_ABI_SUCCESS)
            nvml->devices[i].handle = NULL;
    }
    return GPUFL_OK;
}

gpufl_status nvml_open(struct nvml **out, struct problem *problem)
{
    const char *hung = watch_hung("nvml");
    if (hung)
        return problem_set(problem, GPUFL_E_UNSUPPORTED, "%s did not return; NVML is not used again in this process",
                           hung);
    struct nvml *nvml = calloc(1, sizeof *nvml);
    if (!nvml)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory");
    gpufl_status status = bind_functions(nvml, problem);
    if (status != GPUFL_OK)
        goto fail;
    int result = nvml->call.init();
    if (result != NVML_ABI_SUCCESS) {
        status = failure(nvml, "nvmlInit_v2", result, problem);
        goto fail;
    }
    status = open_devices(nvml, problem);
    if (status != GPUFL_OK)
        goto fail_shutdown;
    if (!nvml->call.driver_version ||
        nvml->call.driver_version(nvml->driver_version, sizeof nvml->driver_version) != NVML_ABI_SUCCESS)
        nvml->driver_version[0] = '\0';
    nvml->driver_version[sizeof nvml->driver_version - 1] = '\0';
    if (!nvml->call.cuda_version || nvml->call.cuda_version(&nvml->cuda_version) != NVML_ABI_SUCCESS)
        nvml->cuda_version = 0;
    *out = nvml;
    return GPUFL_OK;

fail_shutdown:
    nvml->call.shutdown();
fail:
    free(nvml);
    return status;
}

void nvml_close(struct nvml *nvml)
{
    if (!nvml)
        return;
    nvml_events_release(nvml);
    for (uint32_t i = 0; i < nvml->device_count; i++) {
        nvml_gpm_release(nvml, &nvml->devices[i].gpm);
        nvml_mig_release(nvml, &nvml->devices[i]);
    }
    nvml->call.shutdown();
    free(nvml->processes);
    free(nvml->devices);
    free(nvml);
}

void nvml_trim(const struct nvml *nvml)
{
    (void)library_trim(&nvml->library);
}

const char *nvml_driver_version(const struct nvml *nvml)
{
    return nvml->driver_version;
}

int nvml_cuda_driver_version(const struct nvml *nvml)
{
    return nvml->cuda_version;
}

uint32_t nvml_device_count(const struct nvml *nvml)
{
    return nvml->device_count;
}

static const char *architecture_name(unsigned architecture)
{
    static const char *const names[] = {"",       "",       "Kepler", "Maxwell", "Pascal",   "Volta",
                                        "Turing", "Ampere", "Ada",    "Hopper",  "Blackwell"};
    return architecture < sizeof names / sizeof names[0] ? names[architecture] : "";
}

void nvml_text_read(int (*read)(void *, char *, unsigned), void *handle, char *text, size_t size)
{
    if (!read || read(handle, text, (unsigned)size) != NVML_ABI_SUCCESS)
        text[0] = '\0';
    text[size - 1] = '\0';
}

bool nvml_device_describe(struct nvml *nvml, uint32_t index, struct gpu_device_info *info)
{
    if (index >= nvml->device_count || !nvml->devices[index].handle)
        return false;
    const struct nvml_table *call = &nvml->call;
    void *device = nvml->devices[index].handle;
    memset(info, 0, sizeof *info);
    info->index = index;
    nvml_text_read(call->name, device, info->name, sizeof info->name);
    nvml_text_read(call->uuid, device, info->uuid, sizeof info->uuid);
    struct nvml_abi_pci pci = {0};
    if (call->pci && call->pci(device, &pci) == NVML_ABI_SUCCESS)
        snprintf(info->pci_bus_id, sizeof info->pci_bus_id, "%.*s", (int)sizeof pci.bus_id - 1, pci.bus_id);
    unsigned architecture = 0;
    if (call->architecture && call->architecture(device, &architecture) == NVML_ABI_SUCCESS)
        snprintf(info->architecture, sizeof info->architecture, "%s", architecture_name(architecture));
    int major = 0, minor = 0;
    if (call->compute_capability && call->compute_capability(device, &major, &minor) == NVML_ABI_SUCCESS &&
        major >= 0 && minor >= 0) {
        info->compute_major = (uint32_t)major;
        info->compute_minor = (uint32_t)minor;
    }
    struct nvml_abi_memory memory = {0};
    if (call->memory && call->memory(device, &memory) == NVML_ABI_SUCCESS)
        info->memory_total_bytes = memory.total;
    unsigned current = 0, pending = 0;
    info->is_mig = call->mig_mode && call->mig_mode(device, &current, &pending) == NVML_ABI_SUCCESS && current == 1;
    return true;
}

int nvml_device_processes(struct nvml *nvml, uint32_t index, struct gpu_process *processes, int capacity)
{
    if (index >= nvml->device_count || !nvml->devices[index].handle || !nvml->call.processes)
        return -1;
    unsigned count;
    int result;
    /* The list may grow between querying its size and reading it, so this is retried a few times. */
    for (int attempt = 0;; attempt++) {
        count = nvml->process_capacity;
        result = nvml->call.processes(nvml->devices[index].handle, &count, nvml->processes);
        if (result != NVML_ABI_INSUFFICIENT_SIZE || attempt == 3 || count > process_max)
            break;
        unsigned wanted = (count > nvml->process_capacity ? count : nvml->process_capacity) + 16;
        struct nvml_abi_process *grown = realloc(nvml->processes, wanted * sizeof *grown);
        if (!grown)
            return -1;
        nvml->processes = grown;
        nvml->process_capacity = wanted;
    }
    if (result != NVML_ABI_SUCCESS || count > nvml->process_capacity)
        return -1;
    for (unsigned i = 0; i < count && (int)i < capacity; i++) {
        const struct nvml_abi_process *process = &nvml->processes[i];
        bool has_used_bytes = process->used_bytes != ~0ull;
        bool has_gpu_instance = process->gpu_instance_id != NVML_ABI_NO_INSTANCE;
        processes[i] = (struct gpu_process){process->pid, has_used_bytes ? process->used_bytes : 0, has_used_bytes,
                                            has_gpu_instance, has_gpu_instance ? process->gpu_instance_id : 0};
    }
    return (int)count;
}
