/* SPDX-License-Identifier: Apache-2.0 */
/* One reading of an AMD GPU's telemetry. hwmon and the plain files are preferred: their units are the same on every
 * chip. gpu_metrics fills in missing values. */
#include "base/clock.h"
#include "driver/amdgpu_table.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Reads one of the device's files. A file that the driver does not support is closed and not read again; EPERM or
 * EBUSY means that the GPU is asleep or being reset, which is temporary. */
static bool file_read(struct amd_device *device, enum amd_file file, char *text, size_t size, struct gpu_sample *sample)
{
    int *fd = &device->fds[file];
    if (*fd < 0 || sample->is_lost)
        return false;
    if (amd_file_read(*fd, text, size) > 0)
        return true;
    if (errno == ENODEV || errno == ENXIO)
        sample->is_lost = true;
    if (errno == EOPNOTSUPP || errno == ENOENT) {
        close(*fd);
        *fd = -1;
    }
    return false;
}

static bool number_read(struct amd_device *device, enum amd_file file, uint64_t *number, struct gpu_sample *sample)
{
    char text[64];
    errno = 0;
    return file_read(device, file, text, sizeof text, sample) && amd_number_parse(text, number);
}

static void take(struct amd_device *device, enum amd_file file, enum gpu_metric metric, uint64_t divisor,
                 struct gpu_sample *sample)
{
    uint64_t value;
    if (number_read(device, file, &value, sample))
        gpu_sample_set(sample, metric, value / divisor);
}

static bool is_asleep(struct amd_device *device, struct gpu_sample *sample)
{
    char text[32];
    errno = 0;
    return file_read(device, AMD_FILE_RUNTIME_STATUS, text, sizeof text, sample) && !strncmp(text, "suspended", 9);
}

/* Returns whether device->metrics is up to date. */
static bool metrics_read(struct amd_device *device, struct gpu_sample *sample)
{
    char bytes[AMD_METRICS_BYTES_MAX + 1];
    int fd = device->fds[AMD_FILE_METRICS];
    if (fd < 0 || sample->is_lost)
        return false;
    long size = amd_file_read(fd, bytes, sizeof bytes);
    if (size <= 0) {
        sample->is_lost |= size < 0 && (errno == ENODEV || errno == ENXIO);
        return false;
    }
    device->earlier = device->metrics;
    if (amd_metrics_decode(&device->metrics, bytes, (size_t)size, &device->metrics_problem) != GPUFL_OK) {
        /* Its version will not change; the other telemetry still works. */
        device->has_metrics_problem = true;
        close(fd);
        device->fds[AMD_FILE_METRICS] = -1;
        return false;
    }
    return true;
}

/* A limit whose counter changed since the last reading lowered the clocks. */
static void throttle_take(struct amd_device *device, struct gpu_sample *sample)
{
    static const struct {
        enum amd_metrics_field field;
        enum gpu_throttle reason;
    } residencies[] = {{AMD_FIELD_RESIDENCY_PROCHOT, GPU_THROTTLE_HARDWARE_THERMAL},
                       {AMD_FIELD_RESIDENCY_POWER, GPU_THROTTLE_SOFTWARE_POWER_CAP},
                       {AMD_FIELD_RESIDENCY_THERMAL, GPU_THROTTLE_SOFTWARE_THERMAL}};
    const struct amd_metrics *now = &device->metrics, *before = &device->earlier;
    uint64_t reasons = 0;
    bool is_known = amd_metrics_has(now, AMD_FIELD_THROTTLE);
    if (is_known)
        reasons = amd_throttle_reasons(now->values[AMD_FIELD_THROTTLE]);
    for (size_t i = 0; i < sizeof residencies / sizeof *residencies; i++) {
        if (!amd_metrics_has(now, residencies[i].field) || !amd_metrics_has(before, residencies[i].field))
            continue;
        is_known = true;
        if (now->values[residencies[i].field] != before->values[residencies[i].field])
            reasons |= residencies[i].reason;
    }
    if (is_known)
        gpu_sample_set(sample, GPU_THROTTLE_REASONS, reasons);
}

static void xgmi_take(struct amd_device *device, struct counter_rate *counter, enum amd_metrics_field field,
                      enum gpu_metric metric, struct gpu_sample *sample)
{
    uint64_t rate;
    if (!amd_metrics_has(&device->metrics, field))
        return;
    uint64_t value = device->metrics.values[field];
    if (value < counter->value) /* reset; this counter does not wrap */
        counter->has_value = false;
    if (counter_rate_next(counter, value, clock_mono_ns(), 0, &rate) &&
        !__builtin_mul_overflow(rate, UINT64_C(1000), &rate))
        gpu_sample_set(sample, metric, rate);
}

