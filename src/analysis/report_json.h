/* SPDX-License-Identifier: Apache-2.0 */
/* Members of the JSON report: unknown values become null. */
#ifndef GPUFL_ANALYSIS_REPORT_JSON_H
#define GPUFL_ANALYSIS_REPORT_JSON_H

#include "analysis/code_walk.h"
#include "analysis/report_page.h"
#include "analysis/tracks.h"

static inline void element(struct bytes *out, char open)
{
    char last = out->size ? out->data[out->size - 1] : '[';
    if (last != '[' && last != ':' && last != '{')
        bytes_append_char(out, ',');
    bytes_append_char(out, open);
}

static inline void member_int(struct bytes *out, const char *key, int64_t value)
{
    json_key(out, key);
    if (value == CELL_UNKNOWN)
        json_text(out, NULL);
    else
        json_int(out, value);
}

static inline void member_id(struct bytes *out, const char *key, uint32_t value)
{
    member_int(out, key, value == ID_UNKNOWN ? CELL_UNKNOWN : (int64_t)value);
}

static inline void member_uint(struct bytes *out, const char *key, uint64_t value)
{
    json_key(out, key);
    json_uint(out, value);
}

static inline void member_double(struct bytes *out, const char *key, double value)
{
    json_key(out, key);
    json_double(out, value);
}

static inline void member_bool(struct bytes *out, const char *key, bool value)
{
    json_key(out, key);
    json_bool(out, value);
}

/* "" means unknown in the model. */
static inline void member_text(struct bytes *out, const char *key, const char *text)
{
    json_key(out, key);
    json_text(out, text && *text ? text : NULL);
}

static inline void member_device(struct bytes *out, uint16_t device)
{
    member_int(out, "device", device == DEVICE_UNKNOWN ? CELL_UNKNOWN : (int64_t)device);
}

static inline void list_open(struct bytes *out, const char *key)
{
    json_key(out, key);
    bytes_append_char(out, '[');
}

/* The parts, which the server answers separately. Each appends members to an open object, except json_hotspot,
 * json_scope, json_insight, json_metric_group and json_step, which append an element to an open list. report_json.c */
void json_session(const struct analysis *analysis, struct bytes *out);                     /* session, gpus */
void json_session_as(const char *key, const struct analysis *analysis, struct bytes *out); /* key instead of session */
/* completeness, overhead; kernels: their number, which a model of single records does not have */
void json_completeness(const struct analysis *analysis, int64_t kernels, struct bytes *out);
void json_time(const struct analysis *analysis, struct bytes *out);
void json_hotspot(const struct hotspot *hotspot, struct bytes *out);
void json_kinds(const struct analysis *analysis, struct bytes *out); /* work_by_kind */
/* report_json_steps.c */
void json_steps(const struct analysis *analysis, struct bytes *out);
void json_scope_tags(const struct analysis *analysis, uint32_t node, struct bytes *out);    /* tag, tags */
void json_scope_kernels(const struct analysis *analysis, uint32_t node, struct bytes *out); /* members */
void json_launch(const struct launch_config *launch, struct bytes *out);
void json_scopes(const struct analysis *analysis,
                 struct bytes *out); /* scopes, outside_scopes, operators; report_json_scopes.c */
void json_scope(const struct analysis *analysis, uint32_t node, struct bytes *out);
void json_outside_scopes(const struct analysis *analysis, struct bytes *out);
void json_copies(const struct analysis *analysis, struct bytes *out); /* copies, memsets */
void json_syncs(const struct analysis *analysis, struct bytes *out);  /* syncs, sync_places */
void json_memory(const struct analysis *analysis, struct bytes *out);
void json_graphs(const struct analysis *analysis, struct bytes *out);
void json_system(const struct analysis *analysis, struct bytes *out); /* system, processes, host */
void json_insights(const struct analysis *analysis, struct bytes *out);
void json_insight(const struct insight *insight, struct bytes *out);
/* report_json_deep.c */
void deep_part(const struct analysis *analysis, struct bytes *out);
void json_crc(struct bytes *out, uint64_t crc);
void json_sampling(const struct session_deep *deep, struct bytes *out);
void json_stalls(const struct analysis *analysis, struct bytes *out);
void json_stall_kind(const struct stall_kind *kind, uint64_t samples, struct bytes *out);
void json_profile(const struct stalls *stalls, const struct stall_profile *profile, struct bytes *out);
void json_counts(const struct instruction_counts *counts, bool has_counts, struct bytes *out);
void json_lines(const struct analysis *analysis, size_t first, size_t count, struct bytes *out);
/* instructions_max: per line; the hottest ones if the line has more. */
void json_line(const struct analysis *analysis, const struct hot_line *line, size_t instructions_max,
               struct bytes *out);
void json_metrics(const struct deep_use *use, struct bytes *out);
/* is_brief: means also as people read them, and counters that are 0 by name only. */
void json_metric_group(const struct metric_group *group, bool is_brief, struct bytes *out);
void json_pm(const struct session_deep *deep, struct bytes *out);
void json_capabilities(const struct session_model *model, struct bytes *out);
void json_sources(const struct analysis *analysis,
                  struct bytes *out); /* windows, untimed_launches, code_objects, ... */

/* report_json_code.c: an instruction of code_walk with its samples by stall, counters, source line and callers. */
void json_step(const struct analysis *analysis, const struct code_step *step, struct bytes *out);
/* report_json_range.c: busy time of each GPU, copies, host waits and energy from from_ns to to_ns. Work that crosses a
 * border counts with the part inside; counts are of work that starts inside. */
NODISCARD gpufl_status json_range(const struct analysis *analysis, int64_t from_ns, int64_t to_ns, struct bytes *out);
/* report_json_tracks.c: "kernels-0-7", "scopes-4711-0", "syncs-4711"; x stands for unknown. */
enum { TRACK_ID_SIZE = 64 };
void track_id(const struct track_key *key, char out[TRACK_ID_SIZE]);
void json_track(const struct track_key *key, struct bytes *out); /* id, kind, and the parts of the id */

#endif
