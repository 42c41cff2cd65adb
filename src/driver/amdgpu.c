/* SPDX-License-Identifier: Apache-2.0 */
/* Finds AMD GPUs and opens their files. */
#include "driver/amdgpu_table.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { VENDOR_AMD = 0x1002, HWMON_SENSOR_MAX = 8 };

static void device_close(struct amd_device *device)
{
    for (int i = 0; i < AMD_FILE_COUNT; i++)
        if (device->fds[i] >= 0)
            close(device->fds[i]);
}

static int open_in(const char *directory, const char *name)
{
    char path[AMD_PATH_MAX + 320];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return amd_file_open(path);
}

/* The input of the sensor with the given label; -1 when there is none. fallback: the input to use if the sensors
 * have no labels. */
static int sensor_open(const char *hwmon, const char *kind, const char *label, const char *fallback)
{
    for (int i = 0; i <= HWMON_SENSOR_MAX; i++) {
        char name[32], text[32];
        snprintf(name, sizeof name, "%s%d_label", kind, i);
        if (!amd_text_read(hwmon, name, text, sizeof text))
            continue;
        fallback = NULL; /* there are labels, so only they count */
        if (!strcmp(text, label)) {
            snprintf(name, sizeof name, "%s%d_input", kind, i);
            return open_in(hwmon, name);
        }
    }
    return fallback ? open_in(hwmon, fallback) : -1;
}

static void hwmon_open(struct amd_device *device)
{
    char directory[AMD_PATH_MAX + 8], hwmon[AMD_PATH_MAX + 288] = "";
    snprintf(directory, sizeof directory, "%s/hwmon", device->path);
    DIR *entries = opendir(directory);
    if (!entries)
        return;
    for (struct dirent *entry; !hwmon[0] && (entry = readdir(entries));)
        if (!strncmp(entry->d_name, "hwmon", 5))
            snprintf(hwmon, sizeof hwmon, "%s/%s", directory, entry->d_name);
    closedir(entries);
    if (!hwmon[0])
        return;
    int *fds = device->fds;
    fds[AMD_FILE_TEMP_EDGE] = sensor_open(hwmon, "temp", "edge", "temp1_input");
    fds[AMD_FILE_TEMP_JUNCTION] = sensor_open(hwmon, "temp", "junction", NULL);
    fds[AMD_FILE_TEMP_MEM] = sensor_open(hwmon, "temp", "mem", NULL);
    fds[AMD_FILE_VOLTAGE] = sensor_open(hwmon, "in", "vddgfx", "in0_input");
    fds[AMD_FILE_FREQ_GFX] = sensor_open(hwmon, "freq", "sclk", "freq1_input");
    fds[AMD_FILE_FREQ_MEM] = sensor_open(hwmon, "freq", "mclk", NULL);
    fds[AMD_FILE_POWER] = open_in(hwmon, "power1_average");
    if (fds[AMD_FILE_POWER] < 0)
        fds[AMD_FILE_POWER] = open_in(hwmon, "power1_input");
    fds[AMD_FILE_POWER_CAP] = open_in(hwmon, "power1_cap");
    fds[AMD_FILE_FAN] = open_in(hwmon, "fan1_input");
    fds[AMD_FILE_PWM] = open_in(hwmon, "pwm1");
    if (!amd_number_read(hwmon, "pwm1_max", &device->pwm_max))
        device->pwm_max = 255;
}

