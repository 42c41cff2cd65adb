/* SPDX-License-Identifier: Apache-2.0 */
#include "sdk/amd_session.h"

#include "base/log.h"
#include "driver/cuda.h"

/* The number under which telemetry lists the GPU. GPUs that telemetry does not list follow all others, in
 * rocprofiler's order. */
static uint32_t device_of_agent(void *user, const struct rocprofiler_agent *agent, uint32_t ordinal)
{
    uint32_t device_id = 0;
    struct cuda *cuda;
    const struct amd_place place = {agent->pci_domain, agent->pci_bus, agent->pci_device, agent->partition};
    if (system_sampler_find_amd(user, &place, &device_id))
        return device_id;
    int count = cuda_load(&cuda, false, NULL) == GPUFL_OK ? cuda_device_count(cuda) : 0;
    return (count > (int)device_id ? (uint32_t)count : device_id) + ordinal;
}

struct amd_settings amd_settings_of(const struct options *options, struct system_sampler *sampler)
{
    bool is_traced = options->profiling_engine >= GPUFL_ENGINE_TRACE;
    return (struct amd_settings){
        .is_wanted = is_traced && (options->backend == GPUFL_BACKEND_AUTO || options->backend == GPUFL_BACKEND_AMD),
        .is_asked = is_traced && options->backend == GPUFL_BACKEND_AMD,
        .engine = options->profiling_engine,
        .with_sync = options->enable_synchronization,
        .with_memory = options->enable_memory_tracking,
        .with_source = options->enable_source_collection,
        .code_bytes_max = (uint64_t)options->code_bytes_max,
        .counters = options->range_metrics,
        .on_range = roctx_range,
        .device_of = device_of_agent,
        .device_user = sampler,
    };
}

bool amd_is_alone(const struct options *options)
{
    struct cuda *cuda;
    if (options->backend != GPUFL_BACKEND_AUTO)
        return options->backend == GPUFL_BACKEND_AMD;
    return rocprofiler_is_in_use() && cuda_load(&cuda, false, NULL) != GPUFL_OK;
}

void amd_warn(gpufl_engine engine, const struct amd_grant *grant)
{
    if (!grant->is_tried)
        return;
    if (grant->status != GPUFL_OK) {
        log_message(GPUFL_LOG_WARNING, "AMD GPUs are not traced: %s", grant->problem.text);
        return;
    }
    if (engine <= GPUFL_ENGINE_TRACE)
        return;
    bool has_counters = grant->trace.granted & ROCPROFILER_COUNTERS;
    const char *left_out = grant->trace.left_out;
    log_message(GPUFL_LOG_WARNING, "engine %s is for NVIDIA GPUs: on AMD GPUs kernels are traced and %s%s%s%s",
                engine_name(engine), has_counters ? "counted per dispatch" : "not counted: ",
                has_counters ? "" : grant->trace.counters_problem.text,
                has_counters && left_out[0] ? "; unavailable on this GPU, or in a single pass: " : "",
                has_counters ? left_out : "");
}