static void metrics_take(struct amd_device *device, struct gpu_sample *sample)
{
    static const struct {
        enum amd_metrics_field field;
        enum gpu_metric metric;
    } sources[] = {
        {AMD_FIELD_TEMP_EDGE_C, GPU_TEMP_EDGE_C},   {AMD_FIELD_TEMP_HOTSPOT_C, GPU_TEMP_JUNCTION_C},
        {AMD_FIELD_TEMP_MEM_C, GPU_TEMP_MEM_C},     {AMD_FIELD_POWER_MW, GPU_POWER_MW},
        {AMD_FIELD_GFX_ACTIVITY_PCT, GPU_UTIL_PCT}, {AMD_FIELD_MEM_ACTIVITY_PCT, GPU_MEM_UTIL_PCT},
        {AMD_FIELD_ENERGY_UJ, GPU_ENERGY_UJ},       {AMD_FIELD_GFX_MHZ, GPU_CLOCK_GFX_MHZ},
        {AMD_FIELD_MEM_MHZ, GPU_CLOCK_MEM_MHZ},     {AMD_FIELD_FAN_RPM, GPU_FAN_RPM},
        {AMD_FIELD_GFX_MV, GPU_VOLTAGE_MV},
    };
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        if (!gpu_sample_knows(sample, sources[i].metric) && amd_metrics_has(&device->metrics, sources[i].field))
            gpu_sample_set(sample, sources[i].metric, device->metrics.values[sources[i].field]);
    uint64_t bytes_per_s;
    if (amd_metrics_has(&device->metrics, AMD_FIELD_PCIE_MBPS) &&
        !__builtin_mul_overflow(device->metrics.values[AMD_FIELD_PCIE_MBPS], UINT64_C(125000), &bytes_per_s))
        gpu_sample_set(sample, GPU_PCIE_BPS, bytes_per_s);
    xgmi_take(device, &device->xgmi_read, AMD_FIELD_XGMI_READ_KB, GPU_XGMI_READ_BPS, sample);
    xgmi_take(device, &device->xgmi_write, AMD_FIELD_XGMI_WRITE_KB, GPU_XGMI_WRITE_BPS, sample);
    throttle_take(device, sample);
}

static void dpm_take(struct amd_device *device, enum amd_file file, enum gpu_metric metric, struct gpu_sample *sample)
{
    char text[2048];
    uint64_t mhz;
    errno = 0;
    if (!gpu_sample_knows(sample, metric) && file_read(device, file, text, sizeof text, sample) &&
        amd_dpm_parse(text, &mhz))
        gpu_sample_set(sample, metric, mhz);
}

static void sensors_take(struct amd_device *device, struct gpu_sample *sample)
{
    uint64_t percent, pwm;
    if (number_read(device, AMD_FILE_BUSY, &percent, sample) && percent <= 100)
        gpu_sample_set(sample, GPU_UTIL_PCT, percent);
    if (number_read(device, AMD_FILE_MEM_BUSY, &percent, sample) && percent <= 100)
        gpu_sample_set(sample, GPU_MEM_UTIL_PCT, percent);
    take(device, AMD_FILE_VRAM_USED, GPU_MEM_USED_BYTES, 1, sample);
    take(device, AMD_FILE_TEMP_EDGE, GPU_TEMP_EDGE_C, 1000, sample);
    take(device, AMD_FILE_TEMP_JUNCTION, GPU_TEMP_JUNCTION_C, 1000, sample);
    take(device, AMD_FILE_TEMP_MEM, GPU_TEMP_MEM_C, 1000, sample);
    take(device, AMD_FILE_POWER, GPU_POWER_MW, 1000, sample);
    take(device, AMD_FILE_POWER_CAP, GPU_POWER_LIMIT_MW, 1000, sample);
    take(device, AMD_FILE_FAN, GPU_FAN_RPM, 1, sample);
    take(device, AMD_FILE_VOLTAGE, GPU_VOLTAGE_MV, 1, sample);
    take(device, AMD_FILE_FREQ_GFX, GPU_CLOCK_GFX_MHZ, 1000000, sample);
    take(device, AMD_FILE_FREQ_MEM, GPU_CLOCK_MEM_MHZ, 1000000, sample);
    if (number_read(device, AMD_FILE_PWM, &pwm, sample) && device->pwm_max && pwm <= device->pwm_max)
        gpu_sample_set(sample, GPU_FAN_PCT, (pwm * 100 + device->pwm_max / 2) / device->pwm_max);
}

