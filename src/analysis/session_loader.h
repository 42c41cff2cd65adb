/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to session_load: state that is discarded when loading ends, and the steps, one file each. One thread. */
#ifndef GPUFL_ANALYSIS_SESSION_LOADER_H
#define GPUFL_ANALYSIS_SESSION_LOADER_H

#include "analysis/session.h"
#include "logfile/row_counts.h"

/* Marks a path id as an id of loader->paths rather than of scope_name_dict. */
#define V1_PATH 0x80000000u

/* v1's kernel_detail, joined with its kernel by correlation id at the end. */
struct kernel_detail {
    uint32_t corr_id, content_id, path_id;
};

struct device_list {
    struct device_info *items;
    size_t count, capacity;
};

/* A MIG instance and NVML's number of its GPU. */
struct mig_place {
    const char *uuid;
    uint32_t telemetry_id;
};

/* Samples are summed by key while they are read; also the capacities of the model's arrays. */
struct deep_loader {
    struct intern places, scoped;
    size_t sample_capacity, scope_sample_capacity, window_capacity, sampling_capacity, counter_capacity,
        metric_event_capacity, metric_value_capacity, untimed_capacity, object_capacity, listing_capacity,
        listing_entry_capacity, source_capacity, source_line_capacity, pm_capacity, object_bytes;
    size_t last_pm; /* rows come in runs of one sample: the next row usually belongs to the next series */
};

struct session_loader {
    struct session_model *model;
    size_t kernels_expected;
    uint32_t *kept; /* rows of a batch that become kernels */
    uint32_t kept_capacity;
    uint32_t *scope_slots; /* scope id -> index + 1, open addressing */
    size_t scope_slot_count, scope_slots_used;
    uint64_t last_scope_id; /* rows come in runs of one scope */
    uint32_t last_scope;
    uint32_t unknown_scope; /* its index + 1; 0: not created */
    struct kernel_detail *details;
    size_t detail_count, detail_capacity;
    struct intern detail_contents; /* struct launch_config without kernel_id */
    struct intern paths;           /* scope paths that v1 records contain as text */
    size_t launch_capacity, scope_capacity, copy_capacity, memset_capacity, graph_capacity, sync_capacity,
        memory_event_capacity, adoption_capacity, loss_capacity, capability_capacity, clock_sync_capacity,
        issue_capacity;
    struct device_list listed, visible; /* of job_start, by NVML's numbers; of device_limits, by CUDA's */
    struct mig_place *migs;
    size_t mig_count, mig_capacity;
    struct deep_loader deep;
    struct row_counts row_counts;
    gpufl_status status; /* the first failure stops the reader */
};

/* Reserves room for one more element; false if memory is out. Grows by half to limit unused memory. */
bool loader_grow(struct session_loader *loader, void *array_pointer, size_t *capacity, size_t count, size_t width);
/* Requests huge pages for a large array: a page fault every 4 KiB costs as much as filling it. */
void loader_large_pages(void *array, size_t size);
/* A copy that lives as long as the model; "" for NULL. */
const char *loader_text(struct session_loader *loader, const char *text, size_t size);
void loader_saw(struct session_loader *loader, int64_t start_ns, int64_t end_ns);
bool loader_times_ok(struct session_loader *loader, int64_t base_ns, int64_t dt_ns, int64_t duration_ns,
                     int64_t *start_ns);
/* The index of a scope instance; ID_UNKNOWN: unknown id. */
uint32_t loader_scope_find(struct session_loader *loader, uint64_t id);
uint32_t loader_unknown_scope(struct session_loader *loader);
struct scope_instance *loader_scope_add(struct session_loader *loader, uint64_t id);
bool loader_define(struct session_loader *loader, enum dictionary dictionary, uint64_t id, const char *text,
                   size_t size);

/* Members of a record: "" or ID_UNKNOWN if missing or of another type; an invalid time leaves *time_ns unchanged. */
const char *loader_member_text(struct session_loader *loader, const struct json_value *object, const char *key);
/* Leaves *field unchanged if there is no text. */
void loader_keep_text(struct session_loader *loader, const struct json_value *object, const char *key,
                      const char **field);
