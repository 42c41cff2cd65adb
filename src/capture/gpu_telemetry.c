/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/gpu_telemetry.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "format/batch.h"
#include "format/json.h"

enum { DEVICE_COUNT_MAX = 64 };

/* Bits of NVML's clocks-event mask. */
enum {
    EVENT_SOFTWARE_POWER_CAP = 0x04,
    EVENT_SOFTWARE_THERMAL = 0x20,
    EVENT_HARDWARE_THERMAL = 0x40,
    EVENT_HARDWARE_POWER_BRAKE = 0x80,
};

static const struct {
    unsigned column;
    enum nvml_metric metric;
    unsigned shift; /* bytes to MiB */
} column_sources[] = {
    {DEVICE_METRIC_GPU_UTIL, NVML_GPU_UTIL_PCT, 0},
    {DEVICE_METRIC_MEM_UTIL, NVML_MEM_UTIL_PCT, 0},
    {DEVICE_METRIC_TEMP_C, NVML_TEMP_C, 0},
    {DEVICE_METRIC_POWER_MW, NVML_POWER_MW, 0},
    {DEVICE_METRIC_USED_MIB, NVML_MEM_USED_BYTES, 20},
    {DEVICE_METRIC_TOTAL_MIB, NVML_MEM_TOTAL_BYTES, 20},
    {DEVICE_METRIC_CLOCK_SM, NVML_CLOCK_SM_MHZ, 0},
    {DEVICE_METRIC_FAN_SPEED_PCT, NVML_FAN_PCT, 0},
    {DEVICE_METRIC_TEMP_MEM_C, NVML_TEMP_MEM_C, 0},
    {DEVICE_METRIC_ENERGY_UJ, NVML_ENERGY_UJ, 0},
    {DEVICE_METRIC_CLOCK_MEM, NVML_CLOCK_MEM_MHZ, 0},
    {DEVICE_METRIC_ECC_CORRECTED, NVML_ECC_CORRECTED, 0},
    {DEVICE_METRIC_ECC_UNCORRECTED, NVML_ECC_UNCORRECTED, 0},
    {DEVICE_METRIC_CLOCK_GFX, NVML_CLOCK_GFX_MHZ, 0},
    {DEVICE_METRIC_POWER_LIMIT_MW, NVML_POWER_LIMIT_MW, 0},
    {DEVICE_METRIC_THROTTLE_REASONS, NVML_THROTTLE_REASONS, 0},
    {DEVICE_METRIC_PERF_STATE, NVML_PERF_STATE, 0},
    {DEVICE_METRIC_PCIE_RX_BPS, NVML_PCIE_RX_BPS, 0},
    {DEVICE_METRIC_PCIE_TX_BPS, NVML_PCIE_TX_BPS, 0},
    {DEVICE_METRIC_NVLINK_RX_BPS, NVML_NVLINK_RX_BPS, 0},
    {DEVICE_METRIC_NVLINK_TX_BPS, NVML_NVLINK_TX_BPS, 0},
    {DEVICE_METRIC_SM_ACTIVE_BP, NVML_SM_ACTIVE_BP, 0},
    {DEVICE_METRIC_SM_OCCUPANCY_BP, NVML_SM_OCCUPANCY_BP, 0},
    {DEVICE_METRIC_TENSOR_ACTIVE_BP, NVML_TENSOR_ACTIVE_BP, 0},
    {DEVICE_METRIC_DRAM_ACTIVE_BP, NVML_DRAM_ACTIVE_BP, 0},
    {DEVICE_METRIC_FP64_ACTIVE_BP, NVML_FP64_ACTIVE_BP, 0},
    {DEVICE_METRIC_FP32_ACTIVE_BP, NVML_FP32_ACTIVE_BP, 0},
    {DEVICE_METRIC_FP16_ACTIVE_BP, NVML_FP16_ACTIVE_BP, 0},
};

