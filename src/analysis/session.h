/* SPDX-License-Identifier: Apache-2.0 */
/* One session in memory, as columns: the input of report, export and comparison. session_load reads the log through
 * logfile/reader.h, joins kernels with scopes and launch configurations, and sorts GPU work by start time; after that
 * the model never changes and may be read from any thread. The model owns every array and string in it; session_free
 * releases them.
 *
 * Unknown is distinct from zero: TIME_UNKNOWN, ID_UNKNOWN, DEVICE_UNKNOWN, CELL_UNKNOWN, and "" or NULL for text.
 * Sessions of GPUFlight (wire v1) can be loaded too; fields that they lack stay unknown.
 *
 * Memory: a kernel takes 54 bytes, 62 if graph ids and stacks were recorded. */
#ifndef GPUFL_ANALYSIS_SESSION_H
#define GPUFL_ANALYSIS_SESSION_H

#include "analysis/kernel_kind.h"
#include "analysis/scope_kind.h"
#include "analysis/session_deep.h"
#include "base/intern.h"
#include "base/record_cost.h"
#include "base/user_time.h"
#include "logfile/reader.h"

#define TIME_UNKNOWN INT64_MIN
#define ID_UNKNOWN UINT32_MAX
#define DEVICE_UNKNOWN UINT16_MAX
/* API durations are stored in 32 bits: calls of 4.29 s and more read as 4.29 s. */
#define API_DURATION_UNKNOWN UINT32_MAX

struct kernel_columns {
    size_t count, capacity;
    int64_t *start_ns, *duration_ns;
    int64_t *api_start_ns; /* TIME_UNKNOWN */
    uint32_t *api_duration_ns;
    uint32_t *kernel_id; /* kernel_dict; 0 none */
    uint32_t *launch_id; /* model->launches[id - 1]; 0 unknown */
    uint32_t *stream_id, *thread_id, *corr_id;
    uint32_t *scope;               /* index into model->scopes, ID_UNKNOWN = outside all scopes */
    uint16_t *device;              /* device id */
    uint32_t *graph_id, *stack_id; /* NULL if no kernel has one */
    uint32_t *operation;           /* index into model->operations, 0 none; NULL: of no kernel */
};

struct launch_config {
    uint32_t kernel_id;
    uint16_t device;
    uint8_t limiter;                        /* enum limiter of the schema; 0 unknown */
    uint32_t grid[3], block[3], cluster[3]; /* grid and block of zeros: unknown */
    uint32_t num_regs, static_shared, dyn_shared, shared_executed, local_per_thread; /* ID_UNKNOWN */
    uint32_t sgprs, accum_vgprs; /* AMD, where num_regs are vector registers; ID_UNKNOWN */
    uint64_t local_total;
    uint32_t occupancy_bp, occupancy_regs_bp, occupancy_shared_bp, occupancy_warps_bp, occupancy_blocks_bp;
    uint32_t active_blocks_max; /* ID_UNKNOWN, like the five before */
};

/* The operators and library ranges that work was launched in. */
struct operation {
    const char *path;  /* outermost first, joined by | */
    const char *name;  /* the innermost operator; the innermost range of a library if there is none */
    uint8_t direction; /* enum direction; UNKNOWN in an operator: forward */
    bool is_operator;  /* at least one of them is an operator */
};

/* One entry into a scope, an operator or a range of a library. */
struct scope_instance {
    uint64_t id;
    int64_t begin_ns, end_ns; /* TIME_UNKNOWN: not recorded */
    uint32_t path_id;         /* scope_name_dict; 0 unknown */
    uint32_t parent;          /* index, ID_UNKNOWN none or unknown */
    uint32_t thread_id, tag_id, repeat, warmup;
    uint16_t depth;
    uint8_t source;           /* enum scope_source */
    bool is_attribution_only; /* v1: a path that kernels refer to, without an entry */
    bool is_shortened;        /* path_id leaves out operators around it */
    uint32_t kind;            /* enum scope_kind */
    uint32_t user;            /* the innermost scope of the program, possibly itself: index, ID_UNKNOWN none */
    uint32_t outer_user;      /* the one around it */
    uint32_t operation;       /* index into model->operations, 0 none */
};

