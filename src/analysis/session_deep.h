/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a session model for the deep engines: samples, counters, windows, code. Owned by struct session_model,
 * filled by session_load only, then read-only. Strings are in the model's text table.
 *
 * Samples are summed over time while they are read: by place in the code, and by function and scope. The memory
 * therefore depends on the size of the program, not on the length of the run. */
#ifndef GPUFL_ANALYSIS_SESSION_DEEP_H
#define GPUFL_ANALYSIS_SESSION_DEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sample_kind { SAMPLE_PC, SAMPLE_COUNTER, SAMPLE_LINE, SAMPLE_KIND_COUNT };

/* One (kind, cubin, function, pc, metric). metric_id: the stall reason of a PC sample, or the counter of a count. */
struct code_sample {
    uint64_t cubin_crc; /* 0: not recorded */
    uint64_t value;
    uint32_t function_id, pc_offset, metric_id;
    uint32_t source_file_id, source_line; /* 0: not in the row */
    uint8_t kind;
};

/* PC samples of one (scope path, function, stall reason). */
struct scope_sample {
    uint64_t value;
    uint64_t certain;   /* confidence 1: only one execution can have been sampled */
    uint64_t undecided; /* no execution was found for them, or the log (v1) does not have this */
    double weighted;    /* sum of value x confidence */
    uint32_t path_id;   /* scope_name_dict; 0 none or unknown */
    uint32_t function_id, metric_id;
};

/* A time span in which one data source was on. */
struct deep_window {
    int64_t start_ns, end_ns;
    uint32_t id;      /* 0 in v1 */
    uint32_t path_id; /* 0 none */
    int64_t launches; /* CELL_UNKNOWN */
    const char *source, *name, *close_reason;
};

/* How PC samples were taken in one context. */
struct sampling_config {
    int64_t device, context, period_cycles, rate_hz, buffer_bytes; /* CELL_UNKNOWN */
    const char *mode;
};

/* The counters requested of a device, for SASS metrics or PM sampling. */
struct counter_config {
    int64_t device, interval_us; /* CELL_UNKNOWN */
    bool is_pm;
    uint32_t configured, skipped; /* numbers of counters */
    const char *preset, *skipped_names;
};

struct metric_value {
    const char *name;
    double value; /* never NaN */
};
/* Counters of one execution of a kernel, or of one round of passes over a scope. */
struct metric_event {
    int64_t start_ns, end_ns; /* TIME_UNKNOWN */
    const char *name;         /* kernel name or scope path */
    const char *metric_set, *reason;
    int64_t passes_needed, passes_collected, instances; /* CELL_UNKNOWN */
    size_t value_first, value_count;                    /* in metric_values */
    uint16_t device;
    bool is_kernel;
};

/* A kernel that was launched while kernel tracing was paused. */
struct untimed_launch {
    int64_t time_ns;
    uint32_t kernel_id, corr_id, thread_id, scope, window_id;
};

struct code_object {
    uint64_t crc;
    uint64_t bytes; /* 0 unknown */
    const char *arch, *skipped;
    char *data; /* base64 of zstd, owned; NULL if it was not stored */
    size_t data_size;
};

struct listing_entry {
    uint32_t pc_offset, count; /* the following instructions that share the text (v1); 1 */
    uint32_t line;             /* 0 unknown */
    uint32_t bytes;            /* of each instruction; 0: not in the log */
    const char *sass, *file;
};
/* Instructions of one function as listed in the log, by pc. */
struct code_listing {
    uint64_t cubin_crc; /* 0: not recorded */
    const char *function, *tool;
    size_t entry_first, entry_count; /* in listing_entries */
};

struct source_content {
    const char *path;              /* "" unknown */
    uint32_t source_file_id;       /* 0 none */
    size_t line_first, line_count; /* in source_lines */
};

/* Values of one hardware counter of one device over time. */
struct pm_column {
    uint16_t device;
    const char *metric;
    size_t count, capacity;
    int64_t *times_ns;
    double *values;
};

struct session_deep {
    struct code_sample *samples;
    struct scope_sample *scope_samples;
    struct deep_window *windows;
    struct sampling_config *sampling;
    struct counter_config *counters;
    struct metric_event *metric_events;
    struct metric_value *metric_values;
    struct untimed_launch *untimed;
    struct code_object *objects;
    struct code_listing *listings;
    struct listing_entry *listing_entries;
    struct source_content *sources;
    const char **source_lines;
    struct pm_column *pm;
    size_t sample_count, scope_sample_count, window_count, sampling_count, counter_count, metric_event_count,
        metric_value_count, untimed_count, object_count, listing_count, listing_entry_count, source_count,
        source_line_count, pm_count;
    uint64_t left_out; /* rows and records beyond a limit of this model */
};

#endif
