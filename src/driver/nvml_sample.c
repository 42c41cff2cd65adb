/* SPDX-License-Identifier: Apache-2.0 */
/* One reading of a device's telemetry. */
#include "base/clock.h"
#include "driver/nvml_table.h"

#include <string.h>

void nvml_take(struct nvml_device *device, struct gpu_sample *sample, enum gpu_metric metric, int result,
               uint64_t value)
{
    switch (result) {
    case NVML_ABI_SUCCESS:
        sample->known |= 1ull << metric;
        sample->values[metric] = value;
        break;
    case NVML_ABI_NOT_SUPPORTED:
    case NVML_ABI_FUNCTION_NOT_FOUND:
    case NVML_ABI_NO_PERMISSION:
        device->unavailable |= 1ull << metric;
        break;
    case NVML_ABI_GPU_IS_LOST:
        sample->is_lost = true;
        break;
    default:
        break; /* unknown in this sample */
    }
}

static bool field_value(const struct nvml_abi_field *field, uint64_t *value)
{
    if (field->result != NVML_ABI_SUCCESS)
        return false;
    switch (field->value_type) {
    case NVML_ABI_VALUE_UINT:
        *value = field->value.as_uint;
        return true;
    case NVML_ABI_VALUE_ULONG:
        *value = field->value.as_ulong;
        return true;
    case NVML_ABI_VALUE_ULL:
        *value = field->value.as_ull;
        return true;
    case NVML_ABI_VALUE_USHORT:
        *value = field->value.as_ushort;
        return true;
    case NVML_ABI_VALUE_LL:
        *value = (uint64_t)field->value.as_ll;
        return field->value.as_ll >= 0;
    case NVML_ABI_VALUE_INT:
        *value = (uint64_t)field->value.as_int;
        return field->value.as_int >= 0;
    default:
        return false;
    }
}

/* The PCIe link's maximum in one direction; 0 when the driver does not report it. */
static uint64_t pcie_bps_max(const struct nvml *nvml, const struct nvml_device *device)
{
    static const uint64_t lane_bps[] = {0, 250000000, 500000000, 984615385, 1969230769, 3938461538, 7563025210};
    unsigned generation = 0, lanes = 0;
    if (!nvml->call.link_generation || !nvml->call.link_width ||
        nvml->call.link_generation(device->handle, &generation) != NVML_ABI_SUCCESS ||
        nvml->call.link_width(device->handle, &lanes) != NVML_ABI_SUCCESS || lanes > 32)
        return 0;
    return generation < sizeof lane_bps / sizeof lane_bps[0] ? lane_bps[generation] * lanes : 0;
}

static void take_rate(struct nvml_device *device, struct gpu_sample *sample, enum gpu_metric metric,
                      const struct nvml_abi_field *field, struct counter_rate *counter, uint64_t unit_bytes,
                      uint64_t units_per_s_max)
{
    uint64_t value, rate;
    if (field->result != NVML_ABI_SUCCESS)
        nvml_take(device, sample, metric, field->result, 0);
    else if (field_value(field, &value) && counter_rate_next(counter, value, clock_mono_ns(), units_per_s_max, &rate) &&
             !__builtin_mul_overflow(rate, unit_bytes, &rate))
        nvml_take(device, sample, metric, NVML_ABI_SUCCESS, rate);
}

static void sample_pcie(const struct nvml *nvml, struct nvml_device *device, struct gpu_sample *sample)
{
    struct nvml_abi_field fields[2] = {{.field_id = NVML_ABI_FIELD_PCIE_RX_BYTES},
                                       {.field_id = NVML_ABI_FIELD_PCIE_TX_BYTES}};
    int result = nvml->call.fields(device->handle, 2, fields);
    if (result != NVML_ABI_SUCCESS) {
        nvml_take(device, sample, GPU_PCIE_RX_BPS, result, 0);
        nvml_take(device, sample, GPU_PCIE_TX_BPS, result, 0);
        return;
    }
    uint64_t bps_max = pcie_bps_max(nvml, device);
    take_rate(device, sample, GPU_PCIE_RX_BPS, &fields[0], &device->pcie_rx, 1, bps_max);
    take_rate(device, sample, GPU_PCIE_TX_BPS, &fields[1], &device->pcie_tx, 1, bps_max);
}