gpufl_status gpu_telemetry_open(struct gpu_telemetry *telemetry, struct problem *problem)
{
    memset(telemetry, 0, sizeof *telemetry);
    struct nvml *nvml;
    gpufl_status status = nvml_open(&nvml, problem);
    if (status != GPUFL_OK)
        return status;
    uint32_t count = nvml_device_count(nvml);
    if (!count) {
        nvml_close(nvml);
        return problem_set(problem, GPUFL_E_NO_DRIVER, "NVML works but shows no GPU; check `nvidia-smi -L`");
    }
    if (count > DEVICE_COUNT_MAX)
        count = DEVICE_COUNT_MAX;
    struct gpu_device *devices = calloc(count, sizeof *devices);
    if (!devices) {
        nvml_close(nvml);
        return problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory while listing GPUs");
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!nvml_device_describe(nvml, i, &devices[i].info))
            memset(&devices[i].info, 0, sizeof devices[i].info);
        devices[i].info.index = i;
        devices[i].process_count = -1;
    }
    *telemetry = (struct gpu_telemetry){nvml, devices, count};
    return GPUFL_OK;
}

void gpu_telemetry_close(struct gpu_telemetry *telemetry)
{
    if (telemetry->nvml)
        nvml_close(telemetry->nvml);
    gpu_telemetry_abandon(telemetry);
}

void gpu_telemetry_abandon(struct gpu_telemetry *telemetry)
{
    free(telemetry->devices);
    memset(telemetry, 0, sizeof *telemetry);
}

static void migs_list(struct gpu_telemetry *telemetry, uint32_t index)
{
    struct gpu_device *device = &telemetry->devices[index];
    struct nvml_mig_info infos[NVML_MIG_MAX];
    uint32_t count = nvml_device_mig_list(telemetry->nvml, index, infos);
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

bool gpu_telemetry_sample(struct gpu_telemetry *telemetry, uint32_t index, bool with_slow)
{
    struct gpu_device *device = &telemetry->devices[index];
    if (device->is_lost)
        return false;
    memset(&device->sample, 0, sizeof device->sample);
    device->sampled_wall_ns = clock_wall_ns();
    nvml_device_sample(telemetry->nvml, index, with_slow, &device->sample);
    device->is_lost = device->sample.is_lost;
    if (device->is_lost) {
        device->sample.known = 0;
        device->process_count = -1;
        device->mig_count = 0;
        return false;
    }
    if (with_slow) {
        migs_list(telemetry, index);
        device->process_count = nvml_device_processes(telemetry->nvml, index, device->processes, GPU_PROCESSES_MAX);
    }
    for (uint32_t i = 0; i < device->mig_count; i++)
        nvml_device_mig_sample(telemetry->nvml, index, i, &device->migs[i].sample);
    return true;
}

static bool is_known(const struct nvml_sample *sample, enum nvml_metric metric)
{
    return sample && sample->known >> metric & 1;
}

/* As a cell; what does not fit the column's type is a driver's nonsense, so unknown. */
static int64_t cell_of(const struct nvml_sample *sample, enum nvml_metric metric, unsigned shift, uint64_t maximum)
{
    if (!is_known(sample, metric) || sample->values[metric] >> shift > maximum)
        return CELL_UNKNOWN;
    return (int64_t)(sample->values[metric] >> shift);
}

static int64_t sum_of(const struct nvml_sample *sample, enum nvml_metric a, enum nvml_metric b)
{
    int64_t left = cell_of(sample, a, 0, INT64_MAX), right = cell_of(sample, b, 0, INT64_MAX), sum;
    bool is_unknown = left == CELL_UNKNOWN || right == CELL_UNKNOWN || __builtin_add_overflow(left, right, &sum);
    return is_unknown ? CELL_UNKNOWN : sum;
}

void gpu_row_fill(int64_t *row, int64_t dt_ns, uint32_t device_id, const struct nvml_sample *sample)
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
    row[DEVICE_METRIC_PCIE_BW_BPS] = sum_of(sample, NVML_PCIE_RX_BPS, NVML_PCIE_TX_BPS);
}

