/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/gpu_rows.h"

#include <stdio.h>

#include "format/batch.h"
#include "format/json.h"

static const struct {
    unsigned column;
    enum gpu_metric metric;
    unsigned shift; /* bytes to MiB */
} column_sources[] = {
    {DEVICE_METRIC_GPU_UTIL, GPU_UTIL_PCT, 0},
    {DEVICE_METRIC_MEM_UTIL, GPU_MEM_UTIL_PCT, 0},
    {DEVICE_METRIC_TEMP_C, GPU_TEMP_C, 0},
    {DEVICE_METRIC_POWER_MW, GPU_POWER_MW, 0},
    {DEVICE_METRIC_USED_MIB, GPU_MEM_USED_BYTES, 20},
    {DEVICE_METRIC_TOTAL_MIB, GPU_MEM_TOTAL_BYTES, 20},
    {DEVICE_METRIC_CLOCK_SM, GPU_CLOCK_SM_MHZ, 0},
    {DEVICE_METRIC_FAN_SPEED_PCT, GPU_FAN_PCT, 0},
    {DEVICE_METRIC_TEMP_MEM_C, GPU_TEMP_MEM_C, 0},
    {DEVICE_METRIC_ENERGY_UJ, GPU_ENERGY_UJ, 0},
    {DEVICE_METRIC_CLOCK_MEM, GPU_CLOCK_MEM_MHZ, 0},
    {DEVICE_METRIC_ECC_CORRECTED, GPU_ECC_CORRECTED, 0},
    {DEVICE_METRIC_ECC_UNCORRECTED, GPU_ECC_UNCORRECTED, 0},
    {DEVICE_METRIC_CLOCK_GFX, GPU_CLOCK_GFX_MHZ, 0},
    {DEVICE_METRIC_POWER_LIMIT_MW, GPU_POWER_LIMIT_MW, 0},
    {DEVICE_METRIC_THROTTLE_REASONS, GPU_THROTTLE_REASONS, 0},
    {DEVICE_METRIC_PERF_STATE, GPU_PERF_STATE, 0},
    {DEVICE_METRIC_PCIE_RX_BPS, GPU_PCIE_RX_BPS, 0},
    {DEVICE_METRIC_PCIE_TX_BPS, GPU_PCIE_TX_BPS, 0},
    {DEVICE_METRIC_NVLINK_RX_BPS, GPU_NVLINK_RX_BPS, 0},
    {DEVICE_METRIC_NVLINK_TX_BPS, GPU_NVLINK_TX_BPS, 0},
    {DEVICE_METRIC_SM_ACTIVE_BP, GPU_SM_ACTIVE_BP, 0},
    {DEVICE_METRIC_SM_OCCUPANCY_BP, GPU_SM_OCCUPANCY_BP, 0},
    {DEVICE_METRIC_TENSOR_ACTIVE_BP, GPU_TENSOR_ACTIVE_BP, 0},
    {DEVICE_METRIC_DRAM_ACTIVE_BP, GPU_DRAM_ACTIVE_BP, 0},
    {DEVICE_METRIC_FP64_ACTIVE_BP, GPU_FP64_ACTIVE_BP, 0},
    {DEVICE_METRIC_FP32_ACTIVE_BP, GPU_FP32_ACTIVE_BP, 0},
    {DEVICE_METRIC_FP16_ACTIVE_BP, GPU_FP16_ACTIVE_BP, 0},
    {DEVICE_METRIC_TEMP_JUNCTION_C, GPU_TEMP_JUNCTION_C, 0},
    {DEVICE_METRIC_VOLTAGE_MV, GPU_VOLTAGE_MV, 0},
    {DEVICE_METRIC_TEMP_EDGE_C, GPU_TEMP_EDGE_C, 0},
    {DEVICE_METRIC_FAN_RPM, GPU_FAN_RPM, 0},
    {DEVICE_METRIC_XGMI_READ_BPS, GPU_XGMI_READ_BPS, 0},
    {DEVICE_METRIC_XGMI_WRITE_BPS, GPU_XGMI_WRITE_BPS, 0},
};

static bool is_known(const struct gpu_sample *sample, enum gpu_metric metric)
{
    return sample && gpu_sample_knows(sample, metric);
}

