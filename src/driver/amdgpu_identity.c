/* SPDX-License-Identifier: Apache-2.0 */
/* Identifies an AMD GPU: its product name, and its cores according to KFD. */
#include "driver/amdgpu_table.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void name_set(struct amd_device *device, const char *name)
{
    snprintf(device->info.name, sizeof device->info.name, "%.95s", name);
}

/* libdrm's list: "744C,\tC8,\tAMD Radeon RX 7900 XTX". */
static bool name_find_amdgpu_ids(const struct amdgpu *amdgpu, struct amd_device *device, uint64_t chip,
                                 uint64_t revision)
{
    char path[AMD_PATH_MAX], line[256], name[128];
    bool is_found = false;
    snprintf(path, sizeof path, "%s/usr/share/libdrm/amdgpu.ids", amdgpu->root);
    FILE *list = fopen(path, "re");
    if (!list)
        return false;
    while (!is_found && fgets(line, sizeof line, list)) {
        unsigned line_chip, line_revision;
        if (sscanf(line, "%4x, %2x, %127[^\r\n]", &line_chip, &line_revision, name) == 3)
            is_found = line_chip == chip && line_revision == revision;
    }
    fclose(list);
    if (is_found)
        name_set(device, name);
    return is_found;
}

/* pci.ids: a line "1002  Advanced Micro Devices..." and under it "\t74a1  Aqua Vanjaram [Instinct MI300X]". */
static bool name_find_pci_ids(const struct amdgpu *amdgpu, const char *directory, struct amd_device *device,
                              uint64_t chip)
{
    char path[AMD_PATH_MAX], line[512], name[128];
    bool is_vendor = false, is_found = false;
    snprintf(path, sizeof path, "%s/usr/share/%s/pci.ids", amdgpu->root, directory);
    FILE *list = fopen(path, "re");
    if (!list)
        return false;
    while (!is_found && fgets(line, sizeof line, list)) {
        unsigned number;
        if (line[0] != '\t' && line[0] != '#' && sscanf(line, "%4x", &number) == 1)
            is_vendor = number == 0x1002;
        else if (is_vendor && line[0] == '\t' && line[1] != '\t' &&
                 sscanf(line, "\t%4x  %127[^\r\n]", &number, name) == 2)
            is_found = number == chip;
    }
    fclose(list);
    if (is_found)
        name_set(device, name);
    return is_found;
}

void amd_name_find(const struct amdgpu *amdgpu, struct amd_device *device)
{
    char name[128];
    uint64_t chip = 0, revision = 0;
    if (amd_text_read(device->path, "product_name", name, sizeof name) && name[0]) {
        name_set(device, name);
        return;
    }
    if (!amd_number_read(device->path, "device", &chip))
        return;
    bool has_revision = amd_number_read(device->path, "revision", &revision);
    if ((has_revision && name_find_amdgpu_ids(amdgpu, device, chip, revision)) ||
        name_find_pci_ids(amdgpu, "misc", device, chip) || name_find_pci_ids(amdgpu, "hwdata", device, chip))
        return;
    snprintf(name, sizeof name, "AMD GPU 0x%04" PRIx64, chip);
    name_set(device, name);
}

/* 90402 is gfx942: two decimal digits each, of which the last two are written in hexadecimal. */
static void architecture_set(struct amd_device *device, uint64_t version)
{
    if (version && version < 1000000)
        snprintf(device->info.architecture, sizeof device->info.architecture, "gfx%u%x%x", (unsigned)(version / 10000),
                 (unsigned)(version / 100 % 100), (unsigned)(version % 100));
}

static void properties_take(struct amd_device *device, const char *text)
{
    uint64_t value, per_unit;
    if (amd_property_find(text, "gfx_target_version", &value))
        architecture_set(device, value);
    if (amd_property_find(text, "simd_count", &value) && amd_property_find(text, "simd_per_cu", &per_unit) &&
        per_unit && value / per_unit <= UINT32_MAX)
        device->info.multiprocessors = (uint32_t)(value / per_unit);
    if (amd_property_find(text, "wave_front_size", &value) && value <= 1024)
        device->info.warp_size = (uint32_t)value;
    if (amd_property_find(text, "lds_size_in_kb", &value) && value <= 1024 * 1024)
        device->info.lds_bytes = (uint32_t)value * 1024;
}