void gpu_mig_row_fill(int64_t *row, int64_t dt_ns, uint32_t device_id, const struct gpu_mig *mig)
{
    static const struct {
        unsigned column;
        enum nvml_metric metric;
        unsigned shift;
    } sources[] = {
        {MIG_METRIC_USED_MIB, NVML_MEM_USED_BYTES, 20},          {MIG_METRIC_TOTAL_MIB, NVML_MEM_TOTAL_BYTES, 20},
        {MIG_METRIC_SM_ACTIVE_BP, NVML_SM_ACTIVE_BP, 0},         {MIG_METRIC_SM_OCCUPANCY_BP, NVML_SM_OCCUPANCY_BP, 0},
        {MIG_METRIC_TENSOR_ACTIVE_BP, NVML_TENSOR_ACTIVE_BP, 0}, {MIG_METRIC_DRAM_ACTIVE_BP, NVML_DRAM_ACTIVE_BP, 0},
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

static void member_metric(struct bytes *out, const char *key, const struct nvml_sample *sample, enum nvml_metric metric)
{
    member_cell(out, key, cell_of(sample, metric, 0, INT64_MAX));
}

static void member_throttle(struct bytes *out, const char *key, const struct nvml_sample *sample, uint64_t mask)
{
    bool is_throttled = is_known(sample, NVML_THROTTLE_REASONS) && sample->values[NVML_THROTTLE_REASONS] & mask;
    member_cell(out, key, is_known(sample, NVML_THROTTLE_REASONS) ? is_throttled : CELL_UNKNOWN);
}

/* "00000000:1B:00.0" has bus 0x1b. */
static int64_t pci_bus_of(const char *pci_bus_id)
{
    unsigned domain, bus;
    return sscanf(pci_bus_id, "%8x:%2x:", &domain, &bus) == 2 ? (int64_t)bus : CELL_UNKNOWN;
}

static void identity_json(struct bytes *out, const struct nvml_device_info *info)
{
    json_key(out, "id");
    json_uint(out, info->index);
    member_text(out, "name", info->name);
    member_text(out, "uuid", info->uuid);
    member_text(out, "vendor", "NVIDIA");
}

void gpu_sample_json(struct bytes *out, const struct nvml_device_info *info, const struct nvml_sample *sample)
{
    int64_t used_mib = cell_of(sample, NVML_MEM_USED_BYTES, 20, INT64_MAX);
    int64_t total_mib = cell_of(sample, NVML_MEM_TOTAL_BYTES, 20, INT64_MAX);
    bool has_free = used_mib != CELL_UNKNOWN && total_mib != CELL_UNKNOWN && used_mib <= total_mib;
    bytes_append_char(out, '{');
    identity_json(out, info);
    member_cell(out, "pci_bus", pci_bus_of(info->pci_bus_id));
    member_cell(out, "used_mib", used_mib);
    member_cell(out, "free_mib", has_free ? total_mib - used_mib : CELL_UNKNOWN);
    member_cell(out, "total_mib", total_mib);
    member_metric(out, "util_gpu_pct", sample, NVML_GPU_UTIL_PCT);
    member_metric(out, "util_mem_pct", sample, NVML_MEM_UTIL_PCT);
    member_metric(out, "temp_c", sample, NVML_TEMP_C);
    member_metric(out, "power_mw", sample, NVML_POWER_MW);
    member_metric(out, "clk_gfx_mhz", sample, NVML_CLOCK_GFX_MHZ);
    member_metric(out, "clk_sm_mhz", sample, NVML_CLOCK_SM_MHZ);
    member_metric(out, "clk_mem_mhz", sample, NVML_CLOCK_MEM_MHZ);
    member_throttle(out, "throttle_pwr", sample, EVENT_SOFTWARE_POWER_CAP | EVENT_HARDWARE_POWER_BRAKE);
    member_throttle(out, "throttle_therm", sample, EVENT_SOFTWARE_THERMAL | EVENT_HARDWARE_THERMAL);
    member_metric(out, "pcie_rx_bw_bps", sample, NVML_PCIE_RX_BPS);
    member_metric(out, "pcie_tx_bw_bps", sample, NVML_PCIE_TX_BPS);
    bytes_append_char(out, '}');
}

void gpu_static_json(struct bytes *out, const struct nvml_device_info *info)
{
    /* These are CUDA's to tell, and CUDA is the program's to initialize: device_limits records hold them. */
    static const char *const cuda_members[] = {"l2_cache_size_bytes", "shared_mem_per_block_bytes", "regs_per_block",
                                               "multi_processor_count", "warp_size"};
    bool has_compute = info->compute_major > 0;
    bytes_append_char(out, '{');
    identity_json(out, info);
    member_text(out, "architecture", info->architecture);
    member_cell(out, "compute_major", has_compute ? (int64_t)info->compute_major : CELL_UNKNOWN);
    member_cell(out, "compute_minor", has_compute ? (int64_t)info->compute_minor : CELL_UNKNOWN);
    for (size_t i = 0; i < sizeof cuda_members / sizeof *cuda_members; i++)
        member_cell(out, cuda_members[i], CELL_UNKNOWN);
    bytes_append_char(out, '}');
}
