/* SPDX-License-Identifier: Apache-2.0 */
#include "sdk/session_records.h"

#include "base/clock.h"
#include "capture/session_frame.h"
#include "format/json.h"
#include "sdk/amd_session.h"

#include <stdio.h>
#include <string.h>

static void append_text(struct bytes *line, const char *key, const char *text)
{
    json_key(line, key);
    json_text(line, text);
}

static const char *wire_engine(gpufl_engine engine, bool is_amd)
{
    if (is_amd)
        return engine == GPUFL_ENGINE_MONITOR ? "amd.none"
               : engine == GPUFL_ENGINE_TRACE ? "amd.trace"
                                              : "amd.dispatch_counters";
    static const char *const names[] = {"",
                                        "nvidia.none",
                                        "nvidia.trace",
                                        "nvidia.pc_sampling",
                                        "nvidia.sass_metrics",
                                        "nvidia.range_profiler",
                                        "nvidia.pc_sampling_with_sass"};
    return names[engine];
}

void write_job_start(struct recorder *recorder, const struct options *options, const struct system_sampler *sampler,
                     const struct bytes *described, const struct log_writer *writer)
{
    const struct session_frame frame = {
        .dir = log_writer_dir(writer),
        .name = log_writer_session_name(writer),
        .session_kind = options->profiling_engine == GPUFL_ENGINE_MONITOR ? "monitor" : "trace",
        .profiling_engine = wire_engine(options->profiling_engine, amd_is_alone(options)),
        .driver_version = system_sampler_driver_version(sampler),
        .cuda_driver_version = system_sampler_cuda_version(sampler),
    };
    session_frame_start(recorder, &frame, described, clock_log_ns());
}

struct capability {
    const char *feature;
    bool is_requested, is_granted;
    const char *mode, *reason_code;
};

static void append_capability(struct bytes *line, const struct capability *capability, const char *message)
{
    bool is_pending = !strcmp(capability->reason_code, "no_context_yet");
    const char *status = !capability->is_requested ? "not_requested"
                         : capability->is_granted  ? "collected"
                         : is_pending              ? "pending"
                                                   : "skipped";
    bytes_append_format(
        line,
        "%s{\"feature\":\"%s\",\"requested\":%s,\"status\":\"%s\",\"mode\":\"%s\",\"reason_code\":\"%s\",\"message\":",
        line->data[line->size - 1] == '[' ? "" : ",", capability->feature, capability->is_requested ? "true" : "false",
        status, capability->mode, capability->is_requested && !capability->is_granted ? capability->reason_code : "");
    json_text(line, capability->is_requested && !capability->is_granted ? message : "");
    bytes_append_char(line, '}');
}

static bool has_amd(const struct amd_grant *amd)
{
    return amd->is_tried && amd->status == GPUFL_OK;
}

static bool is_of_amd_only(const struct trace_grant *grant)
{
    return has_amd(&grant->amd) && !(grant->status == GPUFL_OK && grant->cupti.granted);
}

static const char *reason_code(gpufl_status status)
{
    switch (status) {
    case GPUFL_E_BUSY:
        return "another_profiler";
    case GPUFL_E_NO_DRIVER:
        return "no_driver";
    case GPUFL_E_UNSUPPORTED:
        return "unsupported";
    case GPUFL_E_PERMISSION:
        return "not_permitted";
    case GPUFL_E_NOT_FOUND:
        return "library_not_found";
    case GPUFL_E_NOT_RUNNING:
        return "program_ended";
    default:
        return "failed";
    }
}