/* As a cell; a value that does not fit the column's type is a driver error, so unknown. */
static int64_t cell_of(const struct gpu_sample *sample, enum gpu_metric metric, unsigned shift, uint64_t maximum)
{
    if (!is_known(sample, metric) || sample->values[metric] >> shift > maximum)
        return CELL_UNKNOWN;
    return (int64_t)(sample->values[metric] >> shift);
}

static int64_t sum_of(const struct gpu_sample *sample, enum gpu_metric a, enum gpu_metric b)
{
    int64_t left = cell_of(sample, a, 0, INT64_MAX), right = cell_of(sample, b, 0, INT64_MAX), sum;
    bool is_unknown = left == CELL_UNKNOWN || right == CELL_UNKNOWN || __builtin_add_overflow(left, right, &sum);
    return is_unknown ? CELL_UNKNOWN : sum;
}

void gpu_row_fill(int64_t *row, int64_t dt_ns, uint32_t device_id, const struct gpu_sample *sample)
{
    for (unsigned i = 0; i < DEVICE_METRIC_COLUMN_COUNT; i++)
        row[i] = CELL_UNKNOWN;
    row[DEVICE_METRIC_DT_NS] = dt_ns;
    row[DEVICE_METRIC_DEVICE_ID] = device_id;
    const struct column_info *columns = record_catalogue[RECORD_DEVICE_METRIC_BATCH].columns;
    for (size_t i = 0; i < sizeof column_sources / sizeof *column_sources; i++) {
        unsigned column = column_sources[i].column;
        uint64_t maximum = columns[column].type == CELL_U32 ? UINT32_MAX : INT64_MAX;
        row[column] = cell_of(sample, column_sources[i].metric, column_sources[i].shift, maximum);
    }
    row[DEVICE_METRIC_PCIE_BW_BPS] = is_known(sample, GPU_PCIE_BPS) ? cell_of(sample, GPU_PCIE_BPS, 0, INT64_MAX)
                                                                    : sum_of(sample, GPU_PCIE_RX_BPS, GPU_PCIE_TX_BPS);
}

void gpu_mig_row_fill(int64_t *row, int64_t dt_ns, uint32_t device_id, const struct gpu_mig *mig)
{
    static const struct {
        unsigned column;
        enum gpu_metric metric;
        unsigned shift;
    } sources[] = {
        {MIG_METRIC_USED_MIB, GPU_MEM_USED_BYTES, 20},          {MIG_METRIC_TOTAL_MIB, GPU_MEM_TOTAL_BYTES, 20},
        {MIG_METRIC_SM_ACTIVE_BP, GPU_SM_ACTIVE_BP, 0},         {MIG_METRIC_SM_OCCUPANCY_BP, GPU_SM_OCCUPANCY_BP, 0},
        {MIG_METRIC_TENSOR_ACTIVE_BP, GPU_TENSOR_ACTIVE_BP, 0}, {MIG_METRIC_DRAM_ACTIVE_BP, GPU_DRAM_ACTIVE_BP, 0},
    };
    row[MIG_METRIC_DT_NS] = dt_ns;
    row[MIG_METRIC_DEVICE_ID] = device_id;
    row[MIG_METRIC_GPU_INSTANCE_ID] = mig->info.gpu_instance_id;
    row[MIG_METRIC_COMPUTE_INSTANCE_ID] = mig->info.compute_instance_id;
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        row[sources[i].column] = cell_of(&mig->sample, sources[i].metric, sources[i].shift, INT64_MAX);
}

static void member_text(struct bytes *out, const char *key, const char *text)
{
    json_key(out, key);
    json_text(out, text[0] ? text : NULL);
}

static void member_cell(struct bytes *out, const char *key, int64_t cell)
{
    json_key(out, key);
    if (cell == CELL_UNKNOWN)
        json_text(out, NULL);
    else
        json_int(out, cell);
}

static void member_metric(struct bytes *out, const char *key, const struct gpu_sample *sample, enum gpu_metric metric)
{
    member_cell(out, key, cell_of(sample, metric, 0, INT64_MAX));
}

