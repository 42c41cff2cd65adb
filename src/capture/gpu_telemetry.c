/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/gpu_telemetry.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

bool gpu_telemetry_has(const struct gpu_telemetry *telemetry, enum gpu_vendor vendor)
{
    return vendor == GPU_VENDOR_AMD ? telemetry->amd != NULL : telemetry->nvml != NULL;
}

const char *gpu_telemetry_driver_version(const struct gpu_telemetry *telemetry, enum gpu_vendor vendor)
{
    if (!gpu_telemetry_has(telemetry, vendor))
        return "";
    return vendor == GPU_VENDOR_AMD ? amdgpu_driver_version(telemetry->amd) : nvml_driver_version(telemetry->nvml);
}

static gpufl_status nvidia_open(struct nvml **out, struct problem *problem)
{
    gpufl_status status = nvml_open(out, problem);
    if (status == GPUFL_OK && !nvml_device_count(*out)) {
        nvml_close(*out);
        status = problem_set(problem, GPUFL_E_NO_DRIVER, "NVML works but shows no GPU; check `nvidia-smi -L`");
    }
    if (status != GPUFL_OK)
        *out = NULL;
    return status;
}

static gpufl_status driver_open(struct gpu_telemetry *telemetry, enum gpu_vendor vendor, struct problem *problem)
{
    if (vendor == GPU_VENDOR_NVIDIA)
        return nvidia_open(&telemetry->nvml, problem);
    gpufl_status status = amdgpu_open(&telemetry->amd, telemetry->choice.with_rocm_smi, problem);
    if (status != GPUFL_OK)
        telemetry->amd = NULL;
    return status;
}

static void driver_close(struct gpu_telemetry *telemetry, enum gpu_vendor vendor)
{
    if (vendor == GPU_VENDOR_NVIDIA) {
        nvml_close(telemetry->nvml);
        telemetry->nvml = NULL;
    } else {
        amdgpu_close(telemetry->amd);
        telemetry->amd = NULL;
    }
}

static uint32_t driver_count(const struct gpu_telemetry *telemetry, enum gpu_vendor vendor)
{
    return vendor == GPU_VENDOR_AMD ? amdgpu_device_count(telemetry->amd) : nvml_device_count(telemetry->nvml);
}

static void device_describe(struct gpu_telemetry *telemetry, enum gpu_vendor vendor, uint32_t driver_index,
                            struct gpu_device *device)
{
    struct gpu_device_info *info = &device->info;
    memset(device, 0, sizeof *device);
    bool is_known = vendor == GPU_VENDOR_AMD ? amdgpu_device_describe(telemetry->amd, driver_index, info)
                                             : nvml_device_describe(telemetry->nvml, driver_index, info);
    if (!is_known)
        memset(info, 0, sizeof *info);
    info->vendor = vendor;
    info->driver_index = driver_index;
    device->process_count = -1;
}

/* Whether all GPUs that AMD's driver lists were known before. A vanished one then keeps its number and is marked
 * lost: NVML still lists a lost GPU, the kernel does not. */
static bool is_part_of_list(const struct gpu_telemetry *telemetry, const struct gpu_device *found, uint32_t count)
{
    uint32_t matches = 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < telemetry->device_count; j++)
            matches += gpu_device_is_same(&telemetry->devices[j].info, &found[i].info);
    return count && matches == count;
}

/* Appends the vendor's GPUs as its driver lists them now; returns how many. */
static uint32_t devices_describe(struct gpu_telemetry *telemetry, enum gpu_vendor vendor, struct gpu_device *devices,
                                 uint32_t capacity)
{
    uint32_t count = driver_count(telemetry, vendor);
    count = count < capacity ? count : capacity;
    for (uint32_t i = 0; i < count; i++)
        device_describe(telemetry, vendor, i, &devices[i]);
    if (vendor != GPU_VENDOR_AMD || !is_part_of_list(telemetry, devices, count))
        return count;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < telemetry->device_count; i++) {
        struct gpu_device *device = &telemetry->devices[i];
        for (uint32_t j = 0; j < count; j++)
            if (gpu_device_is_same(&device->info, &devices[j].info))
                *device = devices[j];
    }
    for (uint32_t i = 0; i < telemetry->device_count && kept < capacity; i++)
        if (telemetry->devices[i].info.vendor == vendor)
            devices[kept++] = telemetry->devices[i];
    return kept;
}

/* The devices in their new order: those of `renewed` from its driver, the others unchanged. */
static gpufl_status list_make(struct gpu_telemetry *telemetry, unsigned renewed, struct problem *problem)
{
    struct gpu_device *devices = calloc(GPU_DEVICES_MAX, sizeof *devices);
    uint32_t count = 0;
    if (!devices)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory while listing GPUs");
    for (unsigned vendor = 0; vendor < GPU_VENDOR_COUNT; vendor++) {
        if (renewed >> vendor & 1) {
            count += devices_describe(telemetry, vendor, devices + count, GPU_DEVICES_MAX - count);
            continue;
        }
        for (uint32_t i = 0; i < telemetry->device_count && count < GPU_DEVICES_MAX; i++)
            if (telemetry->devices[i].info.vendor == vendor)
                devices[count++] = telemetry->devices[i];
    }
    for (uint32_t i = 0; i < count; i++)
        devices[i].info.index = i;
    free(telemetry->devices);
    telemetry->devices = devices;
    telemetry->device_count = count;
    return GPUFL_OK;
}