/* KFD identifies a bus address by the domain and one number for bus, device and function. A partitioned GPU has a
 * node for each partition, whose number is in bits 28 to 31, or in other kernels in place of the function
 * (kfd_topology_add_device). */
static bool is_at_slot(const char *text, const char *slot, uint32_t *partition)
{
    uint64_t domain, location;
    unsigned slot_domain, slot_bus, slot_device, function;
    if (sscanf(slot, "%x:%x:%x.%x", &slot_domain, &slot_bus, &slot_device, &function) != 4 ||
        !amd_property_find(text, "location_id", &location) || (location & 0xfffffff) > 0xffff || location > UINT32_MAX)
        return false;
    if (!amd_property_find(text, "domain", &domain))
        domain = 0;
    *partition = (uint32_t)(location >> 28 ? location >> 28 : (location & 7) ^ function);
    return domain == slot_domain && (location >> 8 & 0xff) == slot_bus && (location >> 3 & 31) == slot_device;
}

/* The values of a KFD node, if it is a GPU at that address. */
struct node {
    uint32_t gpu_id, partition;
    uint64_t memory_bytes; /* of its banks; 0: unknown */
    char text[4096];
};

static bool node_read(const char *directory, const char *slot, struct node *node)
{
    char path[AMD_PATH_MAX + 320], text[1024];
    uint64_t gpu_id;
    /* A node with the number 0 is a CPU. */
    if (!amd_number_read(directory, "gpu_id", &gpu_id) || !gpu_id || gpu_id > UINT32_MAX)
        return false;
    snprintf(path, sizeof path, "%s/properties", directory);
    int fd = amd_file_open(path);
    if (fd < 0)
        return false;
    amd_file_read(fd, node->text, sizeof node->text);
    close(fd);
    node->gpu_id = (uint32_t)gpu_id;
    node->memory_bytes = 0;
    snprintf(path, sizeof path, "%s/mem_banks/0/properties", directory);
    fd = amd_file_open(path);
    if (fd >= 0) {
        if (amd_file_read(fd, text, sizeof text) <= 0 || !amd_property_find(text, "size_in_bytes", &node->memory_bytes))
            node->memory_bytes = 0;
        close(fd);
    }
    return is_at_slot(node->text, slot, &node->partition);
}

/* Only has KFD's values: the sensors measure the whole GPU, and are assigned to its first partition. */
static void partition_add(struct amdgpu *amdgpu, const struct amd_device *whole, const struct node *node)
{
    if (amdgpu->device_count + 1 >= AMD_DEVICE_MAX) /* the whole GPU is counted after this */
        return;
    struct amd_device *device = &amdgpu->devices[++amdgpu->device_count];
    *device = *whole;
    device->info.is_partition = true;
    device->info.partition = node->partition;
    device->info.memory_total_bytes = node->memory_bytes;
    device->info.pcie_lanes = device->info.pcie_lanes_max = 0;
    device->kfd_gpu_id = node->gpu_id;
    properties_take(device, node->text);
}

static void partition_name(struct amd_device *device, const char *name, const char *uuid)
{
    snprintf(device->info.name, sizeof device->info.name, "%.70s, partition %u", name,
             (unsigned)device->info.partition);
    if (device->info.partition)
        snprintf(device->info.uuid, sizeof device->info.uuid, "%.80s/%u", uuid, (unsigned)device->info.partition);
}

void amd_topology_take(struct amdgpu *amdgpu, struct amd_device *device)
{
    char directory[AMD_PATH_MAX], path[AMD_PATH_MAX + 288];
    snprintf(directory, sizeof directory, "%s/sys/class/kfd/kfd/topology/nodes", amdgpu->root);
    DIR *entries = opendir(directory);
    if (!entries)
        return;
    uint32_t first = amdgpu->device_count;
    for (struct dirent *entry; (entry = readdir(entries));) {
        struct node node;
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        if (!node_read(path, device->info.pci_bus_id, &node))
            continue;
        if (node.partition) {
            partition_add(amdgpu, device, &node);
        } else if (!device->kfd_gpu_id) {
            device->kfd_gpu_id = node.gpu_id;
            properties_take(device, node.text);
        }
    }
    closedir(entries);
    if (amdgpu->device_count == first)
        return;
    const struct gpu_device_info whole = device->info;
    device->info.is_partition = true;
    for (uint32_t i = first; i <= amdgpu->device_count; i++)
        partition_name(&amdgpu->devices[i], whole.name, whole.uuid);
}