static void member_throttle(struct bytes *out, const char *key, const struct gpu_sample *sample, uint64_t mask)
{
    bool is_throttled = is_known(sample, GPU_THROTTLE_REASONS) && sample->values[GPU_THROTTLE_REASONS] & mask;
    member_cell(out, key, is_known(sample, GPU_THROTTLE_REASONS) ? is_throttled : CELL_UNKNOWN);
}

/* "00000000:1B:00.0" has bus 0x1b. */
static int64_t pci_bus_of(const char *pci_bus_id)
{
    unsigned domain, bus;
    return sscanf(pci_bus_id, "%8x:%2x:", &domain, &bus) == 2 ? (int64_t)bus : CELL_UNKNOWN;
}

static void identity_json(struct bytes *out, const struct gpu_device_info *info)
{
    json_key(out, "id");
    json_uint(out, info->index);
    member_text(out, "name", info->name);
    member_text(out, "uuid", info->uuid);
    member_text(out, "vendor", gpu_vendor_name(info->vendor));
}

void gpu_sample_json(struct bytes *out, const struct gpu_device_info *info, const struct gpu_sample *sample)
{
    int64_t used_mib = cell_of(sample, GPU_MEM_USED_BYTES, 20, INT64_MAX);
    int64_t total_mib = cell_of(sample, GPU_MEM_TOTAL_BYTES, 20, INT64_MAX);
    bool has_free = used_mib != CELL_UNKNOWN && total_mib != CELL_UNKNOWN && used_mib <= total_mib;
    bytes_append_char(out, '{');
    identity_json(out, info);
    member_cell(out, "pci_bus", pci_bus_of(info->pci_bus_id));
    member_cell(out, "used_mib", used_mib);
    member_cell(out, "free_mib", has_free ? total_mib - used_mib : CELL_UNKNOWN);
    member_cell(out, "total_mib", total_mib);
    member_metric(out, "util_gpu_pct", sample, GPU_UTIL_PCT);
    member_metric(out, "util_mem_pct", sample, GPU_MEM_UTIL_PCT);
    member_metric(out, "temp_c", sample, GPU_TEMP_C);
    member_metric(out, "power_mw", sample, GPU_POWER_MW);
    member_metric(out, "clk_gfx_mhz", sample, GPU_CLOCK_GFX_MHZ);
    member_metric(out, "clk_sm_mhz", sample, GPU_CLOCK_SM_MHZ);
    member_metric(out, "clk_mem_mhz", sample, GPU_CLOCK_MEM_MHZ);
    member_throttle(out, "throttle_pwr", sample, GPU_THROTTLE_SOFTWARE_POWER_CAP | GPU_THROTTLE_HARDWARE_POWER_BRAKE);
    member_throttle(out, "throttle_therm", sample, GPU_THROTTLE_SOFTWARE_THERMAL | GPU_THROTTLE_HARDWARE_THERMAL);
    member_metric(out, "pcie_rx_bw_bps", sample, GPU_PCIE_RX_BPS);
    member_metric(out, "pcie_tx_bw_bps", sample, GPU_PCIE_TX_BPS);
    bytes_append_char(out, '}');
}

static void member_size(struct bytes *out, const char *key, uint32_t size)
{
    member_cell(out, key, size ? (int64_t)size : CELL_UNKNOWN);
}

/* Most of these values come from CUDA for NVIDIA's GPUs, and initializing CUDA is up to the program: device_limits
 * records hold them. AMD's kernel driver provides some. */
void gpu_static_json(struct bytes *out, const struct gpu_device_info *info)
{
    bool has_compute = info->compute_major > 0;
    bytes_append_char(out, '{');
    identity_json(out, info);
    member_text(out, "architecture", info->architecture);
    member_cell(out, "compute_major", has_compute ? (int64_t)info->compute_major : CELL_UNKNOWN);
    member_cell(out, "compute_minor", has_compute ? (int64_t)info->compute_minor : CELL_UNKNOWN);
    member_cell(out, "l2_cache_size_bytes", CELL_UNKNOWN);
    member_size(out, "shared_mem_per_block_bytes", info->lds_bytes);
    member_cell(out, "regs_per_block", CELL_UNKNOWN);
    member_size(out, "multi_processor_count", info->multiprocessors);
    member_size(out, "warp_size", info->warp_size);
    bytes_append_char(out, '}');
}
