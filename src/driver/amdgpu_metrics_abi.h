/* SPDX-License-Identifier: Apache-2.0 */
/* The tables that amdgpu's gpu_metrics file can contain, as far as they are read or skipped. Naturally aligned,
 * little-endian, with their size in the first two bytes. All bits set means that the chip does not provide the
 * value. */
#ifndef GPUFL_DRIVER_AMDGPU_METRICS_ABI_H
#define GPUFL_DRIVER_AMDGPU_METRICS_ABI_H

#include <stdint.h>

struct amd_abi_header {
    uint16_t size;
    uint8_t format, content;
};

/* From 1.9 on the table of an Instinct GPU is a list: for each attribute its encoding (64 bits: unit, type,
 * attribute number, number of values), followed by the values, without padding. */
struct amd_abi_v1_9 {
    struct amd_abi_header header;
    int32_t attribute_count;
};
enum { AMD_ABI_ATTRIBUTE_UNIT_SHIFT = 24, AMD_ABI_ATTRIBUTE_TYPE_SHIFT = 20, AMD_ABI_ATTRIBUTE_ID_SHIFT = 10 };
enum { AMD_ABI_ATTRIBUTE_UNIT_MASK = 0xff, AMD_ABI_ATTRIBUTE_TYPE_MASK = 0xf, AMD_ABI_ATTRIBUTE_ID_MASK = 0x3ff };
enum { AMD_ABI_ATTRIBUTE_COUNT_MASK = 0x3ff };
enum { AMD_ABI_TYPE_U8, AMD_ABI_TYPE_U16 = 2, AMD_ABI_TYPE_U32 = 4, AMD_ABI_TYPE_U64 = 6, AMD_ABI_TYPE_COUNT = 8 };
/* of an attribute */
enum amd_abi_unit {
    AMD_ABI_UNIT_NONE,
    AMD_ABI_UNIT_MHZ,
    AMD_ABI_UNIT_CELSIUS,
    AMD_ABI_UNIT_WATT,
    AMD_ABI_UNIT_BANDWIDTH = 8,
    AMD_ABI_UNIT_KB,
    AMD_ABI_UNIT_PERCENT
};
enum amd_abi_attribute {
    AMD_ABI_ATTRIBUTE_TEMP_HOTSPOT,
    AMD_ABI_ATTRIBUTE_TEMP_MEM,
    AMD_ABI_ATTRIBUTE_SOCKET_POWER = 3,
    AMD_ABI_ATTRIBUTE_GFX_ACTIVITY,
    AMD_ABI_ATTRIBUTE_MEMORY_ACTIVITY,
    AMD_ABI_ATTRIBUTE_ENERGY = 7,
    AMD_ABI_ATTRIBUTE_RESIDENCY_PROCHOT = 10,
    AMD_ABI_ATTRIBUTE_RESIDENCY_POWER,
    AMD_ABI_ATTRIBUTE_RESIDENCY_SOCKET_THERMAL,
    AMD_ABI_ATTRIBUTE_RESIDENCY_REGULATOR_THERMAL,
    AMD_ABI_ATTRIBUTE_RESIDENCY_HBM_THERMAL,
    AMD_ABI_ATTRIBUTE_PCIE_BANDWIDTH = 23,
    AMD_ABI_ATTRIBUTE_XGMI_READ = 29,
    AMD_ABI_ATTRIBUTE_XGMI_WRITE,
    AMD_ABI_ATTRIBUTE_GFX_CLOCK = 33,
    AMD_ABI_ATTRIBUTE_MEMORY_CLOCK = 37
};

struct amd_abi_v1_0 {
    struct amd_abi_header header;
    uint64_t driver_time_ns;
    uint16_t temp_edge, temp_hotspot, temp_mem, temp_regulators[3];
    uint16_t gfx_activity, memory_activity, media_activity;
    uint16_t socket_watts;
    uint32_t energy;
    uint16_t average_clocks[7];
    uint16_t gfx_mhz, soc_mhz, memory_mhz, media_mhz[4];
    uint32_t throttle_of_chip;
    uint16_t fan_rpm;
    uint8_t link_width, link_speed;
};

