/* SPDX-License-Identifier: Apache-2.0 */
/* struct amdgpu, shared by the files of this folder. Owned by amdgpu.c. */
#ifndef GPUFL_DRIVER_AMDGPU_TABLE_H
#define GPUFL_DRIVER_AMDGPU_TABLE_H

#include <stddef.h>

#include "driver/amdgpu.h"
#include "driver/amdgpu_metrics.h"
#include "driver/counter_rate.h"
#include "driver/rocm_smi.h"

enum { AMD_DEVICE_MAX = 64, AMD_PATH_MAX = 512, AMD_CLIENT_MAX = 256 };

/* The files of a GPU that are read repeatedly. */
enum amd_file {
    AMD_FILE_RUNTIME_STATUS,
    AMD_FILE_METRICS,
    AMD_FILE_BUSY,
    AMD_FILE_MEM_BUSY,
    AMD_FILE_VRAM_USED,
    AMD_FILE_TEMP_EDGE,
    AMD_FILE_TEMP_JUNCTION,
    AMD_FILE_TEMP_MEM,
    AMD_FILE_POWER,
    AMD_FILE_POWER_CAP,
    AMD_FILE_FAN,
    AMD_FILE_PWM,
    AMD_FILE_VOLTAGE,
    AMD_FILE_FREQ_GFX,
    AMD_FILE_FREQ_MEM,
    AMD_FILE_DPM_GFX,
    AMD_FILE_DPM_MEM,
    AMD_FILE_COUNT
};

struct amd_device {
    struct gpu_device_info info;
    char path[AMD_PATH_MAX]; /* .../class/drm/cardN/device */
    int fds[AMD_FILE_COUNT]; /* -1: missing */
    bool has_ras;            /* it counts errors in files; there are many and they are read rarely, so they are not
                              * kept open */
    uint64_t pwm_max;
    uint32_t kfd_gpu_id; /* 0: unknown to KFD */
    bool has_metrics_problem;
    struct problem metrics_problem;
    struct amd_metrics metrics; /* as last read */
    struct amd_metrics earlier; /* the previous reading, for residencies */
    struct counter_rate xgmi_read, xgmi_write;
    int smi_index; /* in ROCm SMI; -1: not looked up or not found */
};

/* An open file of a process on a GPU, seen in /proc. */
struct amd_client {
    uint32_t pid, fd;
};

struct amdgpu {
    char root[AMD_PATH_MAX - 256];
    char driver_version[80];
    uint32_t device_count;
    struct amd_device *devices;
    struct rocm_smi *smi;                      /* owned; NULL: not loaded */
    bool has_tried_smi;                        /* also set if it is not wanted */
    struct amd_client clients[AMD_CLIENT_MAX]; /* as of the last search */
    uint32_t client_count;
    int64_t searched_ns; /* monotonic; 0: never */
};

/* Reads from the start of an open file; -1 with errno. */
long amd_file_read(int fd, char *text, size_t size);
/* Opens a regular file for reading without blocking; -1 when there is none. */
int amd_file_open(const char *path);
/* First line of <directory>/<name>, without its end; false when there is none. */
bool amd_text_read(const char *directory, const char *name, char *text, size_t size);
bool amd_number_parse(const char *text, uint64_t *number); /* decimal or 0x; only white space may follow */
bool amd_number_read(const char *directory, const char *name, uint64_t *number);
/* The value of "key 123" in a file with such lines. */
bool amd_property_find(const char *text, const char *key, uint64_t *number);
/* The frequency in MHz of the line of pp_dpm_* that is marked as the current one. */
bool amd_dpm_parse(const char *text, uint64_t *mhz);
/* "ue: 1\nce: 2\n": adds both to the sums. */
bool amd_ras_parse(const char *text, uint64_t *corrected, uint64_t *uncorrected);

/* The product name of a GPU, from the board or from the lists that distributions install. */
void amd_name_find(const struct amdgpu *amdgpu, struct amd_device *device);
/* Compute units, gfx version and so on from KFD's topology. For each further partition of the GPU a device is added
 * after it. */
void amd_topology_take(struct amdgpu *amdgpu, struct amd_device *device);

#endif
