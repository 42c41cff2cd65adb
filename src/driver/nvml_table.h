/* SPDX-License-Identifier: Apache-2.0 */
/* struct nvml, shared by the files of this folder. Owned by nvml.c. */
#ifndef GPUFL_DRIVER_NVML_TABLE_H
#define GPUFL_DRIVER_NVML_TABLE_H

#include "driver/counter_rate.h"
#include "driver/library.h"
#include "driver/nvml.h"
#include "driver/nvml_abi.h"

struct nvml_table { /* NULL where the library lacks a function */
#define NVML_MEMBER(member, symbol, parameters) int(*member) parameters;
    NVML_ABI_FUNCTIONS(NVML_MEMBER)
#undef NVML_MEMBER
    nvml_abi_error_string_fn *error_string;
};

/* The source of a device's NVLink bytes; determined once. */
enum nvlink_source { NVLINK_UNPROBED, NVLINK_DATA_FIELDS, NVLINK_BYTE_FIELDS, NVLINK_ABSENT };

struct nvml_gpm { /* hardware counters over the time between two samples */
    void *older, *newer;
    int64_t older_ns;
    struct gpu_sample last; /* of the latest such period */
    bool is_probed, is_supported, has_older;
};

struct nvml_mig {
    void *handle;
    uint32_t gpu_instance_id;
    struct nvml_gpm gpm;
};

struct nvml_device {
    void *handle;         /* NULL: could not be opened */
    uint64_t unavailable; /* bit per metric that the driver does not support */
    struct counter_rate pcie_rx, pcie_tx, nvlink_rx, nvlink_tx;
    enum nvlink_source nvlink;
    struct nvml_gpm gpm;
    struct nvml_mig migs[GPU_MIG_MAX]; /* as of the last list */
    uint32_t mig_count;
};

struct nvml {
    struct nvml_table call;
    struct library library;
    char driver_version[80];
    int cuda_version;
    uint32_t device_count;
    struct nvml_device *devices;
    struct nvml_abi_process *processes; /* grows to the size that the driver needs */
    unsigned process_capacity;
    struct nvml_abi_gpm_metrics gpm_metrics; /* too large for the stack */
    void *event_set;                         /* NULL: nobody listens */
};

/* Stores a result in the sample: the value if the call succeeded; a metric that is not supported is not queried
 * again. */
void nvml_take(struct nvml_device *device, struct gpu_sample *sample, enum gpu_metric metric, int result,
               uint64_t value);
static inline bool nvml_wants(const struct nvml_device *device, enum gpu_metric metric)
{
    return !(device->unavailable >> metric & 1);
}

/* What GPM can measure: a whole GPU, or a GPU instance. */
struct nvml_gpm_source {
    void *handle; /* of the GPU */
    struct nvml_gpm *gpm;
    bool is_instance;
    uint32_t gpu_instance_id;
};
/* GPM metrics, if two samples are far enough apart; also PCIe and NVLink rates, which are exact here. */
void nvml_gpm_sample(struct nvml *nvml, const struct nvml_gpm_source *source, struct gpu_sample *sample);
void nvml_gpm_release(const struct nvml *nvml, struct nvml_gpm *gpm);
/* Used and total memory of a GPU or MIG instance. */
int nvml_memory_read(const struct nvml *nvml, void *handle, uint64_t *used, uint64_t *total);
/* Reads one text of a device or MIG instance; "" when it cannot be read. */
void nvml_text_read(int (*read)(void *, char *, unsigned), void *handle, char *text, size_t size);
void nvml_mig_release(const struct nvml *nvml, struct nvml_device *device);
void nvml_events_release(struct nvml *nvml);

#endif
