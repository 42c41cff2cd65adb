/* SPDX-License-Identifier: Apache-2.0 */
#include "amd_tree.h"

#include "driver/amdgpu_metrics_abi.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct tree_file {
    const char *path, *text; /* relative to the device */
};

static const struct tree_file mi300x_files[] = {
    {"device", "0x74a1\n"},
    {"revision", "0x00\n"},
    {"product_name", "AMD Instinct MI300X OAM\n"},
    {"mem_info_vram_total", "206141652992\n"},
    {"mem_info_vram_used", "68719476736\n"},
    {"gpu_busy_percent", "87\n"},
    {"mem_busy_percent", "41\n"},
    {"current_link_speed", "32.0 GT/s PCIe\n"},
    {"current_link_width", "16\n"},
    {"max_link_width", "16\n"},
    {"power/runtime_status", "active\n"},
    {"pp_dpm_sclk", "S: 132Mhz *\n0: 500Mhz\n1: 2100Mhz\n"},
    {"hwmon/hwmon3/name", "amdgpu\n"},
    {"hwmon/hwmon3/temp2_input", "61000\n"},
    {"hwmon/hwmon3/temp2_label", "junction\n"},
    {"hwmon/hwmon3/temp3_input", "54000\n"},
    {"hwmon/hwmon3/temp3_label", "mem\n"},
    {"hwmon/hwmon3/power1_input", "553000000\n"},
    {"hwmon/hwmon3/power1_cap", "750000000\n"},
    {"hwmon/hwmon3/freq1_input", "2094000000\n"},
    {"hwmon/hwmon3/freq1_label", "sclk\n"},
    {"hwmon/hwmon3/freq2_input", "1300000000\n"},
    {"hwmon/hwmon3/freq2_label", "mclk\n"},
    {"ras/umc_err_count", "ue: 1\nce: 5\n"},
    {"ras/gfx_err_count", "ue: 0\nce: 2\n"},
    {"ras/aca_sdma", "ue: 0\nce: 1\nde: 0\n"},
    {"ras/features", "feature mask: 0x1ff\n"},
};

static const struct tree_file rx7900_files[] = {
    {"device", "0x744c\n"},
    {"revision", "0xc8\n"},
    {"mem_info_vram_total", "25753026560\n"},
    {"mem_info_vram_used", "1073741824\n"},
    {"gpu_busy_percent", "12\n"},
    {"mem_busy_percent", "3\n"},
    {"power/runtime_status", "active\n"},
    {"pp_dpm_sclk", "0: 500Mhz\n1: 2371Mhz *\n2: 2526Mhz\n"},
    {"pp_dpm_mclk", "0: 96Mhz\n1: 456Mhz\n2: 772Mhz\n3: 1249Mhz *\n"},
    {"hwmon/hwmon1/name", "amdgpu\n"},
    {"hwmon/hwmon1/temp1_input", "48000\n"},
    {"hwmon/hwmon1/temp1_label", "edge\n"},
    {"hwmon/hwmon1/temp2_input", "59000\n"},
    {"hwmon/hwmon1/temp2_label", "junction\n"},
    {"hwmon/hwmon1/temp3_input", "70000\n"},
    {"hwmon/hwmon1/temp3_label", "mem\n"},
    {"hwmon/hwmon1/power1_average", "98000000\n"},
    {"hwmon/hwmon1/power1_cap", "303000000\n"},
    {"hwmon/hwmon1/fan1_input", "1234\n"},
    {"hwmon/hwmon1/pwm1", "102\n"},
    {"hwmon/hwmon1/pwm1_max", "255\n"},
    {"hwmon/hwmon1/in0_input", "893\n"},
    {"hwmon/hwmon1/in0_label", "vddgfx\n"},
    {"hwmon/hwmon1/freq1_input", "2371000000\n"},
    {"hwmon/hwmon1/freq1_label", "sclk\n"},
};

static const struct tree_file apu_files[] = {
    {"device", "0x150e\n"},
    {"revision", "0xd1\n"},
    {"mem_info_vram_total", "536870912\n"},
    {"mem_info_vram_used", "201326592\n"},
    {"gpu_busy_percent", "5\n"},
    {"power/runtime_status", "active\n"},
    {"hwmon/hwmon5/name", "amdgpu\n"},
    {"hwmon/hwmon5/temp1_input", "43000\n"},
    {"hwmon/hwmon5/temp1_label", "edge\n"},
    {"hwmon/hwmon5/in0_input", "701\n"},
    {"hwmon/hwmon5/in0_label", "vddgfx\n"},
    {"hwmon/hwmon5/in1_input", "812\n"},
    {"hwmon/hwmon5/in1_label", "vddnb\n"},
};