/* ROCm SMI is loaded only when a GPU lacks a value that it may provide. */
static struct rocm_smi *smi_of(struct amdgpu *amdgpu, struct amd_device *device)
{
    if (!amdgpu->has_tried_smi) {
        amdgpu->has_tried_smi = true;
        if (rocm_smi_open(&amdgpu->smi, NULL) != GPUFL_OK)
            amdgpu->smi = NULL;
        for (uint32_t i = 0; amdgpu->smi && i < amdgpu->device_count; i++)
            if (!amdgpu->devices[i].info.partition) /* its values are for the whole GPU */
                amdgpu->devices[i].smi_index = rocm_smi_find(amdgpu->smi, amdgpu->devices[i].info.pci_bus_id);
    }
    return device->smi_index >= 0 ? amdgpu->smi : NULL;
}

static bool has_ending(const char *name, const char *ending)
{
    size_t size = strlen(name), ending_size = strlen(ending);
    return size >= ending_size && !strcmp(name + size - ending_size, ending);
}

/* Sums over all blocks that count errors; false when none does. */
static bool ras_read(const struct amd_device *device, uint64_t *corrected, uint64_t *uncorrected)
{
    char directory[AMD_PATH_MAX + 8], path[AMD_PATH_MAX + 288], text[256];
    bool is_known = false;
    snprintf(directory, sizeof directory, "%s/ras", device->path);
    DIR *entries = opendir(directory);
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        /* Newer drivers count some blocks in aca_<block> instead. */
        if (!has_ending(entry->d_name, "_err_count") && strncmp(entry->d_name, "aca_", 4) != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        int fd = amd_file_open(path);
        if (fd < 0)
            continue;
        if (amd_file_read(fd, text, sizeof text) > 0)
            is_known |= amd_ras_parse(text, corrected, uncorrected);
        close(fd);
    }
    if (entries)
        closedir(entries);
    return is_known;
}

static void errors_take(struct amdgpu *amdgpu, struct amd_device *device, struct gpu_sample *sample)
{
    uint64_t corrected = 0, uncorrected = 0;
    bool is_known = device->has_ras && ras_read(device, &corrected, &uncorrected);
    struct rocm_smi *smi = device->has_ras ? NULL : smi_of(amdgpu, device);
    if (smi)
        is_known = rocm_smi_errors(smi, (uint32_t)device->smi_index, &corrected, &uncorrected);
    if (is_known) {
        gpu_sample_set(sample, GPU_ECC_CORRECTED, corrected);
        gpu_sample_set(sample, GPU_ECC_UNCORRECTED, uncorrected);
    }
}

static void slow_take(struct amdgpu *amdgpu, struct amd_device *device, struct gpu_sample *sample)
{
    uint64_t microjoules;
    if (access(device->path, F_OK) && errno == ENOENT) {
        sample->is_lost = true;
        return;
    }
    errors_take(amdgpu, device, sample);
    struct rocm_smi *smi = gpu_sample_knows(sample, GPU_ENERGY_UJ) ? NULL : smi_of(amdgpu, device);
    if (smi && rocm_smi_energy_uj(smi, (uint32_t)device->smi_index, &microjoules))
        gpu_sample_set(sample, GPU_ENERGY_UJ, microjoules);
}

void amdgpu_device_sample(struct amdgpu *amdgpu, uint32_t index, bool with_slow, struct gpu_sample *sample)
{
    memset(sample, 0, sizeof *sample);
    if (index >= amdgpu->device_count)
        return;
    struct amd_device *device = &amdgpu->devices[index];
    bool can_ask = !is_asleep(device, sample);
    if (can_ask) {
        sensors_take(device, sample);
        if (metrics_read(device, sample))
            metrics_take(device, sample);
        dpm_take(device, AMD_FILE_DPM_GFX, GPU_CLOCK_GFX_MHZ, sample);
        dpm_take(device, AMD_FILE_DPM_MEM, GPU_CLOCK_MEM_MHZ, sample);
    }
    if (with_slow && can_ask && !sample->is_lost)
        slow_take(amdgpu, device, sample);
    if (sample->is_lost) {
        sample->known = 0;
        return;
    }
    if (gpu_sample_knows(sample, GPU_TEMP_EDGE_C) || gpu_sample_knows(sample, GPU_TEMP_JUNCTION_C))
        gpu_sample_set(
            sample, GPU_TEMP_C,
            sample->values[gpu_sample_knows(sample, GPU_TEMP_EDGE_C) ? GPU_TEMP_EDGE_C : GPU_TEMP_JUNCTION_C]);
    if (gpu_sample_knows(sample, GPU_CLOCK_GFX_MHZ))
        gpu_sample_set(sample, GPU_CLOCK_SM_MHZ, sample->values[GPU_CLOCK_GFX_MHZ]);
    /* Constant, and also known while the GPU is asleep. */
    if (device->info.memory_total_bytes)
        gpu_sample_set(sample, GPU_MEM_TOTAL_BYTES, device->info.memory_total_bytes);
}
