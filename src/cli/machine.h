/* SPDX-License-Identifier: Apache-2.0 */
/* What `info` and `doctor` know about this machine: each vendor library, or
 * why there is none, and the GPUs that they show. Loads and initializes the
 * libraries, so only for commands. Single-threaded. */
#ifndef GPUFL_CLI_MACHINE_H
#define GPUFL_CLI_MACHINE_H

#include "driver/cuda.h"
#include "driver/cupti.h"
#include "driver/amdgpu.h"
#include "driver/nvml.h"
#include "driver/rocprofiler.h"

enum { MACHINE_GPU_MAX = 64 };

struct machine_gpu { /* unknown: 0 or "" */
    enum gpu_vendor vendor;
    char name[128], uuid[96], pci_bus_id[32], architecture[32];
    uint32_t compute_major, compute_minor;
    uint32_t multiprocessors; /* AMD: compute units */
    uint64_t memory_bytes;
    bool has_cuda; /* visible to CUDA programs started from here */
    bool is_mig;
};

struct machine {
    struct nvml *nvml;               /* owned; NULL: nvml_problem says why */
    struct amdgpu *amd;              /* owned; NULL: amd_problem says why */
    struct cuda *cuda;               /* NULL when there is no driver library */
    struct cupti *cupti;             /* NULL: cupti_problem says why */
    struct rocprofiler *rocprofiler; /* NULL: rocprofiler_problem says why; only looked for where an AMD GPU is */
    bool has_cuda;                   /* loaded and initialized; else cuda_problem says why not */
    struct problem nvml_problem, amd_problem, cuda_problem, cupti_problem, rocprofiler_problem;
    struct machine_gpu gpus[MACHINE_GPU_MAX];
    uint32_t gpu_count;
};

void machine_open(struct machine *machine);
void machine_close(struct machine *machine);
/* Has AMD's GPUs, and of NVIDIA neither a driver nor a GPU. */
bool machine_is_amd_only(const struct machine *machine);
/* reason (may be NULL): why it cannot, in a few words; NULL when it can. */
bool machine_can_monitor(const struct machine *machine, const char **reason);
bool machine_can_trace(const struct machine *machine, const char **reason);
/* The number of the CUDA version that the driver supports (13000 = 13.0); 0 unknown. */
int machine_cuda_version(const struct machine *machine);
/* Of NVIDIA's driver; "" when unknown. */
const char *machine_driver_version(const struct machine *machine);
/* The CUDA release of a CUPTI API version, as 13000 = 13.0; 0 when it is not known. */
int cuda_release_of_cupti(uint32_t api_version);

#endif