struct amd_abi_v1_3 { /* 1.1 ends before firmware_time, 1.2 before soc_mv */
    struct amd_abi_header header;
    uint16_t temp_edge, temp_hotspot, temp_mem, temp_regulators[3];
    uint16_t gfx_activity, memory_activity, media_activity;
    uint16_t socket_watts;
    uint64_t energy, driver_time_ns;
    uint16_t average_clocks[7];
    uint16_t gfx_mhz, soc_mhz, memory_mhz, media_mhz[4];
    uint32_t throttle_of_chip;
    uint16_t fan_rpm, link_width, link_speed, padding;
    uint32_t gfx_activity_sum, memory_activity_sum;
    uint16_t temp_hbm[4];
    uint64_t firmware_time;
    uint16_t soc_mv, gfx_mv, memory_mv, padding_end;
    uint64_t throttle;
};

struct amd_abi_residency { /* how long each limit lowered the clocks, accumulated */
    uint32_t cycles, prochot, power, socket_thermal, regulator_thermal, hbm_thermal;
};

struct amd_abi_link { /* separate from the next struct, which is aligned to eight bytes */
    uint16_t width, speed, xgmi_width, xgmi_speed;
    uint32_t gfx_activity_sum, memory_activity_sum;
};

struct amd_abi_pcie {
    uint64_t mbps_sum, mbps, recoveries, replays, replay_overflows;
};

struct amd_abi_xgmi {
    uint64_t read_kb[8], write_kb[8];
};

struct amd_abi_clocks {
    uint64_t firmware_time;
    uint16_t gfx_mhz[8], soc_mhz[4], media_mhz[8], memory_mhz, partition_count;
};

struct amd_abi_v1_4 {
    struct amd_abi_header header;
    uint16_t temp_hotspot, temp_mem, temp_regulator, socket_watts;
    uint16_t gfx_activity, memory_activity, video_activity[4];
    uint64_t energy, driver_time_ns;
    uint32_t throttle_of_chip, clock_locks;
    struct amd_abi_link link;
    struct amd_abi_pcie pcie;
    struct amd_abi_xgmi xgmi;
    struct amd_abi_clocks clocks;
};

struct amd_abi_v1_5 {
    struct amd_abi_header header;
    uint16_t temp_hotspot, temp_mem, temp_regulator, socket_watts;
    uint16_t gfx_activity, memory_activity, video_activity[4], jpeg_activity[32];
    uint64_t energy, driver_time_ns;
    uint32_t throttle_of_chip, clock_locks;
    struct amd_abi_link link;
    struct amd_abi_pcie pcie;
    uint32_t naks[2];
    struct amd_abi_xgmi xgmi;
    struct amd_abi_clocks clocks;
};

struct amd_abi_v1_6_early { /* of drivers before partitions had separate values */
    struct amd_abi_header header;
    uint16_t temp_hotspot, temp_mem, temp_regulator, socket_watts;
    uint16_t gfx_activity, memory_activity, video_activity[4], jpeg_activity[32];
    uint64_t energy, driver_time_ns;
    struct amd_abi_residency residency;
    uint32_t throttle_of_chip, clock_locks;
    struct amd_abi_link link;
    struct amd_abi_pcie pcie;
    uint32_t naks[2];
    struct amd_abi_xgmi xgmi;
    struct amd_abi_clocks clocks;
};

struct amd_abi_partition_v1_0 {
    uint32_t gfx_busy[8];
    uint16_t jpeg_busy[32], video_busy[4];
    uint64_t gfx_busy_sum[8];
};