static void files_open(struct amd_device *device)
{
    static const struct {
        enum amd_file file;
        const char *name;
    } files[] = {
        {AMD_FILE_RUNTIME_STATUS, "power/runtime_status"},
        {AMD_FILE_METRICS, "gpu_metrics"},
        {AMD_FILE_BUSY, "gpu_busy_percent"},
        {AMD_FILE_MEM_BUSY, "mem_busy_percent"},
        {AMD_FILE_VRAM_USED, "mem_info_vram_used"},
        {AMD_FILE_DPM_GFX, "pp_dpm_sclk"},
        {AMD_FILE_DPM_MEM, "pp_dpm_mclk"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        device->fds[files[i].file] = open_in(device->path, files[i].name);
    hwmon_open(device);
    char ras[AMD_PATH_MAX + 8];
    snprintf(ras, sizeof ras, "%s/ras", device->path);
    device->has_ras = !access(ras, F_OK);
    if (device->fds[AMD_FILE_METRICS] < 0) {
        device->has_metrics_problem = true;
        problem_set(&device->metrics_problem, GPUFL_E_UNSUPPORTED, "the driver has no gpu_metrics for this chip");
    }
}

/* "0000:c1:00.0" of the device that the card belongs to; false if it is not an amdgpu device. */
static bool slot_find(const char *path, char slot[32])
{
    char text[1024], driver[32] = "";
    char name[AMD_PATH_MAX + 8];
    snprintf(name, sizeof name, "%s/uevent", path);
    int fd = amd_file_open(name);
    if (fd < 0)
        return false;
    amd_file_read(fd, text, sizeof text);
    close(fd);
    slot[0] = '\0';
    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        if (!strncmp(line, "DRIVER=", 7))
            snprintf(driver, sizeof driver, "%.31s", line + 7);
        if (!strncmp(line, "PCI_SLOT_NAME=", 14))
            snprintf(slot, 32, "%.31s", line + 14);
    }
    return slot[0] && !strcmp(driver, "amdgpu");
}

static void device_take(struct amdgpu *amdgpu, const char *path, const char *slot)
{
    struct amd_device *device = &amdgpu->devices[amdgpu->device_count];
    memset(device, 0, sizeof *device);
    snprintf(device->path, sizeof device->path, "%s", path);
    for (int i = 0; i < AMD_FILE_COUNT; i++)
        device->fds[i] = -1;
    device->smi_index = -1;
    device->info.vendor = GPU_VENDOR_AMD;
    snprintf(device->info.pci_bus_id, sizeof device->info.pci_bus_id, "%s", slot);
    char text[64];
    uint64_t bytes;
    /* Sixteen digits without 0x; the text has the form that ROCm uses. */
    if (amd_text_read(path, "unique_id", text, sizeof text) && strlen(text) == 16 &&
        strspn(text, "0123456789abcdefABCDEF") == 16 && strcmp(text, "0000000000000000") != 0)
        snprintf(device->info.uuid, sizeof device->info.uuid, "GPU-%.16s", text);
    else /* a chip without a unique id is identified by its bus address */
        snprintf(device->info.uuid, sizeof device->info.uuid, "PCI-%s", slot);
    if (amd_number_read(path, "mem_info_vram_total", &bytes))
        device->info.memory_total_bytes = bytes;
    uint64_t lanes, lanes_max;
    if (amd_number_read(path, "current_link_width", &lanes) && amd_number_read(path, "max_link_width", &lanes_max) &&
        lanes <= lanes_max && lanes_max <= 32) {
        device->info.pcie_lanes = (uint32_t)lanes;
        device->info.pcie_lanes_max = (uint32_t)lanes_max;
    }
    amd_name_find(amdgpu, device);
    amd_topology_take(amdgpu, device);
    amdgpu->device_count++;
}

static bool is_card(const char *name)
{
    return !strncmp(name, "card", 4) && name[4] && !name[4 + strspn(name + 4, "0123456789")];
}

static int slot_compare(const void *a, const void *b)
{
    const struct gpu_device_info *left = &((const struct amd_device *)a)->info;
    const struct gpu_device_info *right = &((const struct amd_device *)b)->info;
    int order = strcmp(left->pci_bus_id, right->pci_bus_id);
    return order ? order : (left->partition > right->partition) - (left->partition < right->partition);
}

/* Sorted by bus address, which is the same at every boot, unlike the card numbers. */
static gpufl_status devices_find(struct amdgpu *amdgpu, struct problem *problem)
{
    char directory[AMD_PATH_MAX];
    snprintf(directory, sizeof directory, "%s/sys/class/drm", amdgpu->root);
    amdgpu->devices = calloc(AMD_DEVICE_MAX, sizeof *amdgpu->devices);
    if (!amdgpu->devices)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory");
    DIR *entries = opendir(directory);
    for (struct dirent *entry; entries && amdgpu->device_count < AMD_DEVICE_MAX && (entry = readdir(entries));) {
        char path[AMD_PATH_MAX], slot[32];
        uint64_t vendor;
        if (!is_card(entry->d_name) || strlen(directory) + strlen(entry->d_name) + 9 > sizeof path)
            continue;
        snprintf(path, sizeof path, "%.*s/%.64s/device", AMD_PATH_MAX - 80, directory, entry->d_name);
        if (amd_number_read(path, "vendor", &vendor) && vendor == VENDOR_AMD && slot_find(path, slot))
            device_take(amdgpu, path, slot);
    }
    if (entries)
        closedir(entries);
    if (!amdgpu->device_count)
        return problem_set(problem, GPUFL_E_NO_DRIVER, "no AMD GPU: %s has no card with the amdgpu driver", directory);
    qsort(amdgpu->devices, amdgpu->device_count, sizeof *amdgpu->devices, slot_compare);
    for (uint32_t i = 0; i < amdgpu->device_count; i++) {
        amdgpu->devices[i].info.index = amdgpu->devices[i].info.driver_index = i;
        if (!amdgpu->devices[i].info.partition)
            files_open(&amdgpu->devices[i]);
    }
    return GPUFL_OK;
}

static void version_find(struct amdgpu *amdgpu)
{
    char directory[AMD_PATH_MAX];
    struct utsname kernel;
    snprintf(directory, sizeof directory, "%s/sys/module/amdgpu", amdgpu->root);
    if (!amd_text_read(directory, "version", amdgpu->driver_version, sizeof amdgpu->driver_version) && !uname(&kernel))
        snprintf(amdgpu->driver_version, sizeof amdgpu->driver_version, "Linux %.64s", kernel.release);
}

gpufl_status amdgpu_open(struct amdgpu **out, bool with_rocm_smi, struct problem *problem)
{
    const char *root = getenv("GPUFL_SYSFS_ROOT");
    struct amdgpu *amdgpu = calloc(1, sizeof *amdgpu);
    if (!amdgpu)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory");
    gpufl_status status;
    if (root && strlen(root) >= sizeof amdgpu->root) {
        status = problem_set(problem, GPUFL_E_INVALID, "GPUFL_SYSFS_ROOT is longer than %zu characters",
                             sizeof amdgpu->root - 1);
        goto fail;
    }
    snprintf(amdgpu->root, sizeof amdgpu->root, "%s", root ? root : "");
    /* The library reads the files of this machine, so another root needs another library. */
    amdgpu->has_tried_smi = !with_rocm_smi || (root && *root && !getenv("GPUFL_ROCM_SMI_PATH"));
    status = devices_find(amdgpu, problem);
    if (status != GPUFL_OK)
        goto fail;
    version_find(amdgpu);
    *out = amdgpu;
    return GPUFL_OK;
fail:
    free(amdgpu->devices);
    free(amdgpu);
    return status;
}

void amdgpu_abandon(struct amdgpu *amdgpu)
{
    for (uint32_t i = 0; i < amdgpu->device_count; i++)
        device_close(&amdgpu->devices[i]);
    free(amdgpu->devices);
    free(amdgpu);
}

void amdgpu_close(struct amdgpu *amdgpu)
{
    if (!amdgpu)
        return;
    rocm_smi_close(amdgpu->smi);
    amdgpu_abandon(amdgpu);
}

const char *amdgpu_driver_version(const struct amdgpu *amdgpu)
{
    return amdgpu->driver_version;
}

uint32_t amdgpu_device_count(const struct amdgpu *amdgpu)
{
    return amdgpu->device_count;
}

bool amdgpu_device_describe(const struct amdgpu *amdgpu, uint32_t index, struct gpu_device_info *info)
{
    if (index >= amdgpu->device_count)
        return false;
    *info = amdgpu->devices[index].info;
    return true;
}

const char *amdgpu_device_metrics_problem(const struct amdgpu *amdgpu, uint32_t index)
{
    return index < amdgpu->device_count ? amdgpu->devices[index].metrics_problem.text : "";
}