/* A time in which a thread worked for another thread's scope. */
struct scope_adoption {
    int64_t start_ns, duration_ns;
    uint32_t thread_id, scope; /* index into model->scopes */
    uint8_t origin;            /* enum adoption_origin */
};

/* The fields that copies, memsets and graph launches share with kernels. */
struct gpu_span {
    int64_t start_ns, duration_ns;
    int64_t api_start_ns;
    uint32_t api_duration_ns, stream_id, thread_id, scope, corr_id, graph_id;
    uint32_t operation; /* index into model->operations, 0 none */
    uint16_t device;
};
struct gpu_copy {
    struct gpu_span span;
    uint64_t bytes;
    uint8_t copy_kind, src_kind, dst_kind; /* enums of the schema; memory kind 0 unknown */
    int8_t is_async;                       /* -1 unknown */
};
struct gpu_memset {
    struct gpu_span span;
    uint64_t bytes;
    uint8_t memory_kind;
};
struct graph_launch {
    struct gpu_span span;
    uint32_t node_count; /* ID_UNKNOWN */
    int64_t busy_ns;     /* TIME_UNKNOWN */
};
struct sync_wait {
    int64_t start_ns, duration_ns;
    uint32_t stream_id, event_id, context_id, corr_id, function_id, thread_id, scope;
    uint8_t sync_type;
};
struct memory_event {
    int64_t time_ns, duration_ns;
    uint64_t address, bytes;
    uint32_t scope, thread_id;
    uint16_t device;
    uint8_t memory_op, memory_kind;
};

/* Samples, one column per catalogue column; NULL if no row has a value. Column 0 (dt_ns) holds absolute wall time. */
struct metric_table {
    enum record_type type;
    size_t count, capacity;
    int64_t **columns;
};

/* Unknown: ID_UNKNOWN, for the last one CELL_UNKNOWN. */
struct device_bounds {
    uint32_t warp_size, warps_per_sm_max, blocks_per_sm_max, regs_per_sm, regs_per_block_max, shared_per_sm,
        shared_per_block_max, shared_reserved_per_block, core_clock_khz;
    int64_t memory_bandwidth_bps; /* bytes per second */
};

/* id is CUDA's; for a GPU that CUDA did not show, an id that no work has. The model's samples use it too. telemetry_id
 * is NVML's, which the log has in job_start and in samples; ID_UNKNOWN: job_start does not list the GPU. */
struct device_info {
    uint16_t id;
    uint32_t telemetry_id;
    const char *name, *uuid, *vendor;                       /* "": unknown */
    uint32_t compute_major, compute_minor, multiprocessors; /* ID_UNKNOWN */
    bool has_limits;                                        /* from device_limits: the ids of kernels */
    struct device_bounds limits;
};

struct session_loss {
    const char *reason, *record_type, *message, *cause; /* cause: the first one recorded */
    uint64_t count;
    bool has_unknown_count; /* more was lost, by an unknown amount */
    bool is_gap;            /* nothing was recorded for a time: another profiler was active in the program */
};

struct session_capability {
    const char *feature, *status, *reason_code, *message;
    bool is_requested;
};

struct session_overhead {
    bool is_known;
    int64_t wall_ns, collector_cpu_ns, sampler_cpu_ns, seal_cpu_ns, flush_ns, cupti_ns,
        memory_peak_bytes;                     /* CELL_UNKNOWN */
    int64_t user_ns[USER_TIME_COUNT];          /* on the program's threads; CELL_UNKNOWN */
    int64_t record_cost_ns[RECORD_COST_COUNT]; /* the cost of CUPTI's record of a kernel */
    bool is_default_cost;                      /* it was never measured on this host */
    struct call_state_use {
        int64_t launches, calls_ns; /* in CUDA calls; CELL_UNKNOWN */
        int64_t typical_ns;         /* in calls per launch; CELL_UNKNOWN */
    } calls[CALL_STATE_COUNT];
};

struct clock_reading_record {
    int64_t wall_ns, mono_ns, cupti_ns, wall_step_ns; /* wall_ns: of the log's clock */
    bool is_continuous;                               /* no step of the wall clock affects the session's times */
};