gpufl_status gpu_telemetry_open(struct gpu_telemetry *telemetry, struct gpu_choice choice, struct problem *problem)
{
    struct problem causes[GPU_VENDOR_COUNT] = {{""}};
    gpufl_status status = GPUFL_E_NO_DRIVER;
    unsigned opened = 0;
    memset(telemetry, 0, sizeof *telemetry);
    telemetry->choice = choice;
    for (unsigned vendor = 0; vendor < GPU_VENDOR_COUNT; vendor++) {
        if (!(choice.vendors >> vendor & 1))
            continue;
        gpufl_status opening = driver_open(telemetry, vendor, &causes[vendor]);
        if (opening == GPUFL_OK)
            opened |= 1u << vendor;
        else if (vendor == GPU_VENDOR_NVIDIA || status == GPUFL_E_NO_DRIVER)
            status = opening; /* the error of an installed driver is more useful than that of a missing one */
    }
    if (opened)
        status = list_make(telemetry, opened, problem);
    else
        status = problem_set(problem, status, "%.250s%s%.250s", causes[GPU_VENDOR_NVIDIA].text,
                             causes[GPU_VENDOR_NVIDIA].text[0] && causes[GPU_VENDOR_AMD].text[0] ? "; " : "",
                             causes[GPU_VENDOR_AMD].text);
    if (status != GPUFL_OK)
        gpu_telemetry_close(telemetry);
    return status;
}

void gpu_telemetry_close(struct gpu_telemetry *telemetry)
{
    for (unsigned vendor = 0; vendor < GPU_VENDOR_COUNT; vendor++)
        if (gpu_telemetry_has(telemetry, vendor))
            driver_close(telemetry, vendor);
    gpu_telemetry_abandon(telemetry);
}

void gpu_telemetry_abandon(struct gpu_telemetry *telemetry)
{
    struct gpu_choice choice = telemetry->choice;
    if (telemetry->amd)
        amdgpu_abandon(telemetry->amd);
    free(telemetry->devices);
    memset(telemetry, 0, sizeof *telemetry);
    telemetry->choice = choice;
}

void gpu_telemetry_drop(struct gpu_telemetry *telemetry, enum gpu_vendor vendor)
{
    if (gpu_telemetry_has(telemetry, vendor))
        driver_close(telemetry, vendor);
    for (uint32_t i = 0; i < telemetry->device_count; i++) {
        struct gpu_device *device = &telemetry->devices[i];
        if (device->info.vendor != vendor)
            continue;
        /* The loss of the driver is reported once, not for each of its GPUs. */
        device->is_lost = device->is_loss_reported = true;
        device->sample.known = 0;
        device->process_count = -1;
        device->mig_count = 0;
    }
}

gpufl_status gpu_telemetry_reopen(struct gpu_telemetry *telemetry, enum gpu_vendor vendor, struct problem *problem)
{
    gpu_telemetry_drop(telemetry, vendor);
    gpufl_status status = driver_open(telemetry, vendor, problem);
    if (status != GPUFL_OK)
        return status;
    status = list_make(telemetry, 1u << vendor, problem);
    if (status != GPUFL_OK)
        driver_close(telemetry, vendor);
    return status;
}

static void migs_list(struct gpu_telemetry *telemetry, struct gpu_device *device)
{
    struct gpu_mig_info infos[GPU_MIG_MAX];
    uint32_t count = nvml_device_mig_list(telemetry->nvml, device->info.driver_index, infos);
    bool is_same = count == device->mig_count;
    for (uint32_t i = 0; i < count && is_same; i++)
        is_same = !memcmp(&infos[i], &device->migs[i].info, sizeof infos[i]);
    if (is_same)
        return;
    device->has_new_migs = true;
    device->mig_count = count;
    device->info.is_mig = count > 0;
    for (uint32_t i = 0; i < count; i++)
        device->migs[i].info = infos[i];
}

static void nvidia_sample(struct gpu_telemetry *telemetry, struct gpu_device *device, bool with_slow)
{
    uint32_t index = device->info.driver_index;
    nvml_device_sample(telemetry->nvml, index, with_slow, &device->sample);
    if (device->sample.is_lost)
        return;
    if (with_slow) {
        migs_list(telemetry, device);
        device->process_count = nvml_device_processes(telemetry->nvml, index, device->processes, GPU_PROCESSES_MAX);
    }
    for (uint32_t i = 0; i < device->mig_count; i++)
        nvml_device_mig_sample(telemetry->nvml, index, i, &device->migs[i].sample);
}

static void amd_sample(struct gpu_telemetry *telemetry, struct gpu_device *device, bool with_slow)
{
    uint32_t index = device->info.driver_index;
    amdgpu_device_sample(telemetry->amd, index, with_slow, &device->sample);
    if (with_slow && !device->sample.is_lost)
        device->process_count = amdgpu_device_processes(telemetry->amd, index, device->processes, GPU_PROCESSES_MAX);
}

bool gpu_telemetry_sample(struct gpu_telemetry *telemetry, uint32_t index, bool with_slow)
{
    struct gpu_device *device = &telemetry->devices[index];
    if (device->is_lost)
        return false;
    memset(&device->sample, 0, sizeof device->sample);
    device->sampled_wall_ns = clock_log_ns();
    if (device->info.vendor == GPU_VENDOR_AMD)
        amd_sample(telemetry, device, with_slow);
    else
        nvidia_sample(telemetry, device, with_slow);
    device->is_lost = device->sample.is_lost;
    if (device->is_lost) {
        device->sample.known = 0;
        device->process_count = -1;
        device->mig_count = 0;
    }
    return !device->is_lost;
}