static const struct tree_file broken_files[] = {
    {"device", "banana\n"},
    {"unique_id", "not sixteen digits\n"},
    {"mem_info_vram_total", "99999999999999999999999999\n"},
    {"mem_info_vram_used", "-5\n"},
    {"gpu_busy_percent", "65535\n"},
    {"mem_busy_percent", "\n"},
    {"power/runtime_status", "active\n"},
    {"pp_dpm_sclk", "*\n:*\n0: Mhz *\n0: 99999999999999Mhz *\n"},
    {"pp_dpm_mclk", "0: 100 parsec *\n"},
    {"hwmon/hwmon2/temp1_input", "hot\n"},
    {"hwmon/hwmon2/power1_average", "12 34\n"},
    {"hwmon/hwmon2/fan1_input", "0x\n"},
    {"hwmon/hwmon2/pwm1", "300\n"},
    {"ras/umc_err_count", "ue: many\nce: some\n"},
};

uint32_t amd_tree_gpu_id(unsigned card)
{
    return 40000 + card;
}

uint32_t amd_tree_partition_id(unsigned card, unsigned partition)
{
    return amd_tree_gpu_id(card) + 100 * partition;
}

static bool parents_make(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        bool is_made = !mkdir(path, 0755) || errno == EEXIST;
        *slash = '/';
        if (!is_made)
            return false;
    }
    return true;
}

