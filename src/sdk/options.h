/* SPDX-License-Identifier: Apache-2.0 */
/* Options of a session, resolved: command line of `gpufl trace` > set in code > environment > remote configuration >
 * config file > default. A single table lists every option; parsing, validation and "did you mean" use it. */
#ifndef GPUFL_SDK_OPTIONS_H
#define GPUFL_SDK_OPTIONS_H

#include "base/status.h"

#include <limits.h>

struct options {
    gpufl_engine profiling_engine; /* never DEFAULT once resolved */
    gpufl_backend backend;
    char app_name[256];
    char log_path[PATH_MAX];
    char backend_url[1024];
    char api_key[256];
    char api_path[256];
    char config_file[PATH_MAX];
    bool enabled;
    bool remote_upload;
    bool enable_stack_trace;
    bool enable_source_collection;
    bool enable_external_correlation;
    bool enable_synchronization;
    bool enable_memory_tracking;
    bool enable_cuda_graphs_tracking;
    bool exclusive;
    bool continuous_system_sampling;
    bool flush_logs_always;
    bool enable_debug_output;
    int32_t system_sample_rate_ms;
    int32_t kernel_sample_rate_ms;
    int64_t max_log_bytes;  /* 0: no limit */
    int64_t min_free_bytes; /* 0: no minimum; DISK_SPACE_DEFAULT */
    /* Not part of gpufl_options; environment or config file only. */
    int64_t log_rotate_bytes;
    int64_t log_rotate_after_ms;
    int32_t start_timeout_ms, exit_timeout_ms;
    enum { PC_MODE_CONTINUOUS, PC_MODE_SERIALIZED } pc_sampling_mode;
    int32_t pc_sampling_rate_hz, pc_sampling_period, pc_sampling_drain_ms, pc_sampling_share, pc_sampling_cycle_ms;
    char sass_metrics[2048], range_metrics[4096], range_scopes[1024], pm_metrics[4096];
    enum { RANGE_MODE_AUTO, RANGE_MODE_SCOPE, RANGE_MODE_KERNEL } range_mode;
    int32_t pm_interval_us;
    int32_t deep_counting_ms, deep_sampling_ms;
    int64_t code_bytes_max;
    gpufl_log_fn log_fn;
    void *log_user;
    struct problem remote_problem; /* why the remote configuration is not used; "": it is, or there is none */
};

/* GPUFL_DISABLED, then `enabled` in code; all other options are then irrelevant. */
bool options_are_disabled(const gpufl_options *given);
/* Warns about a GPUFL_DISABLED value that is neither yes nor no, and disables. */
void options_warn_disabled(const gpufl_options *given);
/* given may be NULL. GPUFL_E_INVALID or GPUFL_E_VERSION with a message that names the option and the nearest valid one. */
NODISCARD gpufl_status options_resolve(struct options *options, const gpufl_options *given, struct problem *problem);
/* Applies one JSON object of options; file_name is for messages. */
NODISCARD gpufl_status options_apply_json(struct options *options, const char *text, size_t size, const char *file_name,
                                          struct problem *problem);
void options_set_defaults(struct options *options);
/* Warns about deprecated options and errors in the remote configuration. */
void options_warn(const struct options *options);
const char *engine_name(gpufl_engine engine);

#endif
