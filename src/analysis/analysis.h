/* SPDX-License-Identifier: Apache-2.0 */
/* Results computed from a session model: what the report prints and the JSON contains. Made once by analysis_make, then
 * read-only; borrows the model's strings, so the model must outlive it. */
#ifndef GPUFL_ANALYSIS_ANALYSIS_H
#define GPUFL_ANALYSIS_ANALYSIS_H

#include "analysis/deep_use.h"
#include "analysis/hot_code.h"
#include "analysis/scope_kernels.h"
#include "analysis/scope_tags.h"
#include "analysis/slowdown.h"
#include "analysis/statistics.h"
#include "analysis/steps.h"

/* Where one GPU's wall time went. The parts add up to the session's wall time:
 *   busy          some kernel, memset or copy ran = kernel + memsets_only + copies_only
 *   kernel          a kernel ran
 *   memsets_only    a memset ran and no kernel
 *   compute         the sum of both: a kernel or memset ran
 *   copies_only     a copy ran and no kernel or memset
 *   and idle gaps, split by the GPU work that ended the gap:
 *   wait_launch   from the start of that work's API call on, while the call began inside the gap, or until it
 *                 returned when it had begun before. Where the call began no later than LAUNCH_LATE_NS after
 *                 the GPU ran dry, the time before it counts here too: the program was launching, but slower
 *                 than the GPU took the work.
 *   wait_sync     before that call, while the program sat in a synchronizing call
 *   queued        the call had returned before: the work was in the GPU's queues (dependencies, scheduling)
 *   no_work       before that call otherwise, and after the last work: nothing had been asked of the GPU
 *   unknown       the API call of that work was not recorded, or kernel tracing was paused for counters: then the GPU
 *                 may have been busy */
#define LAUNCH_LATE_NS 100000
enum { TIME_BINS = 100 };
/* Kernels by what their GPU did before. */
struct kernel_starts {
    uint64_t awaited;     /* the GPU was idle when the launching call returned */
    uint64_t queued;      /* the GPU had other work until the kernel started */
    uint64_t graph_nodes; /* of the same launch as the previous kernel */
    double cold;          /* of the awaited ones, weighted by how cold (launch_heat.h) */
};
struct time_use {
    uint16_t device;
    struct kernel_starts starts; /* of the whole session, not of bins */
    int64_t busy_ns, kernel_ns, memsets_only_ns, compute_ns, copies_only_ns;
    int64_t wait_launch_ns, wait_sync_ns, queued_ns, no_work_ns, unknown_ns;
};

/* Series of more than LAUNCH_RUN_MIN kernels, each shorter than LAUNCH_SHORT_NS, without a longer kernel or a pause of
 * the program in between: a CUDA graph can replace them. GPUs wait in parallel, so these are the series of the GPU that
 * waited longest. */
enum { LAUNCH_RUN_MIN = 50, LAUNCH_SHORT_NS = 8000 };
struct launch_bound {
    uint16_t device;
    uint64_t run_count, kernel_count;
    int64_t wait_ns;       /* time spent waiting for launches inside the series */
    int64_t *wait_by_path; /* [dictionary count]; the same by scope path, 0 = no scope */
};

struct hotspot {
    uint32_t kernel_id;
    const char *name; /* NULL: the name was not recorded */
    struct distribution duration;
    double share;                       /* of all kernel time, 0..1 */
    const struct launch_config *launch; /* the one with the most time, NULL unknown */
    uint32_t launch_variants;
};

/* All kernels of a kind. */
struct kind_total {
    enum kernel_kind kind;
    uint64_t count, kernels; /* executions; different kernels */
    int64_t total_ns;
};

