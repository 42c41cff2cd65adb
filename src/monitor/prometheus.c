/* SPDX-License-Identifier: Apache-2.0 */
#include "monitor/prometheus.h"

#include "format/batch.h"
#include "monitor/clock_event.h"
#include "monitor/prometheus_dcgm.h"

#include <stdio.h>
#include <sys/resource.h>

struct gpu_family {
    const char *name;
    enum exposition_kind kind;
    const char *help;
    enum gpu_metric metric;
    double scale;
    const char *label; /* an additional label and its value, or NULL */
    const char *value;
};

/* Entries with the same name must be adjacent. */
static const struct gpu_family gpu_families[] = {
    {"gpufl_gpu_utilization_ratio", EXPOSITION_GAUGE, "Share of time in which a kernel ran.", GPU_UTIL_PCT, 0.01, NULL,
     NULL},
    {"gpufl_gpu_memory_controller_utilization_ratio", EXPOSITION_GAUGE,
     "Share of time in which device memory was read or written.", GPU_MEM_UTIL_PCT, 0.01, NULL, NULL},
    {"gpufl_gpu_temperature_celsius", EXPOSITION_GAUGE, "Temperature of the sensor.", GPU_TEMP_C, 1, "sensor", "gpu"},
    {"gpufl_gpu_temperature_celsius", EXPOSITION_GAUGE, "", GPU_TEMP_MEM_C, 1, "sensor", "memory"},
    {"gpufl_gpu_temperature_celsius", EXPOSITION_GAUGE, "", GPU_TEMP_EDGE_C, 1, "sensor", "edge"},
    {"gpufl_gpu_temperature_celsius", EXPOSITION_GAUGE, "", GPU_TEMP_JUNCTION_C, 1, "sensor", "junction"},
    {"gpufl_gpu_voltage_volts", EXPOSITION_GAUGE, "Supply voltage of the graphics cores.", GPU_VOLTAGE_MV, 1e-3, NULL,
     NULL},
    {"gpufl_gpu_power_watts", EXPOSITION_GAUGE, "Power draw of the board, averaged by the driver.", GPU_POWER_MW, 1e-3,
     NULL, NULL},
    {"gpufl_gpu_power_limit_watts", EXPOSITION_GAUGE, "Enforced power limit of the board.", GPU_POWER_LIMIT_MW, 1e-3,
     NULL, NULL},
    {"gpufl_gpu_energy_joules_total", EXPOSITION_COUNTER, "Energy used since the driver was loaded.", GPU_ENERGY_UJ,
     1e-6, NULL, NULL},
    {"gpufl_gpu_memory_used_bytes", EXPOSITION_GAUGE, "Device memory in use.", GPU_MEM_USED_BYTES, 1, NULL, NULL},
    {"gpufl_gpu_memory_size_bytes", EXPOSITION_GAUGE, "Size of device memory.", GPU_MEM_TOTAL_BYTES, 1, NULL, NULL},
    {"gpufl_gpu_clock_hertz", EXPOSITION_GAUGE, "Clock rate.", GPU_CLOCK_SM_MHZ, 1e6, "clock", "sm"},
    {"gpufl_gpu_clock_hertz", EXPOSITION_GAUGE, "", GPU_CLOCK_MEM_MHZ, 1e6, "clock", "memory"},
    {"gpufl_gpu_clock_hertz", EXPOSITION_GAUGE, "", GPU_CLOCK_GFX_MHZ, 1e6, "clock", "graphics"},
    {"gpufl_gpu_fan_speed_ratio", EXPOSITION_GAUGE, "Fan speed as a share of its maximum.", GPU_FAN_PCT, 0.01, NULL,
     NULL},
    {"gpufl_gpu_fan_speed_rpm", EXPOSITION_GAUGE, "Fan speed in revolutions per minute.", GPU_FAN_RPM, 1, NULL, NULL},
    {"gpufl_gpu_performance_state", EXPOSITION_GAUGE, "Number of the P-state; 0 is the fastest.", GPU_PERF_STATE, 1,
     NULL, NULL},
    {"gpufl_gpu_pcie_bytes_per_second", EXPOSITION_GAUGE, "PCIe traffic, seen from the GPU.", GPU_PCIE_RX_BPS, 1,
     "direction", "receive"},
    {"gpufl_gpu_pcie_bytes_per_second", EXPOSITION_GAUGE, "", GPU_PCIE_TX_BPS, 1, "direction", "transmit"},
    {"gpufl_gpu_pcie_bytes_per_second", EXPOSITION_GAUGE, "", GPU_PCIE_BPS, 1, "direction", "both"},
    {"gpufl_gpu_nvlink_bytes_per_second", EXPOSITION_GAUGE, "NVLink traffic of all links, seen from the GPU.",
     GPU_NVLINK_RX_BPS, 1, "direction", "receive"},
    {"gpufl_gpu_nvlink_bytes_per_second", EXPOSITION_GAUGE, "", GPU_NVLINK_TX_BPS, 1, "direction", "transmit"},
    {"gpufl_gpu_xgmi_bytes_per_second", EXPOSITION_GAUGE, "XGMI traffic of all links.", GPU_XGMI_READ_BPS, 1,
     "direction", "read"},
    {"gpufl_gpu_xgmi_bytes_per_second", EXPOSITION_GAUGE, "", GPU_XGMI_WRITE_BPS, 1, "direction", "write"},
    {"gpufl_gpu_ecc_errors_total", EXPOSITION_COUNTER, "ECC errors since the driver was loaded.", GPU_ECC_CORRECTED, 1,
     "type", "corrected"},
    {"gpufl_gpu_ecc_errors_total", EXPOSITION_COUNTER, "", GPU_ECC_UNCORRECTED, 1, "type", "uncorrected"},
    {"gpufl_gpu_sm_active_ratio", EXPOSITION_GAUGE, "Share of time in which a warp was resident on an SM.",
     GPU_SM_ACTIVE_BP, 1e-4, NULL, NULL},
    {"gpufl_gpu_sm_occupancy_ratio", EXPOSITION_GAUGE, "Resident warps as a share of what the SMs can hold.",
     GPU_SM_OCCUPANCY_BP, 1e-4, NULL, NULL},
    {"gpufl_gpu_dram_active_ratio", EXPOSITION_GAUGE, "Device memory bandwidth used.", GPU_DRAM_ACTIVE_BP, 1e-4, NULL,
     NULL},
    {"gpufl_gpu_pipe_active_ratio", EXPOSITION_GAUGE, "Share of time in which the pipe was busy.", GPU_TENSOR_ACTIVE_BP,
     1e-4, "pipe", "tensor"},
    {"gpufl_gpu_pipe_active_ratio", EXPOSITION_GAUGE, "", GPU_FP64_ACTIVE_BP, 1e-4, "pipe", "fp64"},
    {"gpufl_gpu_pipe_active_ratio", EXPOSITION_GAUGE, "", GPU_FP32_ACTIVE_BP, 1e-4, "pipe", "fp32"},
    {"gpufl_gpu_pipe_active_ratio", EXPOSITION_GAUGE, "", GPU_FP16_ACTIVE_BP, 1e-4, "pipe", "fp16"},
};
static const struct gpu_family mig_families[] = {
    {"gpufl_mig_memory_used_bytes", EXPOSITION_GAUGE, "Device memory of the MIG instance in use.", GPU_MEM_USED_BYTES,
     1, NULL, NULL},
    {"gpufl_mig_memory_size_bytes", EXPOSITION_GAUGE, "Size of the MIG instance's device memory.", GPU_MEM_TOTAL_BYTES,
     1, NULL, NULL},
    {"gpufl_mig_sm_active_ratio", EXPOSITION_GAUGE, "SM activity of the GPU instance.", GPU_SM_ACTIVE_BP, 1e-4, NULL,
     NULL},
    {"gpufl_mig_sm_occupancy_ratio", EXPOSITION_GAUGE, "SM occupancy of the GPU instance.", GPU_SM_OCCUPANCY_BP, 1e-4,
     NULL, NULL},
    {"gpufl_mig_dram_active_ratio", EXPOSITION_GAUGE, "Memory bandwidth used by the GPU instance.", GPU_DRAM_ACTIVE_BP,
     1e-4, NULL, NULL},
    {"gpufl_mig_tensor_active_ratio", EXPOSITION_GAUGE, "Tensor pipe activity of the GPU instance.",
     GPU_TENSOR_ACTIVE_BP, 1e-4, NULL, NULL},
};