/* Reads both directions from one pair of fields; false when the device does not support them. */
static bool sample_nvlink_fields(const struct nvml *nvml, struct nvml_device *device, struct gpu_sample *sample,
                                 unsigned rx_field, unsigned tx_field, uint64_t unit_bytes)
{
    struct nvml_abi_field fields[2] = {{.field_id = rx_field, .scope_id = NVML_ABI_SCOPE_ALL_LINKS},
                                       {.field_id = tx_field, .scope_id = NVML_ABI_SCOPE_ALL_LINKS}};
    if (nvml->call.fields(device->handle, 2, fields) != NVML_ABI_SUCCESS || fields[0].result != NVML_ABI_SUCCESS ||
        fields[1].result != NVML_ABI_SUCCESS)
        return false;
    take_rate(device, sample, GPU_NVLINK_RX_BPS, &fields[0], &device->nvlink_rx, unit_bytes, 0);
    take_rate(device, sample, GPU_NVLINK_TX_BPS, &fields[1], &device->nvlink_tx, unit_bytes, 0);
    return true;
}

static void sample_nvlink(const struct nvml *nvml, struct nvml_device *device, struct gpu_sample *sample)
{
    bool is_first = device->nvlink == NVLINK_UNPROBED;
    if (is_first || device->nvlink == NVLINK_DATA_FIELDS) {
        bool has_data = sample_nvlink_fields(nvml, device, sample, NVML_ABI_FIELD_NVLINK_DATA_RX,
                                             NVML_ABI_FIELD_NVLINK_DATA_TX, 1024);
        if (is_first && has_data)
            device->nvlink = NVLINK_DATA_FIELDS;
    }
    if (device->nvlink == NVLINK_UNPROBED || device->nvlink == NVLINK_BYTE_FIELDS) {
        bool has_bytes = sample_nvlink_fields(nvml, device, sample, NVML_ABI_FIELD_NVLINK_RCV_BYTES,
                                              NVML_ABI_FIELD_NVLINK_XMIT_BYTES, 1);
        if (is_first)
            device->nvlink = has_bytes ? NVLINK_BYTE_FIELDS : NVLINK_ABSENT;
    }
}

int nvml_memory_read(const struct nvml *nvml, void *handle, uint64_t *used, uint64_t *total)
{
    int result = NVML_ABI_FUNCTION_NOT_FOUND;
    if (nvml->call.memory_v2) { /* does not count memory reserved by the driver as used */
        struct nvml_abi_memory_v2 memory = {.version = NVML_ABI_VERSION(struct nvml_abi_memory_v2, 2)};
        result = nvml->call.memory_v2(handle, &memory);
        *used = memory.used;
        *total = memory.total;
    }
    if (result == NVML_ABI_FUNCTION_NOT_FOUND && nvml->call.memory) {
        struct nvml_abi_memory memory = {0};
        result = nvml->call.memory(handle, &memory);
        *used = memory.used;
        *total = memory.total;
    }
    return result;
}

static void sample_memory(const struct nvml *nvml, struct nvml_device *device, struct gpu_sample *sample)
{
    if (!nvml_wants(device, GPU_MEM_USED_BYTES))
        return;
    uint64_t used = 0, total = 0;
    int result = nvml_memory_read(nvml, device->handle, &used, &total);
    nvml_take(device, sample, GPU_MEM_USED_BYTES, result, used);
    nvml_take(device, sample, GPU_MEM_TOTAL_BYTES, result, total);
}

/* Calls a function of the table if it exists and the metric is needed. */
#define READ(function, metric, ...)                                                 \
    (!nvml_wants(device, metric) ? NVML_ABI_UNKNOWN                                 \
     : nvml->call.function       ? nvml->call.function(device->handle, __VA_ARGS__) \
                                 : NVML_ABI_FUNCTION_NOT_FOUND)