struct job_info {
    const char *app, *session_id, *hostname, *command, *kind;
    const char *engine; /* gpufl's engine names: Monitor, Trace, PcSampling, ... */
    const char *requested_engine;
    const char *driver_version, *cuda_version, *cupti_version, *gpufl_version;
    bool has_rocprofiler;          /* AMD GPUs were traced, or tracing them was tried */
    int64_t pid;                   /* -1 unknown */
    int64_t start_ns, shutdown_ns; /* TIME_UNKNOWN */
    int64_t exit_code, signal;     /* CELL_UNKNOWN */
    bool has_crashed;
};

struct dictionary_table {
    const char **texts; /* texts[id], NULL unknown; texts[0] is NULL */
    uint32_t count;     /* highest id + 1 */
};

struct session_model {
    struct job_info job;
    int64_t first_ns, last_ns; /* earliest and latest time in any record */
    struct kernel_columns kernels;
    struct launch_config *launches;
    struct scope_instance *scopes;
    struct gpu_copy *copies;
    struct gpu_memset *memsets;
    struct graph_launch *graphs;
    struct sync_wait *syncs;
    struct memory_event *memory_events;
    uint8_t *inferred; /* 1: the work's scope is inferred; of kernels, copies, memsets, in this order. NULL: of none */
    struct scope_adoption *adoptions;
    struct operation *operations; /* NULL: there are none; [0] stands for none */
    struct device_info *devices;
    struct session_loss *losses;
    struct session_capability *capabilities;
    struct clock_reading_record *clock_syncs;
    struct log_issue *issues; /* at most 1000 */
    size_t launch_count, scope_count, copy_count, memset_count, graph_count, sync_count, memory_event_count,
        adoption_count, operation_count, device_count, loss_count, capability_count, clock_sync_count, issue_count;
    struct metric_table device_metrics, host_metrics, process_metrics;
    struct session_deep deep;
    struct session_overhead overhead;
    struct dictionary_table dictionaries[DICTIONARY_COUNT];
    uint8_t *kernel_kinds; /* enum kernel_kind, by id of kernel_dict */
    struct log_summary summary;
    uint64_t issues_by_kind[LOG_ISSUE_UNFINISHED + 1];
    uint64_t invalid_rows;    /* impossible times or durations: skipped */
    uint64_t unresolved_rows; /* they refer to a scope that was never recorded */
    struct intern texts;      /* owns every const char * above */
};

/* path: a session directory or a directory containing one. Damage in the log is not a failure: it is counted in
 * summary, issues and issues_by_kind. */
NODISCARD gpufl_status session_load(struct session_model **out, const char *path, struct problem *problem);
/* The same from another source, such as a store. read: delivers the session's lines like log_read (job_start first,
 * then system, scope, device, sass, records of all channels once), passes line_user on, and fills the summary.
 * kernels_expected: capacity to allocate at once; the actual number may differ; 0: unknown. */
typedef gpufl_status (*session_reader_fn)(void *user, log_line_fn on_line, log_issue_fn on_issue, void *line_user,
                                          struct log_summary *summary, struct problem *problem);
NODISCARD gpufl_status session_load_from(struct session_model **out, session_reader_fn read, void *user,
                                         size_t kernels_expected, struct problem *problem);
size_t session_bytes(const struct session_model *model); /* approximate memory of the model */
void session_free(struct session_model *model);

/* Of an operation; UNKNOWN only where no framework's operator is involved. */
enum direction session_direction(const struct operation *operation);
/* NULL if the id was never defined. */
const char *session_text(const struct session_model *model, enum dictionary dictionary, uint32_t id);
enum kernel_kind session_kernel_kind(const struct session_model *model, uint32_t kernel_id); /* by its name */
const struct device_info *session_device(const struct session_model *model, uint16_t device);
/* The end is missing: the program was killed, or exited without closing its session. False for a session that is still
 * being written. */
bool session_lacks_end(const struct session_model *model);
/* Something between beginning and end was written but cannot be read. */
bool session_has_gap(const struct session_model *model);
/* Rows that the shutdown record counts but that were not read, or that were read but not counted. */
uint64_t session_missing_rows(const struct session_model *model);
/* Known lost records; *is_exact is false if a loss had no count, or if part of the log itself is missing. */
uint64_t session_lost(const struct session_model *model, bool *is_exact);
/* Those of them that are only parts of existing records: the API call, scope, stack or name of a kernel, not the
 * kernel. */
uint64_t session_lost_details(const struct session_model *model);
bool loss_is_of_detail(const struct session_loss *loss);

#endif
