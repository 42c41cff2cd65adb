/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct machine_gpu *gpu_add(struct machine *machine)
{
    return machine->gpu_count < MACHINE_GPU_MAX ? &machine->gpus[machine->gpu_count++] : NULL;
}

static void gpu_take(struct machine *machine, const struct gpu_device_info *info)
{
    struct machine_gpu *gpu = gpu_add(machine);
    if (!gpu)
        return;
    gpu->vendor = info->vendor;
    snprintf(gpu->name, sizeof gpu->name, "%s", info->name);
    snprintf(gpu->uuid, sizeof gpu->uuid, "%s", info->uuid);
    snprintf(gpu->pci_bus_id, sizeof gpu->pci_bus_id, "%s", info->pci_bus_id);
    snprintf(gpu->architecture, sizeof gpu->architecture, "%s", info->architecture);
    gpu->compute_major = info->compute_major;
    gpu->compute_minor = info->compute_minor;
    gpu->memory_bytes = info->memory_total_bytes;
    gpu->multiprocessors = info->multiprocessors;
    gpu->is_mig = info->is_mig;
}

static void nvml_gpus_add(struct machine *machine)
{
    struct gpu_device_info info;
    uint32_t count = nvml_device_count(machine->nvml);
    for (uint32_t i = 0; i < count; i++)
        if (nvml_device_describe(machine->nvml, i, &info))
            gpu_take(machine, &info);
}

static void amd_gpus_add(struct machine *machine)
{
    struct gpu_device_info info;
    uint32_t count = amdgpu_device_count(machine->amd);
    for (uint32_t i = 0; i < count; i++)
        if (amdgpu_device_describe(machine->amd, i, &info))
            gpu_take(machine, &info);
}

/* CUDA numbers the GPUs in its own order, so they meet by UUID. */
static struct machine_gpu *gpu_of(struct machine *machine, const char *uuid)
{
    for (uint32_t i = 0; i < machine->gpu_count; i++)
        if (uuid[0] && !strcmp(machine->gpus[i].uuid, uuid))
            return &machine->gpus[i];
    return gpu_add(machine);
}

static void cuda_gpus_add(struct machine *machine)
{
    int count = cuda_device_count(machine->cuda);
    for (int i = 0; i < count; i++) {
        struct device_limits limits = {0};
        struct machine_gpu *gpu;
        if (cuda_device_limits(machine->cuda, (uint32_t)i, &limits) != GPUFL_OK ||
            !(gpu = gpu_of(machine, limits.uuid)))
            continue;
        gpu->has_cuda = true;
        gpu->multiprocessors = limits.multiprocessors;
        if (!gpu->name[0])
            snprintf(gpu->name, sizeof gpu->name, "%s", limits.name);
        if (!gpu->uuid[0])
            snprintf(gpu->uuid, sizeof gpu->uuid, "%s", limits.uuid);
        if (!gpu->compute_major) {
            gpu->compute_major = limits.compute_major;
            gpu->compute_minor = limits.compute_minor;
        }
        if (!gpu->memory_bytes)
            gpu->memory_bytes = limits.memory_bytes;
    }
}

/* Hides CUDA_INJECTION64_PATH: cuInit would load that library into this process, which must not be recorded. */
static gpufl_status cuda_initialize_alone(struct machine *machine)
{
    const char *injection = getenv("CUDA_INJECTION64_PATH");
    char *saved = injection ? strdup(injection) : NULL;
    unsetenv("CUDA_INJECTION64_PATH");
    gpufl_status status = cuda_initialize(machine->cuda, &machine->cuda_problem);
    if (saved)
        setenv("CUDA_INJECTION64_PATH", saved, 1);
    free(saved);
    return status;
}

void machine_open(struct machine *machine)
{
    memset(machine, 0, sizeof *machine);
    if (nvml_open(&machine->nvml, &machine->nvml_problem) != GPUFL_OK)
        machine->nvml = NULL;
    else
        nvml_gpus_add(machine);
    if (cuda_load(&machine->cuda, true, &machine->cuda_problem) != GPUFL_OK)
        machine->cuda = NULL;
    else
        machine->has_cuda = cuda_initialize_alone(machine) == GPUFL_OK;
    if (machine->has_cuda)
        cuda_gpus_add(machine);
    if (amdgpu_open(&machine->amd, false, &machine->amd_problem) != GPUFL_OK)
        machine->amd = NULL;
    else
        amd_gpus_add(machine);
    if (machine->amd && rocprofiler_load(&machine->rocprofiler, &machine->rocprofiler_problem) != GPUFL_OK)
        machine->rocprofiler = NULL;
    if (cupti_load(&machine->cupti, &machine->cupti_problem) != GPUFL_OK)
        machine->cupti = NULL;
}

void machine_close(struct machine *machine)
{
    nvml_close(machine->nvml);
    amdgpu_close(machine->amd);
    machine->nvml = NULL;
    machine->amd = NULL;
}

bool machine_is_amd_only(const struct machine *machine)
{
    return machine->amd && !machine->nvml && !machine->cuda;
}

bool machine_can_monitor(const struct machine *machine, const char **reason)
{
    const char *why = machine->amd                            ? NULL
                      : !machine->nvml                        ? "no GPU driver; host metrics only"
                      : nvml_device_count(machine->nvml) == 0 ? "NVML shows no GPU; host metrics only"
                                                              : NULL;
    if (reason)
        *reason = why;
    return !why;
}

bool machine_can_trace(const struct machine *machine, const char **reason)
{
    const char *why = machine->rocprofiler                    ? NULL
                      : machine_is_amd_only(machine)          ? "no usable rocprofiler-sdk"
                      : !machine->has_cuda                    ? "no usable CUDA driver"
                      : cuda_device_count(machine->cuda) <= 0 ? "CUDA sees no GPU"
                      : !machine->cupti                       ? "no usable CUPTI"
                                                              : NULL;
    if (reason)
        *reason = why;
    return !why;
}

int machine_cuda_version(const struct machine *machine)
{
    int version = machine->cuda ? cuda_driver_version(machine->cuda) : 0;
    return version || !machine->nvml ? version : nvml_cuda_driver_version(machine->nvml);
}

const char *machine_driver_version(const struct machine *machine)
{
    return machine->nvml ? nvml_driver_version(machine->nvml) : "";
}

int cuda_release_of_cupti(uint32_t api_version)
{
    /* Until 12.9 CUPTI counted its releases; since 13.0 it is major, minor, patch with two digits each. */
    static const struct {
        uint32_t api_version;
        int release;
    } releases[] = {{19, 12000}, {20, 12020}, {21, 12030}, {22, 12040}, {23, 12050},
                    {24, 12060}, {26, 12080}, {27, 12090}, {28, 12090}};
    if (api_version >= 130000)
        return (int)(api_version / 10000 * 1000 + api_version / 100 % 100 * 10);
    for (size_t i = 0; i < sizeof releases / sizeof *releases; i++)
        if (releases[i].api_version == api_version)
            return releases[i].release;
    return 0;
}