/* One path of the scope tree. self: in this scope but in none of its children. */
struct scope_node {
    const char *name;                                             /* last part of the path; not NUL-terminated */
    uint32_t name_size, parent, first_child, next_sibling, depth; /* ID_UNKNOWN = none */
    uint32_t path_id;                                             /* 0: only an inner part of other paths */
    uint64_t calls, open_calls;
    int64_t wall_ns;
    int64_t gpu_self_ns, gpu_ns, sync_self_ns, sync_ns, launch_wait_ns;
    int64_t gpu_inferred_ns; /* of gpu_ns: launched by threads without scopes while this one waited */
    uint64_t kernels_self, kernels, untimed_self, untimed; /* untimed: launched but not timed */
    uint64_t repeat;                                       /* iterations in all benchmark calls; 0 = not a benchmark */
    uint32_t warmup;
    int64_t repeat_wall_ns;
    uint32_t tag_id;
};

/* All kernels that were launched in operators of one name. */
struct operator_total {
    const char *name;
    uint64_t count;
    int64_t total_ns, by_direction_ns[DIRECTION_COUNT]; /* enum direction; the parts add up to the total */
};

struct copy_group {
    uint8_t copy_kind, memory_kind; /* of the host side; 0 unknown or not a host copy */
    uint64_t calls, bytes;
    int64_t total_ns;
};
/* Memory kind of the host side, because pinning decides the throughput; the device side adds no information. 0 unknown
 * or not a host copy. transfers.c */
uint8_t copy_host_memory(const struct gpu_copy *copy);
struct memset_total {
    uint64_t calls, bytes;
    int64_t total_ns;
};
struct sync_group {
    uint8_t sync_type;
    uint64_t calls;
    int64_t total_ns, max_ns;
};
struct sync_place {
    uint32_t function_id; /* function_dict */
    uint64_t calls;
    int64_t total_ns;
};
struct memory_group {
    uint8_t memory_kind;
    uint64_t allocs, frees, unmatched_frees, allocated_bytes, peak_bytes, held_bytes, held_count;
};
enum { MEMORY_KIND_COUNT = 8 };
/* Observes allocations and releases in order: the amount held after each, then every block that was never freed. */
struct memory_observer {
    void (*changed)(void *user, const struct memory_event *event, const struct memory_group groups[MEMORY_KIND_COUNT]);
    void (*kept)(void *user, const struct memory_event *event, uint64_t bytes);
    void *user;
};
/* memory_use.c; observer: may be NULL. */
NODISCARD gpufl_status memory_walk(const struct session_model *model, struct memory_group groups[MEMORY_KIND_COUNT],
                                   const struct memory_observer *observer);
struct graph_group {
    uint32_t graph_id;
    uint64_t launches;
    uint32_t node_count;       /* of the last launch; ID_UNKNOWN */
    int64_t total_ns, busy_ns; /* busy: TIME_UNKNOWN */
};

struct metric_summary {
    uint64_t count; /* 0: not recorded */
    double mean;
    int64_t min, max, first, last;
};
enum { throttle_bits = 10 };
struct device_use {
    int64_t device; /* NVML index */
    uint64_t samples;
    struct metric_summary metrics[DEVICE_METRIC_COLUMN_COUNT];
    uint64_t throttle_samples[throttle_bits];
};
struct process_use { /* GPU memory of one process on one GPU */
    int64_t device, pid;
    struct metric_summary used_mib;
};
struct throttle_reason {
    const char *name, *words;
    bool is_limit; /* clocks below those requested */
};
extern const struct throttle_reason throttle_reasons[throttle_bits];

enum insight_severity { INSIGHT_HIGH, INSIGHT_MEDIUM, INSIGHT_LOW };
struct insight {
    const char *rule; /* stable name */
    enum insight_severity severity;
    int64_t impact_ns; /* time concerned; determines the order of the list */
    char *text;        /* owned; untrusted names in it are escaped */
    uint32_t number;   /* in the order in which the rules found them */
};

/* The cost of profiling, as fractions of the wall time; negative: not recorded. */
struct profiling_cost {
    double cupti, gpufl;
};