/* The labels that identify a GPU, on all its samples. */
static void gpu_labels(struct bytes *labels, const struct monitor_view *view, const struct view_gpu *gpu)
{
    char index[16];
    snprintf(index, sizeof index, "%u", gpu->info.index);
    bytes_clear(labels);
    exposition_label(labels, "gpu", index);
    exposition_label(labels, "uuid", gpu->info.uuid);
    exposition_label(labels, "name", gpu->info.name);
    exposition_label(labels, "host", view->hostname);
}

static void mig_labels(struct bytes *labels, const struct monitor_view *view, const struct view_gpu *gpu,
                       const struct gpu_mig *mig)
{
    char number[16];
    gpu_labels(labels, view, gpu);
    snprintf(number, sizeof number, "%u", mig->info.gpu_instance_id);
    exposition_label(labels, "gpu_instance", number);
    snprintf(number, sizeof number, "%u", mig->info.compute_instance_id);
    exposition_label(labels, "compute_instance", number);
    exposition_label(labels, "mig_uuid", mig->info.uuid);
    exposition_label(labels, "mig_name", mig->info.name);
}

static void value_write(struct exposition *page, struct bytes *labels, const struct gpu_family *family,
                        const struct gpu_sample *sample)
{
    if (!gpu_sample_knows(sample, family->metric))
        return;
    if (family->label)
        exposition_label(labels, family->label, family->value);
    uint64_t value = sample->values[family->metric];
    if (family->scale == 1)
        exposition_sample_uint(page, bytes_text(labels), value);
    else if (family->scale < 1) /* dividing by a power of ten is exact, multiplying by its inverse is not */
        exposition_sample(page, bytes_text(labels), (double)value / (double)(uint64_t)(1 / family->scale + 0.5));
    else
        exposition_sample(page, bytes_text(labels), (double)value * family->scale);
}