/* What AMD's part adds to CUPTI's grant, as CUPTI's bits. */
static unsigned amd_granted(const struct amd_grant *amd)
{
    static const struct {
        unsigned amd, cupti;
    } bits[] = {{ROCPROFILER_KERNELS, CUPTI_GRANTED_KERNELS},
                {ROCPROFILER_COPIES, CUPTI_GRANTED_COPIES},
                {ROCPROFILER_CALLS, CUPTI_GRANTED_API},
                {ROCPROFILER_SYNC, CUPTI_TRACE_SYNC},
                {ROCPROFILER_MEMORY, CUPTI_TRACE_MEMORY}};
    unsigned granted = 0;
    for (size_t i = 0; has_amd(amd) && i < sizeof bits / sizeof *bits; i++)
        granted |= amd->trace.granted & bits[i].amd ? bits[i].cupti : 0;
    return granted;
}

/* Only if rocprofiler was tried: otherwise the session does not mention AMD. */
static void append_amd(struct bytes *line, const struct options *options, const struct amd_grant *amd)
{
    if (!amd->is_tried)
        return;
    const char *why = reason_code(amd->status);
    const struct capability trace = {"amd_trace", true, has_amd(amd), "rocprofiler", why};
    append_capability(line, &trace, amd->problem.text);
    bool has_counters = has_amd(amd) && (amd->trace.granted & ROCPROFILER_COUNTERS);
    const struct capability counters = {"dispatch_counters", options->profiling_engine > GPUFL_ENGINE_TRACE,
                                        has_counters, "one_pass", has_amd(amd) ? "unsupported" : why};
    append_capability(line, &counters, has_amd(amd) ? amd->trace.counters_problem.text : amd->problem.text);
    const struct capability left_out = {"dispatch_counters_left_out", has_counters && amd->trace.left_out[0], false,
                                        "one_pass", "not_available"};
    append_capability(line, &left_out, amd->trace.left_out);
}

/* The parts of the engines above Trace; those waiting for the program's first context are "pending". */
static void append_deep(struct bytes *line, const struct options *options, struct deep *deep,
                        const struct trace_grant *trace)
{
    static const struct problem nvidia_only = {"for NVIDIA GPUs only; on AMD GPUs dispatches are counted instead"};
    bool is_amd_only = is_of_amd_only(trace);
    gpufl_engine engine = options->profiling_engine;
    const struct {
        const char *feature, *mode;
        bool is_requested;
        enum deep_part part;
    } parts[] = {
        {"pc_sampling", options->pc_sampling_mode == PC_MODE_SERIALIZED ? "serialized" : "continuous",
         engine == GPUFL_ENGINE_PC_SAMPLING || engine == GPUFL_ENGINE_DEEP, DEEP_PC_SAMPLING},
        {"sass_metrics", engine == GPUFL_ENGINE_DEEP ? "alternating" : "whole_run",
         engine == GPUFL_ENGINE_SASS_METRICS || engine == GPUFL_ENGINE_DEEP, DEEP_SASS_METRICS},
        {"range_counters", options->range_mode == RANGE_MODE_SCOPE ? "scope" : "kernel",
         engine == GPUFL_ENGINE_RANGE_PROFILER, DEEP_RANGE_COUNTERS},
        {"pm_sampling", "device", options->pm_metrics[0] != '\0', DEEP_PM_SAMPLING},
        {"cubin_disassembly", "cubin", engine > GPUFL_ENGINE_TRACE, DEEP_CODE},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct deep_grant grant = {.state = DEEP_REFUSED,
                                   .status = is_amd_only ? GPUFL_E_UNSUPPORTED : trace->status,
                                   .problem = is_amd_only ? nvidia_only : trace->problem};
        if (deep)
            deep_grants_get(deep_grants(deep), parts[i].part, &grant);
        if (parts[i].part == DEEP_CODE && trace->amd.has_code)
            grant.state = DEEP_RUNNING;
        bool is_pending = parts[i].is_requested && grant.state == DEEP_WAITING;
        const struct capability capability = {parts[i].feature, parts[i].is_requested, grant.state == DEEP_RUNNING,
                                              parts[i].mode, is_pending ? "no_context_yet" : reason_code(grant.status)};
        append_capability(line, &capability,
                          is_pending ? "waits for the program's first CUDA context" : grant.problem.text);
    }
}