uint32_t object_u32(const struct json_value *object, const char *key);
bool object_time(const struct json_value *object, const char *key, int64_t *time_ns);
bool object_u64(const struct json_value *object, const char *key, uint64_t *value); /* a number, possibly in quotes */
/* The index of the scope instance that a row refers to, ID_UNKNOWN: none. If it is not in the log, it is counted, and
 * the index is that of a scope called "(unknown)". */
uint32_t loader_row_scope(struct session_loader *loader, const struct batch_view *view, unsigned column, uint32_t row);

void loader_batch(struct session_loader *loader, const struct batch_view *view); /* session_rows.c */
/* The deep engines' batches and records (session_deep.c) and code (session_code.c); false: another type. */
void loader_deep_rows(struct session_loader *loader, const struct batch_view *view);
bool loader_deep_record(struct session_loader *loader, enum record_type type, const struct json_value *object);
bool loader_code_record(struct session_loader *loader, enum record_type type, const struct json_value *object);
void loader_deep_free(struct session_loader *loader);
void session_deep_free(struct session_deep *deep);
void loader_record(struct session_loader *loader, enum record_type type,
                   const struct json_value *object); /* session_records.c */
/* session_devices.c: the array of GPUs in job_start, and the records about GPUs. loader_devices_finish adds the GPUs to
 * the model and converts system samples to CUDA's numbers; false: no memory. */
void loader_listed_devices(struct session_loader *loader, const struct json_value *list);
void loader_device_limits(struct session_loader *loader, const struct json_value *object);
void loader_mig_device(struct session_loader *loader, const struct json_value *object);
NODISCARD bool loader_devices_finish(struct session_loader *loader);
void loader_devices_free(struct session_loader *loader);
NODISCARD bool loader_merge(struct session_loader *loader); /* session_merge.c; false: no memory */
gpufl_status loader_finish(struct session_loader *loader);  /* session_join.c */
/* Scopes and their events. */
void loader_scope_rows(struct session_loader *loader, const struct batch_view *view); /* session_scopes.c */
void loader_adoption_rows(struct session_loader *loader, const struct batch_view *view);
void loader_adoptions_finish(struct session_loader *loader); /* when all scopes are known */
/* session_operators.c; false: no memory. Call before scopes are inferred. */
NODISCARD bool loader_operators_split(struct session_loader *loader);
/* scope_inference.c: gives work of threads without scopes the scope that waits for it; false: no memory. Call when rows
 * are in their final order. */
NODISCARD bool loader_scopes_infer(struct session_loader *loader);
/* kernel_detail, memset_event, nvtx_marker_event and graph_launch_event of v1. */
void loader_v1_record(struct session_loader *loader, enum record_type type,
                      const struct json_value *object); /* session_v1.c */

/* NULL = the column is missing in this batch, or the cell is null. */
static inline int64_t cell(const struct batch_view *view, unsigned column, uint32_t row)
{
    return view->columns[column].present ? view->columns[column].cells[row] : CELL_UNKNOWN;
}
static inline uint32_t cell_u32(const struct batch_view *view, unsigned column, uint32_t row, uint32_t fallback)
{
    int64_t value = cell(view, column, row);
    return value >= 0 && value < UINT32_MAX ? (uint32_t)value : fallback;
}
static inline uint8_t cell_u8(const struct batch_view *view, unsigned column, uint32_t row)
{
    int64_t value = cell(view, column, row);
    return value >= 0 && value <= UINT8_MAX ? (uint8_t)value : 0;
}
static inline uint64_t cell_u64(const struct batch_view *view, unsigned column, uint32_t row)
{
    int64_t value = cell(view, column, row);
    return value == CELL_UNKNOWN ? 0 : (uint64_t)value;
}
static inline uint16_t cell_device(const struct batch_view *view, unsigned column, uint32_t row)
{
    int64_t value = cell(view, column, row);
    return value >= 0 && value < DEVICE_UNKNOWN ? (uint16_t)value : DEVICE_UNKNOWN;
}

#endif