static void sample_clocks_and_health(const struct nvml *nvml, struct nvml_device *device, struct gpu_sample *sample)
{
    static const struct {
        enum gpu_metric metric;
        unsigned type;
    } clocks[] = {{GPU_CLOCK_SM_MHZ, NVML_ABI_CLOCK_SM},
                  {GPU_CLOCK_MEM_MHZ, NVML_ABI_CLOCK_MEM},
                  {GPU_CLOCK_GFX_MHZ, NVML_ABI_CLOCK_GRAPHICS}},
      errors[] = {{GPU_ECC_CORRECTED, NVML_ABI_ECC_CORRECTED}, {GPU_ECC_UNCORRECTED, NVML_ABI_ECC_UNCORRECTED}};
    unsigned value = 0;
    unsigned long long wide = 0;
    int result;
    for (int i = 0; i < 3; i++) {
        result = READ(clock, clocks[i].metric, clocks[i].type, &value);
        nvml_take(device, sample, clocks[i].metric, result, value);
    }
    for (int i = 0; i < 2; i++) {
        result = READ(ecc, errors[i].metric, errors[i].type, NVML_ABI_ECC_VOLATILE, &wide);
        nvml_take(device, sample, errors[i].metric, result, wide);
    }
    result = READ(fan, GPU_FAN_PCT, &value);
    nvml_take(device, sample, GPU_FAN_PCT, result, value);
    result = READ(perf_state, GPU_PERF_STATE, &value);
    if (result == NVML_ABI_SUCCESS && value >= NVML_ABI_PSTATE_UNKNOWN)
        result = NVML_ABI_UNKNOWN;
    nvml_take(device, sample, GPU_PERF_STATE, result, value);
    result = READ(throttle, GPU_THROTTLE_REASONS, &wide);
    nvml_take(device, sample, GPU_THROTTLE_REASONS, result, wide);
}

static void sample_load(const struct nvml *nvml, struct nvml_device *device, struct gpu_sample *sample)
{
    struct nvml_abi_utilization rates = {0};
    int result = READ(utilization, GPU_UTIL_PCT, &rates);
    nvml_take(device, sample, GPU_UTIL_PCT, result, rates.gpu);
    nvml_take(device, sample, GPU_MEM_UTIL_PCT, result, rates.memory);
    unsigned value = 0;
    result = READ(temperature, GPU_TEMP_C, NVML_ABI_TEMPERATURE_GPU, &value);
    nvml_take(device, sample, GPU_TEMP_C, result, value);
    result = READ(power, GPU_POWER_MW, &value);
    nvml_take(device, sample, GPU_POWER_MW, result, value);
    result = READ(power_limit, GPU_POWER_LIMIT_MW, &value);
    nvml_take(device, sample, GPU_POWER_LIMIT_MW, result, value);

    struct nvml_abi_field field = {.field_id = NVML_ABI_FIELD_MEMORY_TEMP};
    result = READ(fields, GPU_TEMP_MEM_C, 1, &field);
    uint64_t celsius = 0;
    if (result == NVML_ABI_SUCCESS)
        result = field.result != NVML_ABI_SUCCESS ? field.result
                 : field_value(&field, &celsius)  ? NVML_ABI_SUCCESS
                                                  : NVML_ABI_UNKNOWN;
    nvml_take(device, sample, GPU_TEMP_MEM_C, result, celsius);
}

void nvml_device_sample(struct nvml *nvml, uint32_t index, bool with_slow, struct gpu_sample *sample)
{
    memset(sample, 0, sizeof *sample);
    if (index >= nvml->device_count || !nvml->devices[index].handle)
        return;
    struct nvml_device *device = &nvml->devices[index];
    sample_load(nvml, device, sample);
    if (sample->is_lost)
        return; /* every further call would time out */
    sample_memory(nvml, device, sample);
    sample_clocks_and_health(nvml, device, sample);
    nvml_gpm_sample(nvml, &(struct nvml_gpm_source){.handle = device->handle, .gpm = &device->gpm}, sample);
    /* GPM measures the links itself, and its values do not wrap. */
    if (nvml->call.fields && !device->gpm.is_supported) {
        if (nvml_wants(device, GPU_PCIE_RX_BPS) || nvml_wants(device, GPU_PCIE_TX_BPS))
            sample_pcie(nvml, device, sample);
        sample_nvlink(nvml, device, sample);
    }
    if (with_slow) {
        unsigned long long millijoules = 0;
        int result = READ(energy, GPU_ENERGY_UJ, &millijoules);
        nvml_take(device, sample, GPU_ENERGY_UJ, result, millijoules * 1000);
    }
}
