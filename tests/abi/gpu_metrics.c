/* SPDX-License-Identifier: Apache-2.0 */
/* Our tables of gpu_metrics against those of the kernel. Compiled by
 * tools/check_vendor_abi.sh, which takes the structs out of kgd_pp_interface.h
 * and defines HAS_1_4 and so on for those that are there. */
#include "driver/amdgpu_metrics_abi.h"
#include "gpu_metrics_tables.h"

#define SIZE(ours, theirs) _Static_assert(sizeof(struct ours) == sizeof(struct theirs), #theirs)
#define SIZE_IS(bytes, theirs) _Static_assert((bytes) == sizeof(struct theirs), #theirs)
#define AT(ours, member, theirs, their_member)                                                           \
    _Static_assert(offsetof(struct ours, member) == offsetof(struct theirs, their_member) &&             \
                       sizeof(((struct ours *)0)->member) == sizeof(((struct theirs *)0)->their_member), \
                   #theirs "." #their_member)

#define RADEON(ours, theirs)                                 \
    AT(ours, temp_edge, theirs, temperature_edge);           \
    AT(ours, temp_hotspot, theirs, temperature_hotspot);     \
    AT(ours, temp_mem, theirs, temperature_mem);             \
    AT(ours, socket_watts, theirs, average_socket_power);    \
    AT(ours, gfx_activity, theirs, average_gfx_activity);    \
    AT(ours, memory_activity, theirs, average_umc_activity); \
    AT(ours, energy, theirs, energy_accumulator);            \
    AT(ours, gfx_mhz, theirs, current_gfxclk);               \
    AT(ours, memory_mhz, theirs, current_uclk);              \
    AT(ours, fan_rpm, theirs, current_fan_speed)

#define INSTINCT(ours, theirs)                               \
    SIZE(ours, theirs);                                      \
    AT(ours, temp_hotspot, theirs, temperature_hotspot);     \
    AT(ours, temp_mem, theirs, temperature_mem);             \
    AT(ours, socket_watts, theirs, curr_socket_power);       \
    AT(ours, gfx_activity, theirs, average_gfx_activity);    \
    AT(ours, memory_activity, theirs, average_umc_activity); \
    AT(ours, energy, theirs, energy_accumulator);            \
    AT(ours, pcie.mbps, theirs, pcie_bandwidth_inst);        \
    AT(ours, xgmi.read_kb, theirs, xgmi_read_data_acc);      \
    AT(ours, xgmi.write_kb, theirs, xgmi_write_data_acc);    \
    AT(ours, clocks.gfx_mhz, theirs, current_gfxclk);        \
    AT(ours, clocks.memory_mhz, theirs, current_uclk)

#define RESIDENCIES(ours, theirs)                                         \
    AT(ours, residency.prochot, theirs, prochot_residency_acc);           \
    AT(ours, residency.power, theirs, ppt_residency_acc);                 \
    AT(ours, residency.socket_thermal, theirs, socket_thm_residency_acc); \
    AT(ours, residency.regulator_thermal, theirs, vr_thm_residency_acc);  \
    AT(ours, residency.hbm_thermal, theirs, hbm_thm_residency_acc)

SIZE(amd_abi_header, metrics_table_header);
AT(amd_abi_header, format, metrics_table_header, format_revision);
AT(amd_abi_header, content, metrics_table_header, content_revision);
#ifdef HAS_1_0
SIZE(amd_abi_v1_0, gpu_metrics_v1_0);
RADEON(amd_abi_v1_0, gpu_metrics_v1_0);
#endif
#ifdef HAS_1_1
SIZE_IS(offsetof(struct amd_abi_v1_3, firmware_time), gpu_metrics_v1_1);
#endif
#ifdef HAS_1_2
SIZE_IS(offsetof(struct amd_abi_v1_3, soc_mv), gpu_metrics_v1_2);
#endif
#ifdef HAS_1_3
SIZE(amd_abi_v1_3, gpu_metrics_v1_3);
RADEON(amd_abi_v1_3, gpu_metrics_v1_3);
AT(amd_abi_v1_3, gfx_mv, gpu_metrics_v1_3, voltage_gfx);
AT(amd_abi_v1_3, throttle, gpu_metrics_v1_3, indep_throttle_status);
#endif
#ifdef HAS_1_4
INSTINCT(amd_abi_v1_4, gpu_metrics_v1_4);
#endif
#ifdef HAS_1_5
INSTINCT(amd_abi_v1_5, gpu_metrics_v1_5);
#endif
#ifdef HAS_1_6
INSTINCT(amd_abi_v1_6, gpu_metrics_v1_6);
RESIDENCIES(amd_abi_v1_6, gpu_metrics_v1_6);
#endif
#ifdef HAS_1_7
INSTINCT(amd_abi_v1_7, gpu_metrics_v1_7);
RESIDENCIES(amd_abi_v1_7, gpu_metrics_v1_7);
#endif
#ifdef HAS_1_8
INSTINCT(amd_abi_v1_8, gpu_metrics_v1_8);
RESIDENCIES(amd_abi_v1_8, gpu_metrics_v1_8);
#endif
#ifdef HAS_1_9
#define VALUE(ours, theirs) _Static_assert((int)AMD_ABI_##ours == (int)AMDGPU_METRICS_##theirs, #theirs)
AT(amd_abi_v1_9, attribute_count, gpu_metrics_v1_9, attr_count);
VALUE(ATTRIBUTE_UNIT_SHIFT, ATTR_UNIT_SHIFT);
VALUE(ATTRIBUTE_TYPE_SHIFT, ATTR_TYPE_SHIFT);
VALUE(ATTRIBUTE_ID_SHIFT, ATTR_ID_SHIFT);
VALUE(ATTRIBUTE_COUNT_MASK, ATTR_INST_MASK);
VALUE(TYPE_U8, TYPE_U8);
VALUE(TYPE_U16, TYPE_U16);
VALUE(TYPE_U32, TYPE_U32);
VALUE(TYPE_U64, TYPE_U64);
VALUE(TYPE_COUNT, TYPE_MAX);
VALUE(UNIT_NONE, UNIT_NONE);
VALUE(UNIT_MHZ, UNIT_CLOCK_1);
VALUE(UNIT_CELSIUS, UNIT_TEMP_1);
VALUE(UNIT_WATT, UNIT_POWER_1);
VALUE(UNIT_BANDWIDTH, UNIT_BW_1);
VALUE(UNIT_KB, UNIT_DATA_1);
VALUE(UNIT_PERCENT, UNIT_PERCENT);
VALUE(ATTRIBUTE_TEMP_HOTSPOT, ATTR_TEMPERATURE_HOTSPOT);
VALUE(ATTRIBUTE_TEMP_MEM, ATTR_TEMPERATURE_MEM);
VALUE(ATTRIBUTE_SOCKET_POWER, ATTR_CURR_SOCKET_POWER);
VALUE(ATTRIBUTE_GFX_ACTIVITY, ATTR_AVERAGE_GFX_ACTIVITY);
VALUE(ATTRIBUTE_MEMORY_ACTIVITY, ATTR_AVERAGE_UMC_ACTIVITY);
VALUE(ATTRIBUTE_ENERGY, ATTR_ENERGY_ACCUMULATOR);
VALUE(ATTRIBUTE_RESIDENCY_PROCHOT, ATTR_PROCHOT_RESIDENCY_ACC);
VALUE(ATTRIBUTE_RESIDENCY_POWER, ATTR_PPT_RESIDENCY_ACC);
VALUE(ATTRIBUTE_RESIDENCY_SOCKET_THERMAL, ATTR_SOCKET_THM_RESIDENCY_ACC);
VALUE(ATTRIBUTE_RESIDENCY_REGULATOR_THERMAL, ATTR_VR_THM_RESIDENCY_ACC);
VALUE(ATTRIBUTE_RESIDENCY_HBM_THERMAL, ATTR_HBM_THM_RESIDENCY_ACC);
VALUE(ATTRIBUTE_PCIE_BANDWIDTH, ATTR_PCIE_BANDWIDTH_INST);
VALUE(ATTRIBUTE_XGMI_READ, ATTR_XGMI_READ_DATA_ACC);
VALUE(ATTRIBUTE_XGMI_WRITE, ATTR_XGMI_WRITE_DATA_ACC);
VALUE(ATTRIBUTE_GFX_CLOCK, ATTR_CURRENT_GFXCLK);
VALUE(ATTRIBUTE_MEMORY_CLOCK, ATTR_CURRENT_UCLK);
#endif
#ifdef HAS_2_0
SIZE(amd_abi_v2_0, gpu_metrics_v2_0);
AT(amd_abi_v2_0, gfx_mhz, gpu_metrics_v2_0, current_gfxclk);
AT(amd_abi_v2_0, memory_mhz, gpu_metrics_v2_0, current_uclk);
#endif
#ifdef HAS_2_1
SIZE_IS(offsetof(struct amd_abi_v2_4, throttle), gpu_metrics_v2_1);
#endif
#ifdef HAS_2_2
SIZE_IS(offsetof(struct amd_abi_v2_4, average_temps), gpu_metrics_v2_2);
#endif
#ifdef HAS_2_3
SIZE_IS(offsetof(struct amd_abi_v2_4, cpu_mv), gpu_metrics_v2_3);
#endif
#ifdef HAS_2_4
SIZE(amd_abi_v2_4, gpu_metrics_v2_4);
AT(amd_abi_v2_4, temp_gfx, gpu_metrics_v2_4, temperature_gfx);
AT(amd_abi_v2_4, gfx_activity, gpu_metrics_v2_4, average_gfx_activity);
AT(amd_abi_v2_4, socket_power, gpu_metrics_v2_4, average_socket_power);
AT(amd_abi_v2_4, gfx_mhz, gpu_metrics_v2_4, current_gfxclk);
AT(amd_abi_v2_4, memory_mhz, gpu_metrics_v2_4, current_uclk);
AT(amd_abi_v2_4, throttle, gpu_metrics_v2_4, indep_throttle_status);
AT(amd_abi_v2_4, gfx_mv, gpu_metrics_v2_4, average_gfx_voltage);
#endif
#ifdef HAS_3_0
SIZE(amd_abi_v3_0, gpu_metrics_v3_0);
AT(amd_abi_v3_0, temp_gfx, gpu_metrics_v3_0, temperature_gfx);
AT(amd_abi_v3_0, gfx_activity, gpu_metrics_v3_0, average_gfx_activity);
AT(amd_abi_v3_0, socket_mw, gpu_metrics_v3_0, average_socket_power);
AT(amd_abi_v3_0, gfx_mhz, gpu_metrics_v3_0, average_gfxclk_frequency);
AT(amd_abi_v3_0, memory_mhz, gpu_metrics_v3_0, average_uclk_frequency);
AT(amd_abi_v3_0, residency_prochot, gpu_metrics_v3_0, throttle_residency_prochot);
#endif
