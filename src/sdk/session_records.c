/* SPDX-License-Identifier: Apache-2.0 */
#include "sdk/session_records.h"

#include "base/clock.h"
#include "capture/host_metrics.h"
#include "format/json.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

void session_id_make(char out[37])
{
    unsigned char id[16];
    uint64_t now_ms = (uint64_t)clock_wall_ns() / 1000000;
    if (getrandom(id, sizeof id, GRND_NONBLOCK) != (ssize_t)sizeof id) {
        /* Early in boot there may be no entropy; time and pid still tell two sessions apart. */
        uint64_t seed[2] = {clock_ticks(), (uint64_t)getpid() << 32 ^ (uint64_t)clock_mono_ns()};
        memcpy(id, seed, sizeof id);
    }
    for (int i = 0; i < 6; i++)
        id[i] = (unsigned char)(now_ms >> (40 - 8 * i));
    id[6] = (id[6] & 0x0f) | 0x70;
    id[8] = (id[8] & 0x3f) | 0x80;
    snprintf(out, 37, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", id[0], id[1], id[2],
             id[3], id[4], id[5], id[6], id[7], id[8], id[9], id[10], id[11], id[12], id[13], id[14], id[15]);
}

/* The command line, arguments separated by spaces; for people, so its length is limited. */
static void append_command(struct bytes *line)
{
    char text[2048];
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t size = fd >= 0 ? read(fd, text, sizeof text) : -1;
    if (fd >= 0)
        close(fd);
    while (size > 0 && text[size - 1] == '\0')
        size--;
    for (ssize_t i = 0; i < size; i++)
        if (text[i] == '\0')
            text[i] = ' ';
    json_key(line, "command");
    if (size > 0)
        json_string(line, text, (size_t)size);
    else
        bytes_append_text(line, "null");
}

static void append_text(struct bytes *line, const char *key, const char *text)
{
    json_key(line, key);
    json_text(line, text);
}

static const char *wire_engine(gpufl_engine engine)
{
    static const char *const names[] = {"",
                                        "nvidia.none",
                                        "nvidia.trace",
                                        "nvidia.pc_sampling",
                                        "nvidia.sass_metrics",
                                        "nvidia.range_profiler",
                                        "nvidia.pc_sampling_with_sass"};
    return names[engine];
}

void write_job_start(struct recorder *recorder, const struct options *options, struct system_sampler *sampler,
                     const char *session_dir, int64_t now_ns)
{
    struct host_identity host;
    host_identity_read(&host);
    struct bytes *line = recorder_begin(recorder, RECORD_JOB_START);
    json_key(line, "pid");
    json_int(line, getpid());
    append_text(line, "app", options->app_name);
    append_text(line, "log_path", session_dir);
    json_key(line, "ts_ns");
    json_int(line, now_ns);
    append_text(line, "hostname", host.hostname);
    append_text(line, "ip_addr", host.ip_addr);
    system_sampler_describe(sampler, line);
    append_text(line, "session_kind", options->profiling_engine == GPUFL_ENGINE_MONITOR ? "monitor" : "trace");
    append_text(line, "profiling_engine", wire_engine(options->profiling_engine));
    append_text(line, "gpufl_version", GPUFL_VERSION_STRING);
    append_text(line, "clock", "CLOCK_REALTIME");
    append_command(line);
    const char *driver = system_sampler_driver_version(sampler);
    append_text(line, "driver_version", *driver ? driver : NULL);
    json_key(line, "cuda_driver_version");
    int cuda_version = system_sampler_cuda_version(sampler);
    if (cuda_version)
        json_int(line, cuda_version);
    else
        bytes_append_text(line, "null");
    recorder_end(recorder, RECORD_JOB_START);
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
    default:
        return "failed";
    }
}

/* The parts of the engines above Trace; what waits for the program's first context is "pending". */
static void append_deep(struct bytes *line, const struct options *options, struct deep *deep,
                        const struct trace_grant *trace)
{
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
        struct deep_grant grant = {.state = DEEP_REFUSED, .status = trace->status, .problem = trace->problem};
        if (deep)
            deep_grant(deep, parts[i].part, &grant);
        bool is_pending = parts[i].is_requested && grant.state == DEEP_WAITING;
        const struct capability capability = {parts[i].feature, parts[i].is_requested, grant.state == DEEP_RUNNING,
                                              parts[i].mode, is_pending ? "no_context_yet" : reason_code(grant.status)};
        append_capability(line, &capability, is_pending ? "waits for the program's first CUDA context" : grant.problem.text);
    }
}

void write_capabilities(struct recorder *recorder, const struct options *options, gpufl_engine selected,
                        const struct trace_grant *grant, struct deep *deep, const char *gpu_problem)
{
    bool wants_trace = options->profiling_engine >= GPUFL_ENGINE_TRACE;
    unsigned granted = selected >= GPUFL_ENGINE_TRACE ? grant->cupti.granted : 0;
    bool has_kernels = granted & CUPTI_GRANTED_KERNELS;
    const char *why = grant->status == GPUFL_OK ? "refused" : reason_code(grant->status);
    const struct capability capabilities[] = {
        {"kernel_events", wants_trace, has_kernels, "activity", why},
        {"kernel_names", wants_trace, has_kernels, "activity", why},
        {"kernel_details", wants_trace, has_kernels, "launch_config", why},
        {"memcpy_activity", wants_trace, granted & CUPTI_GRANTED_COPIES, "activity", why},
        {"sync_activity", wants_trace && options->enable_synchronization, granted & CUPTI_TRACE_SYNC, "activity", why},
        {"nvtx_markers", wants_trace, has_kernels, "scopes", why},
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
    json_int(line, clock_wall_ns());
    append_text(line, "requested_engine", engine_name(options->profiling_engine));
    append_text(line, "selected_engine", engine_name(selected));
    if (grant->cupti_version) {
        json_key(line, "cupti_version");
        json_int(line, grant->cupti_version);
    }
    bytes_append_text(line, ",\"capabilities\":[");
    for (size_t i = 0; i < sizeof capabilities / sizeof *capabilities; i++)
        append_capability(line, &capabilities[i], grant->problem.text);
    append_deep(line, options, deep, grant);
    struct capability telemetry = {"device_metrics", options->system_sample_rate_ms > 0, !*gpu_problem, "nvml",
                                   "no_driver"};
    append_capability(line, &telemetry, gpu_problem);
    bytes_append_char(line, ']');
    recorder_end(recorder, RECORD_CAPTURE_CAPABILITIES);
}

void write_shutdown(struct recorder *recorder, int64_t now_ns)
{
    struct bytes totals = {0};
    recorder_append_totals(recorder, &totals);
    struct bytes *line = recorder_begin(recorder, RECORD_SHUTDOWN);
    json_key(line, "pid");
    json_int(line, getpid());
    append_text(line, "app", recorder->app_name);
    json_key(line, "ts_ns");
    json_int(line, now_ns);
    json_key(line, "cupti_dropped");
    json_uint(line, atomic_load(&recorder->lost[LOSS_CUPTI_DROPPED]));
    bytes_append(line, totals.data, totals.size);
    bytes_free(&totals);
    recorder_end(recorder, RECORD_SHUTDOWN);
}