static void gpu_families_write(struct exposition *page, struct monitor_view *view, struct bytes *labels)
{
    for (size_t i = 0; i < sizeof gpu_families / sizeof *gpu_families; i++) {
        const struct gpu_family *family = &gpu_families[i];
        if (!i || strcmp(family->name, gpu_families[i - 1].name) != 0)
            exposition_family(page, family->name, family->kind, family->help);
        for (uint32_t j = 0; j < view->gpu_count; j++) {
            /* AMD has no SMs; the log has the graphics clock in this place. */
            if (family->metric == GPU_CLOCK_SM_MHZ && view->gpus[j].info.vendor == GPU_VENDOR_AMD)
                continue;
            gpu_labels(labels, view, &view->gpus[j]);
            value_write(page, labels, family, &view->gpus[j].sample);
        }
    }
    for (size_t i = 0; i < sizeof mig_families / sizeof *mig_families; i++) {
        exposition_family(page, mig_families[i].name, mig_families[i].kind, mig_families[i].help);
        for (uint32_t j = 0; j < view->gpu_count; j++)
            for (uint32_t k = 0; k < view->gpus[j].mig_count; k++) {
                mig_labels(labels, view, &view->gpus[j], &view->gpus[j].migs[k]);
                value_write(page, labels, &mig_families[i], &view->gpus[j].migs[k].sample);
            }
    }
}