bool amd_tree_write(const char *root, const char *path, const void *bytes, size_t size)
{
    char whole[PATH_MAX];
    snprintf(whole, sizeof whole, "%s/%s", root, path);
    if (!parents_make(whole))
        return false;
    int fd = open(whole, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return false;
    bool is_written = write(fd, bytes, size) == (ssize_t)size;
    return !close(fd) && is_written;
}

bool amd_tree_text(const char *root, const char *path, const char *text)
{
    return amd_tree_write(root, path, text, strlen(text));
}

static bool link_make(const char *root, const char *path, const char *target)
{
    char whole[PATH_MAX];
    snprintf(whole, sizeof whole, "%s/%s", root, path);
    return parents_make(whole) && (!symlink(target, whole) || errno == EEXIST);
}

static bool device_write(const char *root, const char *slot, const char *name, const void *bytes, size_t size)
{
    char path[512];
    snprintf(path, sizeof path, "sys/devices/pci0000:00/%s/%s", slot, name);
    return amd_tree_write(root, path, bytes, size);
}

static bool metrics_write(const char *root, enum amd_tree_kind kind, const char *slot)
{
    if (kind == AMD_TREE_MI300X) {
        struct amd_abi_v1_7 table;
        memset(&table, 0xff, sizeof table);
        table.header = (struct amd_abi_header){sizeof table, 1, 7};
        table.temp_hotspot = 62;
        table.socket_watts = 555;
        table.gfx_activity = 88;
        table.energy = UINT64_C(1) << 36; /* 2^20 J */
        table.residency = (struct amd_abi_residency){1000, 0, 10, 0, 0, 0};
        table.pcie.mbps = 800;
        for (int i = 0; i < 7; i++)
            table.xgmi.read_kb[i] = table.xgmi.write_kb[i] = 1000;
        for (int i = 0; i < 8; i++)
            table.clocks.gfx_mhz[i] = (uint16_t)(2000 + i);
        table.clocks.memory_mhz = 1301;
        return device_write(root, slot, "gpu_metrics", &table, sizeof table);
    }
    if (kind == AMD_TREE_RX7900) {
        struct amd_abi_v1_3 table;
        memset(&table, 0xff, sizeof table);
        table.header = (struct amd_abi_header){sizeof table, 1, 3};
        table.energy = 65536 * 3; /* 3 J */
        table.fan_rpm = 1230;
        table.gfx_mv = 890;
        table.memory_mhz = 1249;
        table.throttle = UINT64_C(1) << 36 | 1; /* hotspot, and the first power limit */
        return device_write(root, slot, "gpu_metrics", &table, sizeof table);
    }
    if (kind == AMD_TREE_APU) {
        struct amd_abi_v3_0 table;
        memset(&table, 0xff, sizeof table);
        table.header = (struct amd_abi_header){sizeof table, 3, 0};
        table.temp_gfx = 4350;
        table.socket_mw = 15250;
        table.gfx_mhz = 800;
        table.memory_mhz = 1000;
        table.residency_prochot = 0;
        memset(table.residency_power, 0, sizeof table.residency_power);
        memset(table.residency_thermal, 0, sizeof table.residency_thermal);
        return device_write(root, slot, "gpu_metrics", &table, sizeof table);
    }
    static const uint8_t garbage[] = {0xff, 0xff, 1, 3, 1, 2, 3};
    return device_write(root, slot, "gpu_metrics", garbage, sizeof garbage);
}

/* Of the GPU's compute units and memory a partition has its share. */
static bool node_write(const char *root, enum amd_tree_kind kind, unsigned node, uint32_t gpu_id, const char *slot,
                       uint32_t location_bits, unsigned partitions)
{
    unsigned domain, bus, device, function;
    char path[256], text[512];
    if (sscanf(slot, "%4x:%2x:%2x.%1x", &domain, &bus, &device, &function) != 4)
        return false;
    snprintf(path, sizeof path, "sys/class/kfd/kfd/topology/nodes/%u/gpu_id", node);
    snprintf(text, sizeof text, "%" PRIu32 "\n", gpu_id);
    if (!amd_tree_text(root, path, text))
        return false;
    snprintf(path, sizeof path, "sys/class/kfd/kfd/topology/nodes/%u/mem_banks/0/properties", node);
    snprintf(text, sizeof text, "heap_type 1\nsize_in_bytes %llu\nflags 0\n", 206141652992ull / partitions);
    if (!amd_tree_text(root, path, text))
        return false;
    snprintf(path, sizeof path, "sys/class/kfd/kfd/topology/nodes/%u/properties", node);
    snprintf(text, sizeof text,
             "cpu_cores_count 0\nsimd_count %u\nmem_banks_count 1\nlds_size_in_kb 64\nwave_front_size %u\n"
             "simd_per_cu %u\ngfx_target_version %u\nvendor_id 4098\nlocation_id %" PRIu32 "\ndomain %u\n",
             (kind == AMD_TREE_MI300X ? 1216 : 192) / partitions, kind == AMD_TREE_MI300X ? 64 : 32,
             kind == AMD_TREE_MI300X ? 4 : 2, kind == AMD_TREE_MI300X ? 90402 : 110000,
             (bus << 8 | device << 3 | function) | location_bits, domain);
    return amd_tree_text(root, path, text);
}

static bool kfd_write(const char *root, enum amd_tree_kind kind, unsigned card, const char *slot)
{
    return node_write(root, kind, card + 1, amd_tree_gpu_id(card), slot, 0, 1) &&
           amd_tree_text(root, "sys/class/kfd/kfd/topology/nodes/0/gpu_id", "0\n") &&
           amd_tree_text(root, "sys/class/kfd/kfd/topology/nodes/0/properties", "cpu_cores_count 64\nsimd_count 0\n");
}

bool amd_tree_divide(const char *root, unsigned card, const char *slot, unsigned partitions, bool in_function)
{
    bool is_written = node_write(root, AMD_TREE_MI300X, card + 1, amd_tree_gpu_id(card), slot, 0, partitions);
    for (unsigned i = 1; is_written && i < partitions; i++)
        is_written = node_write(root, AMD_TREE_MI300X, 100 * (card + 1) + i, amd_tree_partition_id(card, i), slot,
                                in_function ? i : (uint32_t)i << 28, partitions);
    return is_written;
}

/* Files that cannot be what they should: a directory, a loop, one that may not be read, one far too long, a pipe. */
static bool traps_make(const char *root, const char *slot)
{
    char path[512], whole[PATH_MAX];
    char *many = malloc(1 << 20);
    if (!many)
        return false;
    memset(many, '7', 1 << 20);
    bool is_made = device_write(root, slot, "hwmon/hwmon2/in0_input", many, 1 << 20) &&
                   device_write(root, slot, "revision", many, 1 << 20) &&
                   device_write(root, slot, "product_name/is/a/directory", "", 0);
    free(many);
    snprintf(path, sizeof path, "sys/devices/pci0000:00/%s/hwmon/hwmon2/power1_cap", slot);
    is_made &= link_make(root, path, "power1_cap");
    snprintf(whole, sizeof whole, "%s/sys/devices/pci0000:00/%s/hwmon/hwmon2/freq1_input", root, slot);
    is_made &= !mkfifo(whole, 0644) || errno == EEXIST;
    snprintf(whole, sizeof whole, "%s/sys/devices/pci0000:00/%s/mem_busy_percent", root, slot);
    return is_made && !chmod(whole, 0);
}

static bool identity_write(const char *root, enum amd_tree_kind kind, unsigned card, const char *slot)
{
    char text[256], path[64], target[128];
    snprintf(text, sizeof text, "DRIVER=amdgpu\nPCI_CLASS=38000\nPCI_SLOT_NAME=%s\nMODALIAS=pci:v00001002\n", slot);
    snprintf(path, sizeof path, "sys/class/drm/card%u/device", card);
    snprintf(target, sizeof target, "../../../devices/pci0000:00/%s", slot);
    if (!device_write(root, slot, "uevent", text, strlen(text)) || !device_write(root, slot, "vendor", "0x1002\n", 7) ||
        !link_make(root, path, target) || !amd_tree_text(root, "sys/class/drm/version", "drm 1.1.0 20060810\n") ||
        !amd_tree_text(root, "sys/module/amdgpu/version", "6.12.12\n"))
        return false;
    snprintf(path, sizeof path, "sys/class/drm/card%u-DP-1/status", card);
    if (!amd_tree_text(root, path, "disconnected\n"))
        return false;
    if (kind != AMD_TREE_MI300X && kind != AMD_TREE_RX7900)
        return true;
    snprintf(text, sizeof text, "%016llx\n", 0x6b7be00c63c4b000ull + card);
    return device_write(root, slot, "unique_id", text, strlen(text));
}

bool amd_tree_add(const char *root, enum amd_tree_kind kind, unsigned card, const char *slot)
{
    static const struct {
        const struct tree_file *files;
        size_t count;
    } lists[] = {
        [AMD_TREE_MI300X] = {mi300x_files, sizeof mi300x_files / sizeof *mi300x_files},
        [AMD_TREE_RX7900] = {rx7900_files, sizeof rx7900_files / sizeof *rx7900_files},
        [AMD_TREE_APU] = {apu_files, sizeof apu_files / sizeof *apu_files},
        [AMD_TREE_BROKEN] = {broken_files, sizeof broken_files / sizeof *broken_files},
    };
    for (size_t i = 0; i < lists[kind].count; i++) {
        const struct tree_file *file = &lists[kind].files[i];
        if (!device_write(root, slot, file->path, file->text, strlen(file->text)))
            return false;
    }
    if (!metrics_write(root, kind, slot) || !identity_write(root, kind, card, slot))
        return false;
    if (kind == AMD_TREE_BROKEN)
        return traps_make(root, slot);
    return amd_tree_text(root, "usr/share/libdrm/amdgpu.ids",
                         "# List of AMDGPU IDs\n1.0.0\n744C,\tC4,\tAMD Radeon PRO W7900\n"
                         "744C,\tC8,\tAMD Radeon RX 7900 XTX\n") &&
           amd_tree_text(root, "usr/share/misc/pci.ids",
                         "# pci.ids\n10de  NVIDIA Corporation\n\t150e  Not this one\n"
                         "1002  Advanced Micro Devices, Inc. [AMD/ATI]\n\t150e  Strix [Radeon 880M / 890M]\n"
                         "\t\t1002 0124  A subsystem\n") &&
           (kind == AMD_TREE_APU || kfd_write(root, kind, card, slot));
}

bool amd_tree_kfd_process(const char *root, unsigned pid, uint32_t gpu_id, uint64_t bytes)
{
    char path[128], text[32];
    snprintf(path, sizeof path, "sys/class/kfd/kfd/proc/%u/vram_%" PRIu32, pid, gpu_id);
    snprintf(text, sizeof text, "%" PRIu64 "\n", bytes);
    return amd_tree_text(root, path, text);
}

bool amd_tree_drm_process(const char *root, unsigned pid, unsigned fd, unsigned client, const char *slot, uint64_t kib)
{
    char path[128], text[512];
    snprintf(path, sizeof path, "proc/%u/fd/%u", pid, fd);
    if (!link_make(root, path, "/dev/dri/renderD128"))
        return false;
    snprintf(path, sizeof path, "proc/%u/fdinfo/%u", pid, fd);
    snprintf(text, sizeof text,
             "pos:\t0\nflags:\t02100002\nmnt_id:\t27\nino:\t683\ndrm-driver:\tamdgpu\ndrm-client-id:\t%u\n"
             "drm-pdev:\t%s\npasid:\t32770\ndrm-memory-vram:\t%" PRIu64 " KiB\ndrm-memory-gtt:\t4 KiB\n"
             "drm-engine-gfx:\t123456 ns\n",
             client, slot, kib);
    return amd_tree_text(root, path, text);
}
