/* SPDX-License-Identifier: Apache-2.0 */
#include "monitor/prometheus_dcgm.h"

#include <stdio.h>

/* All are gauges: OpenMetrics does not allow counters with these names. */
static const struct {
    const char *name, *help;
    enum gpu_metric metric;
    uint64_t divisor;
} fields[] = {
    {"DCGM_FI_DEV_SM_CLOCK", "SM clock frequency (in MHz).", GPU_CLOCK_SM_MHZ, 1},
    {"DCGM_FI_DEV_MEM_CLOCK", "Memory clock frequency (in MHz).", GPU_CLOCK_MEM_MHZ, 1},
    {"DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C).", GPU_TEMP_C, 1},
    {"DCGM_FI_DEV_MEMORY_TEMP", "Memory temperature (in C).", GPU_TEMP_MEM_C, 1},
    {"DCGM_FI_DEV_POWER_USAGE", "Power draw (in W).", GPU_POWER_MW, 1000},
    {"DCGM_FI_DEV_POWER_MGMT_LIMIT", "Power limit (in W).", GPU_POWER_LIMIT_MW, 1000},
    {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "Energy since the driver was loaded (in mJ).", GPU_ENERGY_UJ, 1000},
    {"DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %).", GPU_UTIL_PCT, 1},
    {"DCGM_FI_DEV_MEM_COPY_UTIL", "Memory utilization (in %).", GPU_MEM_UTIL_PCT, 1},
    {"DCGM_FI_DEV_FAN_SPEED", "Fan speed (in %).", GPU_FAN_PCT, 1},
    {"DCGM_FI_DEV_PSTATE", "Performance state.", GPU_PERF_STATE, 1},
    {"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "Bit mask of clock-event reasons.", GPU_THROTTLE_REASONS, 1},
    {"DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).", GPU_MEM_USED_BYTES, 1 << 20},
    {"DCGM_FI_DEV_FB_TOTAL", "Framebuffer memory (in MiB).", GPU_MEM_TOTAL_BYTES, 1 << 20},
    {"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "Single-bit volatile ECC errors.", GPU_ECC_CORRECTED, 1},
    {"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "Double-bit volatile ECC errors.", GPU_ECC_UNCORRECTED, 1},
    {"DCGM_FI_PROF_SM_ACTIVE", "Ratio of cycles an SM has a warp assigned.", GPU_SM_ACTIVE_BP, 10000},
    {"DCGM_FI_PROF_SM_OCCUPANCY", "Ratio of warps resident on an SM.", GPU_SM_OCCUPANCY_BP, 10000},
    {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "Ratio of cycles the tensor pipe is active.", GPU_TENSOR_ACTIVE_BP, 10000},
    {"DCGM_FI_PROF_DRAM_ACTIVE", "Ratio of cycles the memory interface is active.", GPU_DRAM_ACTIVE_BP, 10000},
    {"DCGM_FI_PROF_PIPE_FP64_ACTIVE", "Ratio of cycles the fp64 pipe is active.", GPU_FP64_ACTIVE_BP, 10000},
    {"DCGM_FI_PROF_PIPE_FP32_ACTIVE", "Ratio of cycles the fp32 pipe is active.", GPU_FP32_ACTIVE_BP, 10000},
    {"DCGM_FI_PROF_PIPE_FP16_ACTIVE", "Ratio of cycles the fp16 pipe is active.", GPU_FP16_ACTIVE_BP, 10000},
    {"DCGM_FI_PROF_PCIE_TX_BYTES", "PCIe bytes sent per second.", GPU_PCIE_TX_BPS, 1},
    {"DCGM_FI_PROF_PCIE_RX_BYTES", "PCIe bytes received per second.", GPU_PCIE_RX_BPS, 1},
    {"DCGM_FI_PROF_NVLINK_TX_BYTES", "NVLink bytes sent per second.", GPU_NVLINK_TX_BPS, 1},
    {"DCGM_FI_PROF_NVLINK_RX_BYTES", "NVLink bytes received per second.", GPU_NVLINK_RX_BPS, 1},
};

/* Dashboards made for these names expect what DCGM shows: NVIDIA's GPUs only. */
static bool is_shown(const struct view_gpu *gpu)
{
    return gpu->info.vendor == GPU_VENDOR_NVIDIA;
}

static void dcgm_labels(struct bytes *labels, const struct monitor_view *view, const struct view_gpu *gpu)
{
    char text[32];
    bytes_clear(labels);
    snprintf(text, sizeof text, "%u", gpu->info.index);
    exposition_label(labels, "gpu", text);
    exposition_label(labels, "UUID", gpu->info.uuid);
    exposition_label(labels, "pci_bus_id", gpu->info.pci_bus_id);
    snprintf(text, sizeof text, "nvidia%u", gpu->info.index);
    exposition_label(labels, "device", text);
    exposition_label(labels, "modelName", gpu->info.name);
    exposition_label(labels, "Hostname", view->hostname);
}

void prometheus_dcgm_write(struct exposition *page, const struct monitor_view *view, struct bytes *labels)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        exposition_family(page, fields[i].name, EXPOSITION_GAUGE, fields[i].help);
        for (uint32_t j = 0; j < view->gpu_count; j++) {
            const struct gpu_sample *sample = &view->gpus[j].sample;
            if (!is_shown(&view->gpus[j]) || !gpu_sample_knows(sample, fields[i].metric))
                continue;
            dcgm_labels(labels, view, &view->gpus[j]);
            exposition_sample(page, bytes_text(labels),
                              (double)sample->values[fields[i].metric] / (double)fields[i].divisor);
        }
    }
    exposition_family(page, "DCGM_FI_DEV_FB_FREE", EXPOSITION_GAUGE, "Framebuffer memory free (in MiB).");
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        const struct gpu_sample *sample = &view->gpus[i].sample;
        uint64_t used = sample->values[GPU_MEM_USED_BYTES], total = sample->values[GPU_MEM_TOTAL_BYTES];
        if (!is_shown(&view->gpus[i]) || !gpu_sample_knows(sample, GPU_MEM_USED_BYTES) ||
            !gpu_sample_knows(sample, GPU_MEM_TOTAL_BYTES) || used > total)
            continue;
        dcgm_labels(labels, view, &view->gpus[i]);
        exposition_sample(page, bytes_text(labels), (double)((total - used) >> 20));
    }
    exposition_family(page, "DCGM_FI_DEV_XID_ERRORS", EXPOSITION_GAUGE, "Number of the last Xid error, 0: none.");
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        if (!is_shown(&view->gpus[i]))
            continue;
        dcgm_labels(labels, view, &view->gpus[i]);
        exposition_sample_uint(page, bytes_text(labels), view->gpus[i].xid_last);
    }
}