struct amd_abi_v1_6 {
    struct amd_abi_header header;
    uint16_t temp_hotspot, temp_mem, temp_regulator, socket_watts;
    uint16_t gfx_activity, memory_activity;
    uint64_t energy, driver_time_ns;
    struct amd_abi_residency residency;
    uint32_t clock_locks;
    struct amd_abi_link link;
    struct amd_abi_pcie pcie;
    uint32_t naks[2];
    struct amd_abi_xgmi xgmi;
    struct amd_abi_clocks clocks;
    struct amd_abi_partition_v1_0 partitions[8];
    uint32_t other_end_recoveries;
};

struct amd_abi_partition_v1_1 {
    struct amd_abi_partition_v1_0 busy;
    uint64_t below_limit_sum[8];
};

struct amd_abi_v1_7 {
    struct amd_abi_header header;
    uint16_t temp_hotspot, temp_mem, temp_regulator, socket_watts;
    uint16_t gfx_activity, memory_activity;
    uint64_t memory_gbps_max, energy, driver_time_ns;
    struct amd_abi_residency residency;
    uint32_t clock_locks;
    struct amd_abi_link link;
    struct amd_abi_pcie pcie;
    uint32_t naks[2];
    struct amd_abi_xgmi xgmi;
    uint16_t xgmi_states[8], padding;
    struct amd_abi_clocks clocks;
    struct amd_abi_partition_v1_1 partitions[8];
    uint32_t other_end_recoveries;
};

struct amd_abi_partition_v1_2 {
    uint32_t gfx_busy[8];
    uint16_t jpeg_busy[40], video_busy[4];
    uint64_t gfx_busy_sum[8], below_limit_sums[4][8];
};

struct amd_abi_v1_8 {
    struct amd_abi_header header;
    uint16_t temp_hotspot, temp_mem, temp_regulator, socket_watts;
    uint16_t gfx_activity, memory_activity;
    uint64_t memory_gbps_max, energy, driver_time_ns;
    struct amd_abi_residency residency;
    uint32_t clock_locks;
    struct amd_abi_link link;
    struct amd_abi_pcie pcie;
    uint32_t naks[2];
    struct amd_abi_xgmi xgmi;
    uint16_t xgmi_states[8], padding;
    struct amd_abi_clocks clocks;
    struct amd_abi_partition_v1_2 partitions[8];
    uint32_t other_end_recoveries;
};

struct amd_abi_v2_0 {
    struct amd_abi_header header;
    uint64_t driver_time_ns;
    uint16_t temps[12], activities[2], powers[12], average_clocks[6];
    uint16_t gfx_mhz, soc_mhz, memory_mhz, other_mhz[13];
    uint32_t throttle_of_chip;
    uint16_t fan_pwm, padding;
};

struct amd_abi_v2_4 { /* 2.1 ends before throttle, 2.2 before average_temps, 2.3 before the voltages */
    struct amd_abi_header header;
    uint16_t temp_gfx, temps[11], gfx_activity, media_activity;
    uint64_t driver_time_ns;
    uint16_t socket_power, powers[11], average_clocks[6];
    uint16_t gfx_mhz, soc_mhz, memory_mhz, other_mhz[13];
    uint32_t throttle_of_chip;
    uint16_t fan_pwm, padding[3];
    uint64_t throttle;
    uint16_t average_temps[12];
    uint16_t cpu_mv, soc_mv, gfx_mv, currents[3];
};

struct amd_abi_v3_0 {
    struct amd_abi_header header;
    uint16_t temp_gfx, temps[18], gfx_activity, video_activity;
    uint16_t npu_activities[8], core_activities[16], memory_mbps[4];
    uint64_t driver_time_ns;
    uint32_t socket_mw;
    uint16_t npu_mw;
    uint32_t apu_mw, gfx_mw, other_gpu_mw, cores_mw;
    uint16_t core_mw[16], system_mw, limits_mw[2];
    uint16_t gfx_mhz, soc_mhz, other_mhz[4], memory_mhz, npu_mhz;
    uint16_t core_mhz[16], core_mhz_max, gfx_mhz_max;
    uint32_t residency_prochot, residency_power[3], residency_thermal[3];
    uint32_t filter_us;
};

#endif
