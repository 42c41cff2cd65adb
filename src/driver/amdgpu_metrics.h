/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the content of amdgpu's gpu_metrics file: bytes in, values out. */
#ifndef GPUFL_DRIVER_AMDGPU_METRICS_H
#define GPUFL_DRIVER_AMDGPU_METRICS_H

#include <stddef.h>

#include "base/status.h"

enum { AMD_METRICS_BYTES_MAX = 4096 }; /* a sysfs file has at most a page */

/* index into values[] and bit in known */
enum amd_metrics_field {
    AMD_FIELD_TEMP_EDGE_C,
    AMD_FIELD_TEMP_HOTSPOT_C,
    AMD_FIELD_TEMP_MEM_C,
    AMD_FIELD_POWER_MW,
    AMD_FIELD_GFX_ACTIVITY_PCT,
    AMD_FIELD_MEM_ACTIVITY_PCT,
    AMD_FIELD_ENERGY_UJ,
    AMD_FIELD_GFX_MHZ,
    AMD_FIELD_MEM_MHZ,
    AMD_FIELD_FAN_RPM,
    AMD_FIELD_GFX_MV,
    AMD_FIELD_THROTTLE,  /* the driver's mask that is common to all chips */
    AMD_FIELD_PCIE_MBPS, /* megabits per second */
    AMD_FIELD_XGMI_READ_KB,
    AMD_FIELD_XGMI_WRITE_KB,
    AMD_FIELD_RESIDENCY_PROCHOT, /* accumulated time during which a limit lowered the clocks */
    AMD_FIELD_RESIDENCY_POWER,
    AMD_FIELD_RESIDENCY_THERMAL,
    AMD_FIELD_COUNT
};

struct amd_metrics {
    uint8_t format, content; /* the table's version */
    uint32_t known;
    uint64_t values[AMD_FIELD_COUNT];
};

/* GPUFL_E_UNSUPPORTED: an unknown version, or a size that does not match the version. */
NODISCARD gpufl_status amd_metrics_decode(struct amd_metrics *metrics, const void *bytes, size_t size,
                                          struct problem *problem);
static inline bool amd_metrics_has(const struct amd_metrics *metrics, enum amd_metrics_field field)
{
    return metrics->known >> field & 1;
}
/* The driver's mask as bits of enum gpu_throttle. */
uint64_t amd_throttle_reasons(uint64_t mask);

#endif