struct analysis {
    const struct session_model *model;
    int64_t start_ns, end_ns, wall_ns; /* TIME_UNKNOWN, TIME_UNKNOWN, 0: no record has a time */
    bool has_kernel_engine;            /* the engine that ran records GPU work */
    struct time_use *devices;
    size_t device_count;
    bool has_pauses;            /* kernel tracing was off for some of the time, for counters */
    struct time_use *time_bins; /* [device_count * TIME_BINS]: the same over time, time_bin_ns each from start_ns on */
    int64_t time_bin_ns;
    struct launch_bound launch_bound;
    struct slowdown slowdown;
    struct hotspot *hotspots; /* longest time first */
    size_t hotspot_count;
    struct kind_total kinds[KERNEL_KIND_COUNT]; /* those that ran, longest time first */
    size_t kind_count;
    int64_t kernel_ns;         /* sum of durations; more than the GPUs' compute time where kernels overlap */
    struct scope_node *scopes; /* [0] is the root: everything; its self = outside all scopes */
    size_t scope_count;
    struct scope_kernels scope_kernels;
    struct scope_tags scope_tags;
    struct steps steps;
    struct operator_total *operators; /* most time first */
    size_t operator_count;
    uint64_t kernels_without_operator; /* of a session that has operators */
    int64_t without_operator_ns;
    struct copy_group *copies;
    size_t copy_group_count;
    struct memset_total memsets;
    struct sync_group syncs[5];     /* by type; [0] = other */
    int64_t host_wait_ns;           /* types that block the host */
    struct sync_place *sync_places; /* longest time first */
    size_t sync_place_count;
    struct memory_group memory[MEMORY_KIND_COUNT];
    struct graph_group *graphs;
    size_t graph_group_count;
    struct device_use *system;
    size_t system_count;
    struct process_use *processes; /* most memory first */
    size_t process_count;
    struct metric_summary host[HOST_METRIC_COLUMN_COUNT];
    struct stalls stalls; /* results of the deep engines; empty if they did not run */
    struct hot_code code;
    struct deep_use deep;
    bool has_deep; /* a deep engine recorded something */
    struct profiling_cost cost;
    struct insight *insights;
    size_t insight_count;
};

/* Reads code from the log for lines and instructions; runs no external tools. */
NODISCARD gpufl_status analysis_make(struct analysis *analysis, const struct session_model *model);
NODISCARD gpufl_status analysis_make_with(struct analysis *analysis, const struct session_model *model,
                                          enum code_effort effort);
void analysis_free(struct analysis *analysis);
int64_t analysis_busy_ns(const struct analysis *analysis); /* over all GPUs */

/* The steps, one file each; GPUFL_E_NO_MEMORY or GPUFL_OK. */
gpufl_status time_use_make(struct analysis *analysis);    /* time_use.c */
gpufl_status hotspots_make(struct analysis *analysis);    /* hotspots.c */
gpufl_status scope_tags_make(struct analysis *analysis);  /* scope_tags.c; after scope_tree */
gpufl_status kind_totals_make(struct analysis *analysis); /* kind_totals.c; after hotspots */
/* The name as a page shows it, cut to that many columns (0: whole); one that was not recorded has its number instead. */
void hotspot_name(struct bytes *out, const struct hotspot *hotspot, size_t columns); /* hotspots.c */
gpufl_status scope_tree_make(struct analysis *analysis);                             /* scope_tree.c; after time_use */
gpufl_status operator_totals_make(struct analysis *analysis);                        /* operator_totals.c */
gpufl_status transfers_make(struct analysis *analysis);                              /* transfers.c */
gpufl_status memory_use_make(struct analysis *analysis);                             /* memory_use.c */
gpufl_status system_use_make(struct analysis *analysis);                             /* system_use.c */
gpufl_status insights_make(struct analysis *analysis);                               /* insights.c; last */
void code_insights_add(struct analysis *analysis); /* code_insights.c; called by insights_make */
/* Adds to the list while there is room. */
void insight_add(struct analysis *analysis, const char *rule, enum insight_severity severity, int64_t impact_ns,
                 const char *format, ...) PRINTF_LIKE(5, 6);

/* Next node after `node` in depth-first order; ID_UNKNOWN at the end. */
uint32_t scope_tree_next(const struct analysis *analysis, uint32_t node);
/* The full path of a node, parts joined by " > ", escaped. */
void scope_tree_path(const struct analysis *analysis, uint32_t node, struct bytes *out);

#endif