static void clock_events_write(struct exposition *page, struct monitor_view *view, struct bytes *labels)
{
    exposition_family(page, "gpufl_gpu_clock_event", EXPOSITION_GAUGE,
                      "1 while the reason lowers the clocks, else 0; idle: nothing runs on the GPU.");
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        const struct gpu_sample *sample = &view->gpus[i].sample;
        for (size_t j = 0; j < CLOCK_EVENT_COUNT && gpu_sample_knows(sample, GPU_THROTTLE_REASONS); j++) {
            if (!(clock_events[j].vendors >> view->gpus[i].info.vendor & 1))
                continue;
            gpu_labels(labels, view, &view->gpus[i]);
            exposition_label(labels, "reason", clock_events[j].name);
            exposition_sample_uint(page, bytes_text(labels),
                                   (sample->values[GPU_THROTTLE_REASONS] & clock_events[j].bit) != 0);
        }
    }
}

static void identity_write(struct exposition *page, struct monitor_view *view, struct bytes *labels)
{
    exposition_family(page, "gpufl_gpu_info", EXPOSITION_GAUGE, "Always 1; the labels identify the GPU.");
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        const struct view_gpu *gpu = &view->gpus[i];
        gpu_labels(labels, view, gpu);
        exposition_label(labels, "vendor", gpu_vendor_name(gpu->info.vendor));
        exposition_label(labels, "pci_bus_id", gpu->info.pci_bus_id);
        exposition_label(labels, "architecture", gpu->info.architecture);
        exposition_label(labels, "driver_version", view->driver_versions[gpu->info.vendor]);
        exposition_label(labels, "mig", gpu->mig_count ? "true" : "false");
        exposition_sample_uint(page, bytes_text(labels), 1);
    }
    exposition_family(page, "gpufl_gpu_up", EXPOSITION_GAUGE, "1 when the GPU answered the latest sample, else 0.");
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        gpu_labels(labels, view, &view->gpus[i]);
        exposition_sample_uint(page, bytes_text(labels), view->gpus[i].is_up);
    }
    exposition_family(page, "gpufl_gpu_xid_errors_total", EXPOSITION_COUNTER,
                      "Xid errors that the driver reported since the monitor started.");
    for (uint32_t i = 0; i < view->gpu_count; i++)
        for (uint32_t j = 0; j < view->gpus[i].xid_count; j++) {
            char number[24];
            snprintf(number, sizeof number, "%llu", (unsigned long long)view->gpus[i].xids[j].number);
            gpu_labels(labels, view, &view->gpus[i]);
            exposition_label(labels, "xid", number);
            exposition_sample_uint(page, bytes_text(labels), view->gpus[i].xids[j].count);
        }
}

static void processes_write(struct exposition *page, struct monitor_view *view, struct bytes *labels)
{
    exposition_family(page, "gpufl_gpu_process_memory_used_bytes", EXPOSITION_GAUGE,
                      "Device memory that the process uses.");
    for (uint32_t i = 0; i < view->gpu_count; i++)
        for (uint32_t j = 0; j < view->gpus[i].process_count; j++) {
            const struct view_process *process = &view->gpus[i].processes[j];
            char number[16];
            if (!process->use.has_used_bytes)
                continue;
            gpu_labels(labels, view, &view->gpus[i]);
            snprintf(number, sizeof number, "%u", process->use.pid);
            exposition_label(labels, "pid", number);
            exposition_label(labels, "process", process->identity.name);
            exposition_label(labels, "container", process->identity.cgroup.container_id);
            exposition_label(labels, "pod_uid", process->identity.cgroup.pod_uid);
            snprintf(number, sizeof number, "%u", process->use.gpu_instance_id);
            exposition_label(labels, "gpu_instance", process->use.has_gpu_instance ? number : "");
            exposition_sample_uint(page, bytes_text(labels), process->use.used_bytes);
        }
}

static void cell_write(struct exposition *page, const char *name, const char *help, const char *labels, int64_t cell,
                       double scale)
{
    exposition_family(page, name, EXPOSITION_GAUGE, help);
    if (cell != CELL_UNKNOWN)
        exposition_sample(page, labels, (double)cell * scale);
}