void write_capabilities(struct recorder *recorder, const struct options *options, gpufl_engine selected,
                        const struct trace_grant *grant, struct deep *deep, const char *gpu_problem)
{
    bool wants_trace = options->profiling_engine >= GPUFL_ENGINE_TRACE;
    bool is_amd_only = is_of_amd_only(grant);
    unsigned cupti = grant->status == GPUFL_OK ? grant->cupti.granted : 0;
    unsigned granted = selected >= GPUFL_ENGINE_TRACE ? cupti | amd_granted(&grant->amd) : 0;
    unsigned amd = grant->amd.trace.granted;
    bool has_kernels = granted & CUPTI_GRANTED_KERNELS;
    bool is_paused = has_kernels && deep && !deep_times_kernels(deep);
    const char *why = is_amd_only ? "unsupported" : grant->status == GPUFL_OK ? "refused" : reason_code(grant->status);
    const char *why_untimed = is_paused ? "paused_for_counters" : why;
    const struct capability capabilities[] = {
        {"kernel_events", wants_trace, has_kernels && !is_paused, "activity", why_untimed},
        {"kernel_names", wants_trace, has_kernels && (!is_amd_only || amd & ROCPROFILER_CODE), "activity", why},
        {"kernel_details", wants_trace, has_kernels && !is_paused, "launch_config", why_untimed},
        {"memcpy_activity", wants_trace, granted & CUPTI_GRANTED_COPIES, "activity", why},
        {"sync_activity", wants_trace && options->enable_synchronization, granted & CUPTI_TRACE_SYNC, "activity", why},
        {"nvtx_markers", wants_trace, has_kernels && (!is_amd_only || amd & ROCPROFILER_RANGES), "scopes", why},
        {"graph_activity", wants_trace && options->enable_cuda_graphs_tracking, granted & CUPTI_TRACE_GRAPHS,
         "node_records", why},
        {"memory_activity", wants_trace && options->enable_memory_tracking, granted & CUPTI_TRACE_MEMORY, "activity",
         why},
        {"external_correlation", wants_trace && options->enable_external_correlation, granted & CUPTI_TRACE_EXTERNAL,
         "activity", why},
        {"scope_attribution", wants_trace, granted & CUPTI_GRANTED_API, "api_time", why},
        {"stack_traces", wants_trace && options->enable_stack_trace, granted & CUPTI_GRANTED_CALLBACKS, "callback",
         why},
    };
    struct bytes *line = recorder_begin(recorder, RECORD_CAPTURE_CAPABILITIES);
    json_key(line, "ts_ns");
    json_int(line, clock_log_ns());
    append_text(line, "requested_engine", engine_name(options->profiling_engine));
    append_text(line, "selected_engine", engine_name(selected));
    if (grant->cupti_version) {
        json_key(line, "cupti_version");
        json_int(line, grant->cupti_version);
    }
    if (grant->amd.version) {
        json_key(line, "rocprofiler_version");
        json_int(line, grant->amd.version);
    }
    bytes_append_text(line, ",\"capabilities\":[");
    for (size_t i = 0; i < sizeof capabilities / sizeof *capabilities; i++)
        append_capability(line, &capabilities[i],
                          is_paused ? "launches are recorded, not timed: counters and kernel records exclude each other"
                          : is_amd_only               ? "rocprofiler-sdk does not offer it, or refused it"
                          : grant->status == GPUFL_OK ? "CUPTI refused this kind of record"
                                                      : grant->problem.text);
    append_deep(line, options, deep, grant);
    append_amd(line, options, &grant->amd);
    struct capability telemetry = {"device_metrics", options->system_sample_rate_ms > 0, !*gpu_problem, "driver",
                                   "no_driver"};
    append_capability(line, &telemetry, gpu_problem);
    bytes_append_char(line, ']');
    recorder_end(recorder, RECORD_CAPTURE_CAPABILITIES);
}