/* A double represents the current time exactly in milliseconds, but not in nanoseconds. */
static double unix_seconds(int64_t wall_ns)
{
    int64_t wall_ms = wall_ns / 1000000;
    return (double)wall_ms / 1000;
}

static double seconds_of(const struct timeval *time)
{
    return (double)time->tv_sec + (double)time->tv_usec / 1e6;
}

static void host_write(struct exposition *page, struct monitor_view *view, struct bytes *labels)
{
    const double mib = 1048576;
    bytes_clear(labels);
    exposition_label(labels, "host", view->hostname);
    const char *host = bytes_text(labels);
    exposition_family(page, "gpufl_host_cpu_utilization_ratio", EXPOSITION_GAUGE, "Share of all CPUs that is busy.");
    if (view->host.cpu_pct_x100 != CELL_UNKNOWN)
        exposition_sample(page, host, (double)view->host.cpu_pct_x100 / 10000);
    cell_write(page, "gpufl_host_memory_used_bytes", "Memory of the host that is not available.", host,
               view->host.ram_used_mib, mib);
    cell_write(page, "gpufl_host_memory_size_bytes", "Memory of the host.", host, view->host.ram_total_mib, mib);
}

static void self_write(struct exposition *page, struct monitor_view *view, struct bytes *labels)
{
    struct rusage usage = {0};
    bytes_clear(labels);
    exposition_label(labels, "version", GPUFL_VERSION_STRING);
    exposition_family(page, "gpufl_monitor_info", EXPOSITION_GAUGE, "Always 1; the label is gpufl's version.");
    exposition_sample_uint(page, bytes_text(labels), 1);
    exposition_family(page, "gpufl_monitor_driver_up", EXPOSITION_GAUGE,
                      "1 while the drivers of all GPUs answer, else 0.");
    exposition_sample_uint(page, "", view->has_driver);
    exposition_family(page, "gpufl_monitor_driver_losses_total", EXPOSITION_COUNTER,
                      "How often a driver stopped answering.");
    exposition_sample_uint(page, "", view->driver_losses);
    exposition_family(page, "gpufl_monitor_samples_total", EXPOSITION_COUNTER, "Samples taken.");
    exposition_sample_uint(page, "", view->samples);
    exposition_family(page, "gpufl_monitor_last_sample_timestamp_seconds", EXPOSITION_GAUGE,
                      "When the latest sample was taken, in Unix time.");
    if (view->sampled_wall_ns)
        exposition_sample(page, "", unix_seconds(view->sampled_wall_ns));
    exposition_family(page, "process_cpu_seconds_total", EXPOSITION_COUNTER, "CPU time of the monitor itself.");
    if (!getrusage(RUSAGE_SELF, &usage))
        exposition_sample(page, "", seconds_of(&usage.ru_utime) + seconds_of(&usage.ru_stime));
    cell_write(page, "process_resident_memory_bytes", "Resident memory of the monitor itself, in whole MiB.", "",
               view->host.process_rss_mib, 1048576);
    exposition_family(page, "process_start_time_seconds", EXPOSITION_GAUGE,
                      "When the monitor was started, in Unix time.");
    exposition_sample(page, "", unix_seconds(view->started_wall_ns));
}

void prometheus_page(struct bytes *out, struct monitor_view *view, const struct prometheus_options *options)
{
    struct exposition page;
    struct bytes labels = {0};
    exposition_begin(&page, out, options->format);
    pthread_mutex_lock(&view->mutex);
    identity_write(&page, view, &labels);
    gpu_families_write(&page, view, &labels);
    clock_events_write(&page, view, &labels);
    processes_write(&page, view, &labels);
    host_write(&page, view, &labels);
    self_write(&page, view, &labels);
    if (options->with_dcgm_names)
        prometheus_dcgm_write(&page, view, &labels);
    pthread_mutex_unlock(&view->mutex);
    exposition_end(&page);
    bytes_free(&labels);
}
